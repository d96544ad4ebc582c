// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace kiln::compile {
namespace {

using ::testing::HasSubstr;

base::bytes bytes_of(std::string_view text) {
    auto const view = base::as_bytes(text);
    return {view.begin(), view.end()};
}

base::bytes hello_frame() { return make_frame(frame_kind::hello, encode(worker_hello{1, 77, "1.2.3"})).value(); }

TEST(worker_protocol, frames_survive_being_cut_anywhere) {
    auto const first = hello_frame();
    auto const second =
        make_frame(frame_kind::request, encode(numbered_body{7, header_use::reused, base::as_bytes("work")})).value();
    auto both = first;
    both.insert(both.end(), second.begin(), second.end());
    for (std::size_t cut = 0; cut <= both.size(); ++cut) {
        frame_parser parser;
        std::vector<frame> seen;
        for (auto const part : {base::byte_span{both}.first(cut), base::byte_span{both}.subspan(cut)}) {
            parser.feed(part);
            while (auto next = parser.next().value()) seen.push_back(*std::move(next));
        }
        ASSERT_EQ(seen.size(), 2u) << "cut at " << cut;
        EXPECT_EQ(seen[0].kind, frame_kind::hello);
        auto const body = decode_numbered(seen[1].body).value();
        EXPECT_EQ(body.id, 7u);
        EXPECT_EQ(base::as_text(body.payload), "work");
        EXPECT_FALSE(parser.in_frame());
    }
}

TEST(worker_protocol, layout_is_the_documented_one) {
    auto const whole =
        make_frame(frame_kind::reply, encode(numbered_body{0x0102, header_use::made, base::as_bytes("Z"), 15})).value();
    EXPECT_EQ(whole, bytes_of(std::string_view{
                         "KLNW\x04\x00\x00\x00\x0b\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x01\x0fZ", 23}));
    EXPECT_EQ(encode(worker_limits{5, 258, 3}),
              bytes_of(std::string_view{
                  "\x05\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00", 20}));
    EXPECT_EQ(encode(worker_hello{1, 2, "v"}),
              bytes_of(std::string_view{"\x01\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00v", 13}));
}

TEST(worker_protocol, bodies_come_back_as_they_were_and_truncated_ones_do_not) {
    auto const said = encode(worker_hello{1, 77, "1.2.3"});
    EXPECT_EQ(decode_hello(said).value().pid, 77u);
    EXPECT_EQ(decode_hello(said).value().kiln, "1.2.3");
    auto const limits = encode(worker_limits{std::uint64_t{5} << 30, 4242, std::uint64_t{1} << 29});
    EXPECT_EQ(decode_limits(limits).value().memory, std::uint64_t{5} << 30);
    EXPECT_EQ(decode_limits(limits).value().parent, 4242u);
    EXPECT_EQ(decode_limits(limits).value().precompiled, std::uint64_t{1} << 29);
    auto const numbered = encode(numbered_body{7, header_use::made, said, 15});
    EXPECT_EQ(decode_numbered(numbered).value().headers, header_use::made);
    EXPECT_EQ(decode_numbered(numbered).value().nice, 15);
    for (auto const& [at, value] : {std::pair{8, 3}, std::pair{9, 20}}) {
        auto unknown = numbered;
        unknown[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        EXPECT_FALSE(decode_numbered(unknown)) << at;
    }
    for (std::size_t size = 0; size < said.size(); ++size)
        EXPECT_FALSE(decode_hello(base::byte_span{said}.first(size))) << size;
    for (std::size_t size = 0; size < limits.size(); ++size)
        EXPECT_FALSE(decode_limits(base::byte_span{limits}.first(size))) << size;
    for (std::size_t size = 0; size < 10; ++size)
        EXPECT_FALSE(decode_numbered(base::byte_span{limits}.first(size))) << size;
}

TEST(worker_protocol, a_changed_header_byte_is_refused) {
    auto const good = hello_frame();
    for (std::size_t at = 0; at < 8; ++at) {
        auto bad = good;
        bad[at] ^= std::byte{0x80};
        frame_parser parser;
        parser.feed(bad);
        EXPECT_FALSE(parser.next()) << at;
        EXPECT_FALSE(parser.next()) << "must stay refused";
    }
}

TEST(worker_protocol, lengths_are_bounded_before_anything_is_allocated) {
    auto bad = hello_frame();
    for (std::size_t at = 8; at < 12; ++at) bad[at] = std::byte{0xff};
    frame_parser parser;
    parser.feed(bad);
    auto const refused = parser.next();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("claims 4294967295 bytes"));
    base::bytes const huge(most_frame_body_bytes + 1);
    EXPECT_EQ(make_frame(frame_kind::request, huge).error().code(), errc::invalid_argument);
}

TEST(worker_protocol, another_version_is_an_error_that_names_both) {
    EXPECT_TRUE(check_protocol({worker_protocol_version, 1, "0.1.0"}));
    // A later version may say more in its hello.
    auto said = encode(worker_hello{700, 1, "7.8.9"});
    said.push_back(std::byte{1});
    auto const refused = check_protocol(decode_hello(said).value());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("kiln-worker 7.8.9 speaks worker protocol 700"));
    EXPECT_THAT(refused.error().message(), HasSubstr(fmt::format("speaks {}", worker_protocol_version)));
    auto same = encode(worker_hello{worker_protocol_version, 1, "0.1.0"});
    same.push_back(std::byte{1});
    EXPECT_FALSE(decode_hello(same));
}

class sockets_test : public ::testing::Test {
protected:
    int ends_[2] = {-1, -1};
    void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0); }
    void TearDown() override {
        for (int const fd : ends_) {
            if (fd >= 0) ::close(fd);
        }
    }
    void close_end(int which) { ::close(std::exchange(ends_[which], -1)); }
};

TEST_F(sockets_test, a_large_frame_passes_and_a_hang_up_is_seen) {
    base::bytes const body(3'000'000, std::byte{42});
    std::thread sender{[&] {
        EXPECT_TRUE(send_frame(ends_[0], frame_kind::reply, body));
        close_end(0);
    }};
    frame_parser parser;
    auto const got = receive_frame(ends_[1], parser).value();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->body, body);
    EXPECT_FALSE(receive_frame(ends_[1], parser).value());
    sender.join();
}

TEST_F(sockets_test, a_hang_up_inside_a_frame_is_an_error) {
    auto const whole = hello_frame();
    ASSERT_EQ(::send(ends_[0], whole.data(), whole.size() - 1, 0), static_cast<long>(whole.size() - 1));
    close_end(0);
    frame_parser parser;
    EXPECT_EQ(receive_frame(ends_[1], parser).error().code(), errc::corrupt);
}

TEST_F(sockets_test, sending_to_nobody_is_an_error_and_no_signal) {
    auto const before = std::signal(SIGPIPE, SIG_DFL);
    close_end(1);
    EXPECT_EQ(send_frame(ends_[0], frame_kind::hello, {}).error().status(), EPIPE);
    std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace kiln::compile
