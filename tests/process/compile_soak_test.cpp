// SPDX-License-Identifier: Apache-2.0
// P1 and V8 together, with a real compiler: programs that compile, killed at random, while their headers are edited.
#include "base/files.hpp"
#include "support/actor.hpp"

#include <gtest/gtest.h>

namespace kiln::test {

namespace {

struct outcome {
    int status = 0;
    std::string report;
};

outcome soak(std::vector<std::string> arguments) {
    auto const scratch = base::temporary_directory::make("kiln-soak").value();
    arguments.insert(arguments.end(), {"--root", scratch.path() / "soak"});
    actor program{std::move(arguments),
                  {"KILN_CUDA_PATH=" KILN_TEST_CUDA_PATH, "KILN_WORKER=" KILN_TEST_WORKER},
                  KILN_TEST_BIN_DIR "/kiln-test-compile_soak"};
    outcome out;
    for (auto line = program.line(); !line.empty(); line = program.line()) out.report += line + "\n";
    auto const status = program.wait();
    out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::fputs(out.report.c_str(), stdout);
    return out;
}

}  // namespace

TEST(compile_soak, P1_V8_no_program_is_given_a_wrong_kernel) {
    auto const seen = soak({"--seconds", "25", "--processes", "16", "--units", "2", "--max-bytes", "80000"});
    EXPECT_EQ(seen.status, 0) << seen.report;
    EXPECT_NE(seen.report.find("wrong 0\n"), std::string::npos);
}

TEST(compile_soak, and_one_that_were_would_be_seen) {
    auto const seen = soak({"--seconds", "60", "--processes", "6", "--units", "1", "--poison", "1"});
    EXPECT_EQ(seen.status, 1) << seen.report;
    EXPECT_NE(seen.report.find("wrong answers"), std::string::npos) << seen.report;
}

}  // namespace kiln::test
