// SPDX-License-Identifier: Apache-2.0
#include "compile/reproduction.hpp"

#include "base/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class reproduction_test : public ::testing::Test {
protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-repro").value();
    fs::path directory_ = scratch_.path() / "made" / "on demand";

    static reproduction example(std::string source = "__global__ void k() {}\n") {
        unit u{.name = "pip",
               .source = std::move(source),
               .kernels = {"k"},
               .options = {"-DA=1 2"},
               .include_dirs = {"/inc"}};
        return {
            {{"/lib/libnvrtc.so.13", "", {"/cuda/include"}}, compile_job{std::move(u), target::parse("sm_90").value()}},
            "killed by signal 11 (Segmentation fault)",
            "last\nwords"};
    }
    static std::string text_of(fs::path const& file) {
        return std::string{base::as_text(*base::read_file(file).value())};
    }
};

TEST_F(reproduction_test, tells_people_what_was_compiled_and_how_it_ended) {
    auto const text = text_of(write_reproduction(directory_, example()).value());
    EXPECT_THAT(text, ::testing::StartsWith("kiln reproduction 1\n"));
    for (auto const* line :
         {"\nended: killed by signal 11 (Segmentation fault)\n", "\nunit: pip\n", "\ntarget: sm_90 cubin\n",
          "\nkernel: k\n", "\noption: -DA=1 2\n", "\ninclude directory: /inc\n", "\nnvrtc: /lib/libnvrtc.so.13\n",
          "\nsource:\n| __global__ void k() {}\n", "\nlast words:\n| last\n| words\n"}) {
        EXPECT_THAT(text, HasSubstr(line));
    }
}

TEST_F(reproduction_test, gives_the_job_back) {
    auto const file = write_reproduction(directory_, example()).value();
    EXPECT_EQ(encode(read_reproduction(file).value()), encode(example().work));
}

TEST_F(reproduction_test, nothing_in_the_job_can_pass_for_the_job) {
    auto tricky = example("job: 3\nabc\njob: 0\n");
    std::get<compile_job>(tricky.work.task).unit.options = {"x\njob: 1\n"};
    auto const file = write_reproduction(directory_, tricky).value();
    EXPECT_EQ(encode(read_reproduction(file).value()), encode(tricky.work));
}

TEST_F(reproduction_test, the_same_job_has_one_file_and_the_number_of_files_is_bounded) {
    auto const first = write_reproduction(directory_, example()).value();
    EXPECT_EQ(write_reproduction(directory_, example()).value(), first);
    base::replace_file(directory_ / "unrelated.txt", {}).value();
    fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours{1});
    for (int i = 0; i < 4; ++i)
        static_cast<void>(write_reproduction(directory_, example(std::to_string(i)), 4).value());
    EXPECT_FALSE(fs::exists(first)) << "the oldest goes first";
    EXPECT_EQ(std::distance(fs::directory_iterator{directory_}, fs::directory_iterator{}), 5);
    EXPECT_TRUE(fs::exists(directory_ / "unrelated.txt"));
}

TEST_F(reproduction_test, truncated_anywhere_it_is_refused) {
    auto const file = write_reproduction(directory_, example()).value();
    auto const text = text_of(file);
    for (std::size_t size = 0; size < text.size(); ++size) {
        base::replace_file(file, base::as_bytes(std::string_view{text}.substr(0, size))).value();
        EXPECT_FALSE(read_reproduction(file)) << size;
    }
    EXPECT_EQ(read_reproduction(directory_ / "none").error().code(), errc::not_found);
}

TEST_F(reproduction_test, a_directory_that_cannot_be_made_is_an_error) {
    base::replace_file(scratch_.path() / "file", {}).value();
    EXPECT_FALSE(write_reproduction(scratch_.path() / "file" / "below", example()));
}

}  // namespace
}  // namespace kiln::compile
