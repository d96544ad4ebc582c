// SPDX-License-Identifier: Apache-2.0
#include "compile/job.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

namespace {

artifact full_artifact() {
    artifact a{.unit = "u", .target = target::parse("sm_90a").value()};
    a.key = std::string(64, '1');
    a.toolchain = "nvrtc abc";
    a.compiler = "NVRTC 13.0";
    a.image = {std::byte{1}, std::byte{2}};
    a.kernels = {{"k<float>", "_Z1kIfEvv", 12, 1024, 8}, {"p", "p"}};
    a.constants = {{"info", {std::byte{9}}}};
    a.dependencies = {{dependency::root::toolkit, 0, "cuda.h", std::string(64, '2')},
                      {dependency::root::include_directory, 3, "x.h", ""}};
    a.inputs = {{"source", "abc"}};
    a.log = "warning";
    a.compile_ms = 1.5;
    return a;
}

job full_job() {
    compile_job c{.unit = {.name = "u",
                           .source = "text",
                           .kernels = {"k"},
                           .options = {"-w"},
                           .headers = {{"h", "t"}},
                           .include_dirs = {"/i"},
                           .directory = "/d",
                           .exports = {"e"},
                           .licence = "MIT"},
                  .target = target::parse("compute_90", artifact_kind::ptx).value()};
    return {{"/lib/nvrtc", "/lib/nvjitlink", {"/inc"}}, std::move(c)};
}

}  // namespace

TEST(job_codec, only_what_is_written_is_read) {
    auto a = full_artifact();
    a.target = target::parse("compute_90", artifact_kind::ptx).value();
    auto bytes = encode(a);
    auto const text = std::string{base::as_text(bytes)};
    auto const at = text.find("compute_90");
    ASSERT_NE(at, text.npos);
    // The same target as people may write it, of the same length.
    std::memcpy(bytes.data() + at, "sm_90     ", 10);
    EXPECT_FALSE(decode_artifact(bytes));
    auto shorter = text.substr(0, at - 4) + std::string{"\5\0\0\0sm_90", 9} + text.substr(at + 10);
    EXPECT_FALSE(decode_artifact(base::as_bytes(shorter)));
}

TEST(job_codec, artifacts_survive) {
    auto const a = full_artifact();
    auto const b = decode_artifact(encode(a)).value();
    EXPECT_EQ(encode(b), encode(a));
    EXPECT_EQ(b.find_kernel("k<float>")->lowered, "_Z1kIfEvv");
    EXPECT_EQ(b.find_kernel("_Z1kIfEvv")->shared_bytes, 1024);
    EXPECT_EQ(b.find_kernel("p")->registers, -1);
    EXPECT_EQ(b.find_kernel("none"), nullptr);
    EXPECT_EQ(b.find_constant("info")->bytes.size(), 1u);
    EXPECT_EQ(b.dependencies[1].index, 3);
}

TEST(job_codec, jobs_survive) {
    auto const bytes = encode(full_job());
    EXPECT_EQ(encode(decode_job(bytes).value()), bytes);
    link_job const l{.name = "l",
                     .target = target::parse("sm_90").value(),
                     .inputs = {{"i", artifact_kind::ltoir, {std::byte{1}}}},
                     .kernels = {"k"},
                     .exports = {"e"},
                     .options = {"-O3"}};
    auto const linked = encode(job{{}, l});
    EXPECT_EQ(encode(decode_job(linked).value()), linked);
}

TEST(job_codec, errors_survive) {
    auto const why = error{errc::compile_failed, "m"}.with_status(6).with_log("log");
    auto const unknown = decode_failure(encode(failure{why}));
    EXPECT_EQ(unknown.why.code(), errc::compile_failed);
    EXPECT_EQ(unknown.why.status(), 6);
    EXPECT_EQ(unknown.why.log(), "log");
    EXPECT_FALSE(unknown.read);
    EXPECT_EQ(decode_failure({}).why.code(), errc::corrupt);
}

