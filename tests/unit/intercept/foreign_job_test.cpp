// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_job.hpp"

#include <gtest/gtest.h>

namespace kiln::intercept {

namespace {

foreign_job some_job() {
    return {
        .library = "/opt/cuda/lib64/libnvrtc.so.13",
        .toolchain = "libnvrtc.so.13 abc",
        .directory = "/work",
        .seen_from = viewpoint::of_this_thread(),
        .program = {.source = "text", .name = "/tmp/a/k.cu", .headers = {{"a.h", "int a;"}}, .expressions = {"f<int>"}},
        .call = {.name = "/.kiln/s/k.cu",
                 .options = {"-I/.kiln/i0", ""},
                 .roots = {.source_directory = "/tmp/a", .include_directories = {"/opt/include"}}}};
}

}  // namespace

TEST(foreign_job, arrives_as_it_was_sent) {
    auto const sent = some_job();
    auto const got = decode_foreign_job(encode(sent)).value();
    EXPECT_EQ(encode(got), encode(sent));
    EXPECT_EQ(got.program.name, sent.program.name);
    EXPECT_EQ(got.call.options, sent.call.options);
    EXPECT_EQ(got.call.roots.include_directories, sent.call.roots.include_directories);
    EXPECT_EQ(got.seen_from, sent.seen_from);
}

TEST(foreign_job, who_is_in_another_folder_sees_other_files) {
    EXPECT_EQ(viewpoint::of_this_thread(), viewpoint::of_this_thread());
    EXPECT_NE(viewpoint::of_this_thread(), viewpoint::of_this_thread("/"));
}

TEST(foreign_job, of_an_older_recording_has_no_rights) {
    auto const sent = some_job();
    auto data = encode(sent);
    auto const texts = 3 * 4 + sent.library.size() + sent.toolchain.size() + sent.directory.size();
    data[0] = std::byte{2};
    auto const rights = data.begin() + static_cast<std::ptrdiff_t>(2 + texts + 8 * 8);
    data.erase(rights, rights + 2 * 8);
    auto const got = decode_foreign_job(data).value();
    EXPECT_EQ(got.program.source, sent.program.source);
    EXPECT_EQ(got.seen_from.about[7], sent.seen_from.about[7]);
    EXPECT_EQ(got.seen_from.about[8], 0U);
    EXPECT_NE(sent.seen_from.about[8], 0U);
}

TEST(foreign_job, cut_anywhere_is_refused) {
    auto const whole = encode(some_job());
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(decode_foreign_job(base::byte_span{whole}.first(size))) << size;
}

TEST(foreign_product, arrives_as_it_was_sent) {
    foreign_product sent;
    sent.how = foreign_product::outcome::failed;
    sent.status = nvrtc_compilation;
    sent.entry.answer.log = "error";
    sent.known = {{"/a/q.h", {1, 2, 3, 4, 5}, base::sha256_of(base::as_bytes("q"))}};
    auto const whole = encode(sent);
    auto const got = decode_foreign_product(whole).value();
    EXPECT_EQ(got.known, sent.known);
    EXPECT_EQ(got.how, sent.how);
    EXPECT_EQ(got.status, sent.status);
    EXPECT_EQ(got.entry, sent.entry);
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(decode_foreign_product(base::byte_span{whole}.first(size))) << size;
}

TEST(foreign_product, that_contradicts_itself_is_refused) {
    foreign_product claimed;
    claimed.how = foreign_product::outcome::made;
    claimed.status = nvrtc_compilation;
    EXPECT_FALSE(decode_foreign_product(encode(claimed)));
}

}  // namespace kiln::intercept
