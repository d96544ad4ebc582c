// SPDX-License-Identifier: Apache-2.0
#include "remote/resp.hpp"

#include <gtest/gtest.h>

namespace kiln::remote::resp {

namespace {

std::string described(value const& v) {
    switch (v.kind) {
        case kind::simple: return "+" + std::string{v.text()};
        case kind::error: return "-" + std::string{v.text()};
        case kind::integer: return ":" + std::to_string(v.number);
        case kind::bulk: return "$" + std::string{v.text()};
        case kind::null: return "nil";
        case kind::array: break;
    }
    std::string out = "[";
    for (auto const& item : v.items) out += described(item) + " ";
    return out + "]";
}

constexpr std::string_view talk =
    "+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n*3\r\n$1\r\nx\r\n$-1\r\n*1\r\n:7\r\n*0\r\n$0\r\n\r\n";
constexpr std::string_view meant = "+OK|-ERR no|:-12|$a\r\n|nil|[$x nil [:7 ] ]|[]|$|";

TEST(resp, replies_however_they_are_cut) {
    for (std::size_t step = 1; step < talk.size(); ++step) {
        decoder d;
        std::string got;
        for (std::size_t at = 0; at < talk.size(); at += step) {
            d.feed(base::as_bytes(talk.substr(at, step)));
            for (;;) {
                auto const next = d.next();
                ASSERT_TRUE(next) << next.error().message();
                if (!*next) break;
                got += described(**next) + "|";
            }
        }
        EXPECT_EQ(got, meant) << step;
        EXPECT_EQ(d.held(), 0u);
    }
}

errc refused(std::string_view bytes) {
    decoder d{{.bulk = 1000, .whole = 5000, .items = 10, .line = 64, .depth = 2}};
    d.feed(base::as_bytes(bytes));
    auto const next = d.next();
    return next ? errc::internal : next.error().code();
}

TEST(resp, what_is_too_much_is_refused_before_it_is_there) {
    EXPECT_EQ(refused("$1001\r\n"), errc::out_of_memory);
    EXPECT_EQ(refused("*11\r\n"), errc::out_of_memory);
    EXPECT_EQ(refused("*1\r\n*1\r\n*1\r\n:1\r\n"), errc::out_of_memory);
    EXPECT_EQ(refused("$9223372036854775807\r\n"), errc::out_of_memory);
    EXPECT_EQ(refused("*2000000000\r\n"), errc::out_of_memory);
}

TEST(resp, what_is_no_reply_is_refused) {
    EXPECT_EQ(refused("HTTP/1.1 200 OK\r\n"), errc::corrupt);
    EXPECT_EQ(refused("$x\r\n"), errc::corrupt);
    EXPECT_EQ(refused("$-2\r\n"), errc::corrupt);
    EXPECT_EQ(refused("*-5\r\n"), errc::corrupt);
    EXPECT_EQ(refused("\r\n"), errc::corrupt);
    EXPECT_EQ(refused("$1\r\nabc"), errc::corrupt);
    EXPECT_EQ(refused("+" + std::string(100, 'a')), errc::corrupt);
}

TEST(resp, commands_are_arrays_of_strings) {
    std::string out;
    put_command(out, {"SET", "k\r\n", ""});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
}

}  // namespace

}  // namespace kiln::remote::resp
