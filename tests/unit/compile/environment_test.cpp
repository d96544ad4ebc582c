// SPDX-License-Identifier: Apache-2.0
#include "compile/environment.hpp"

#include "base/files.hpp"

#include <cfenv>
#include <cstdint>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(environment, workers_get_the_listed_variables_and_no_other) {
    char const* const given[] = {"PATH=/bin",
                                 "HOME=/home/ann",
                                 "LD_LIBRARY_PATH=/opt/lib",
                                 "LD_PRELOAD=/tmp/evil.so",
                                 "LD_AUDIT=/x.so",
                                 "NV_NVVM_VERSION=1",
                                 "LC_ALL=C",
                                 "KILN_WORKER_MEMORY=1G",
                                 "KILN_EVENTS=/x",
                                 "KILN_REMOTE=redis://h trust=server",
                                 "KILN_REMOTE_TOKEN=hunter2",
                                 "NVRTC_APPEND_FLAGS",
                                 "GCONV_PATH=/tmp",
                                 "GLIBC_TUNABLES=glibc.malloc.check=3",
                                 "CUDA_CACHE_DISABLE=1",
                                 nullptr};
    EXPECT_THAT(environment_for_workers(given, trust::ordinary),
                ElementsAre("PATH=/bin", "HOME=/home/ann", "LD_LIBRARY_PATH=/opt/lib", "LC_ALL=C",
                            "KILN_WORKER_MEMORY=1G", "CUDA_CACHE_DISABLE=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
    EXPECT_THAT(environment_for_workers(given, trust::secure), IsEmpty());
    EXPECT_THAT(environment_for_workers(nullptr, trust::ordinary), IsEmpty());
}

TEST(environment, variables_that_change_results_are_known) {
    for (auto const* name :
         {"NV_NVVM_VERSION", "LIBNVVM_NVVM_VERSION", "NVVM_IR_VER_CHK", "NVRTC_APPEND_FLAGS", "NVRTCWIZ", "EDG_BASE",
          "DUMP_KNOBS_TO_FILE", "LLVM_OVERRIDE_PRODUCER", "FINALIZER_USE_LEGACY_ELF_BUILDER"}) {
        auto const entry = std::string{name} + "=1";
        char const* const given[] = {"PATH=/bin", entry.c_str(), nullptr};
        EXPECT_EQ(result_changing_variable(given), name);
    }
    char const* const plain[] = {"PATH=/bin",          "NVRTC_DISABLE_CONCURRENT_NVVM=1", "NVIDIA_VISIBLE_DEVICES=all",
                                 "NVRTC_HOME=/opt/nv", "NVRTC_PATH=/opt/nv/lib",          nullptr};
    EXPECT_EQ(result_changing_variable(plain), "");
}

TEST(environment, nobody_tells_the_compiler_of_a_program_with_more_rights_what_to_do) {
    char const* const plain[] = {"PATH=/bin", "HOME=/root", nullptr};
    char const* const hostile[] = {"PATH=/bin", "NVRTCWIZ=3153394", "NVRTC_APPEND_FLAGS=--time=/etc/y", nullptr};
    EXPECT_TRUE(check_environment(plain, trust::secure));
    EXPECT_TRUE(check_environment(hostile, trust::ordinary));
    auto const refused = check_environment(hostile, trust::secure);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::forbidden);
    EXPECT_NE(refused.error().message().find("NVRTCWIZ"), std::string::npos);
}

TEST(environment, how_a_thread_computes_is_seen) {
    EXPECT_TRUE(computes_as_usual());
    std::fesetround(FE_UPWARD);
    bool const upward = computes_as_usual();
    std::fesetround(FE_TONEAREST);
    EXPECT_FALSE(upward);
    std::fenv_t before;
    std::fegetenv(&before);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(std::uint64_t{1} << 24));
#endif
    bool const small_ones_are_zero = !computes_as_usual();
    std::fesetenv(&before);
    EXPECT_TRUE(small_ones_are_zero);
    EXPECT_TRUE(computes_as_usual());
}

char const* comma_name = "";
// A language that writes a decimal comma; null where the system has none and none can be made.
::locale_t comma_locale(std::string const& scratch) {
    for (auto const* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "nl_NL.UTF-8"}) {
        if (auto const found = ::newlocale(LC_ALL_MASK, comma_name = name, nullptr)) return found;
    }
    auto const make = fmt::format("localedef -i de_DE -f UTF-8 '{}/de_DE.UTF-8' >/dev/null 2>&1", scratch);
    if (std::system(make.c_str()) != 0) return nullptr;
    ::setenv("LOCPATH", scratch.c_str(), 1);
    return ::newlocale(LC_ALL_MASK, "de_DE.UTF-8", nullptr);
}

// What was read as "1.5" before, while and after something is compiled, and whether it was as usual; empty where there is no such language.
std::string read_with_a_comma(std::string const& scratch) {
    auto const comma = comma_locale(scratch);
    if (comma == nullptr) return {};
    (void)::uselocale(comma);
    auto const read = [] {
        return std::string{computes_as_usual() ? "u" : "o"} + (std::strtod("1.5", nullptr) > 1 ? "1.5 " : "1 ");
    };
    auto out = read();
    {
        computing_as_usual const usual;
        out += read();
    }
    out += read();
    // Threads of the compiler's own have the program's language, not this thread's.
    (void)::uselocale(LC_GLOBAL_LOCALE);
    auto const told = [] {
        auto const left = without_threads_that_misread({"-a", "--split-compile=2", "-split-compile", "0", "-b"});
        return std::to_string(left.size());
    };
    out += told();
    (void)::setlocale(LC_ALL, ::getenv("LOCPATH") != nullptr ? "de_DE.UTF-8" : comma_name);
    return out + told();
}

// ptxas reads "1.5" as its thread would: as 1 where numbers have a comma. In a child: what is known of languages stays with a process.
TEST(environment, a_decimal_comma_is_seen_and_is_none_while_something_is_compiled) {
    auto const scratch = base::temporary_directory::make("kiln-locale").value();
    auto const answer = scratch.path() / "answer";
    auto const child = ::fork();
    if (child == 0) {
        auto const text = read_with_a_comma(scratch.path().native());
        ::_exit(text.empty() || base::replace_file(answer, base::as_bytes(text)) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    auto const text = base::read_file(answer).value();
    if (!text) GTEST_SKIP() << "there is no language with a decimal comma";
    EXPECT_EQ(base::as_text(*text), "o1 u1.5 o1 52") << "afterwards as the caller had it";
}

}  // namespace
}  // namespace kiln::compile