TEST(job_codec, what_a_failed_compile_read_survives) {
    auto const why = fail(errc::compile_failed, "m");
    std::vector<dependency> const read{{dependency::root::include_directory, 2, "q.h", "abc"},
                                       {dependency::root::toolkit, 0, "r.h", {}}};
    auto const bytes = encode(failure{why, read});
    auto const again = decode_failure(bytes);
    ASSERT_TRUE(again.read);
    EXPECT_EQ(again.read->at(0).path, "q.h");
    EXPECT_EQ(encode(again), bytes);
    EXPECT_TRUE(decode_failure(encode(failure{why, std::vector<dependency>{}})).read) << "nothing is something";
    for (std::size_t n = 0; n < bytes.size(); ++n)
        EXPECT_EQ(decode_failure(base::byte_span{bytes}.first(n)).why.code(), errc::corrupt) << n;
}

// Bytes come from other processes and files: every truncation is an error, and a flipped byte is at worst another value.
TEST(job_codec, damaged_bytes_are_refused_or_harmless) {
    auto const a = encode(full_artifact());
    auto const j = encode(full_job());
    for (std::size_t n = 0; n < a.size(); ++n) EXPECT_FALSE(decode_artifact(base::byte_span{a}.first(n))) << n;
    for (std::size_t n = 0; n < j.size(); ++n) EXPECT_FALSE(decode_job(base::byte_span{j}.first(n))) << n;
    for (auto const* original : {&a, &j}) {
        for (std::size_t n = 0; n < original->size(); ++n) {
            auto flipped = *original;
            flipped[n] ^= std::byte{0xff};
            (void)decode_artifact(flipped);
            (void)decode_job(flipped);
        }
    }
}

TEST(artifact_bytes, come_back_as_they_were_and_damage_is_noticed_at_every_byte) {
    auto const original = full_artifact();
    auto const bytes = original.to_bytes();
    auto const back = artifact::from_bytes(bytes).value();
    EXPECT_EQ(encode(back), encode(original));
    EXPECT_EQ(back.to_bytes(), bytes);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        EXPECT_FALSE(artifact::from_bytes(std::span{bytes}.first(n))) << n;
        auto flipped = bytes;
        flipped[n] ^= std::byte{0xff};
        EXPECT_FALSE(artifact::from_bytes(flipped)) << n;
    }
    auto newer = bytes;
    newer[8] = std::byte{2};
    EXPECT_EQ(artifact::from_bytes(newer).error().code(), errc::unsupported);
}

TEST(check_product, an_answer_that_is_not_what_was_asked_for_is_noticed) {
    auto const t = target::parse("compute_90", artifact_kind::ptx).value();
    job const asked{{}, compile_job{{.name = "u", .source = "", .kernels = {"k"}}, t}};
    product good{.unit = "u", .target = t, .toolchain = "nvrtc 1"};
    good.kernels.push_back({"k", "k"});
    good.image.assign(4, std::byte{'x'});
    EXPECT_TRUE(check_product(asked, good));
    auto const lies = [&](auto change) {
        auto lie = good;
        change(lie);
        return check_product(asked, lie).error().code() == errc::corrupt;
    };
    EXPECT_TRUE(lies([](product& p) { p.unit = "v"; }));
    EXPECT_TRUE(lies([](product& p) { p.target = target::parse("compute_75", artifact_kind::ptx).value(); }));
    EXPECT_TRUE(lies([](product& p) { p.toolchain = "nvjitlink 1"; }));
    EXPECT_TRUE(lies([](product& p) { p.kernels.clear(); }));

    auto const cubin = target::parse("sm_90").value();
    job const binary{{}, compile_job{{.name = "u", .source = ""}, cubin}};
    product text{.unit = "u", .target = cubin, .toolchain = "nvrtc 1"};
    text.image.assign(11, std::byte{'x'});
    EXPECT_FALSE(check_product(binary, text)) << "eleven bytes of text are no cubin";
}

}  // namespace kiln::compile
