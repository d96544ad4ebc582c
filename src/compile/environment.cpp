// SPDX-License-Identifier: Apache-2.0
#include "compile/environment.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <langinfo.h>
#include <linux/capability.h>
#include <string_view>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

using namespace std::string_view_literals;

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool is_passed(std::string_view name) {
    constexpr std::array names{
        "PATH"sv,         "HOME"sv,          "LD_LIBRARY_PATH"sv, "TMPDIR"sv,           "LANG"sv,
        "TZ"sv,           "USER"sv,          "LOGNAME"sv,         "ASAN_OPTIONS"sv,     "LSAN_OPTIONS"sv,
        "TSAN_OPTIONS"sv, "UBSAN_OPTIONS"sv, "MSAN_OPTIONS"sv,    "LLVM_PROFILE_FILE"sv};
    // The compiler's own cache in the driver changes no result: where it is, and whether it is on, is the user's choice.
    constexpr std::array caches{"CUDA_CACHE_DISABLE"sv, "CUDA_CACHE_PATH"sv, "CUDA_CACHE_MAXSIZE"sv};
    // Events, profiles and bundles are the host's affair: a worker that wrote them too would write them twice.
    // So are other machines, and who we are there.
    constexpr std::array kept_back{"KILN_EVENTS"sv, "KILN_PROFILE"sv, "KILN_BUNDLES"sv, "KILN_REMOTE"sv,
                                   "KILN_REMOTE_TOKEN"sv};
    if (std::ranges::find(names, name) != names.end() || name.starts_with("LC_")) return true;
    if (std::ranges::find(caches, name) != caches.end()) return true;
    return name.starts_with("KILN_") && std::ranges::find(kept_back, name) == kept_back.end();
}

// Read by NVRTC and nvJitLink 13.0, and since 13.5 (FINALIZER_), found by watching getenv and in their strings.
bool changes_results(std::string_view name) {
    constexpr std::array families{"NVRTC"sv,      "NVVM_"sv,          "NV_NVVM_"sv,  "LIBNVVM_"sv, "NVJITLINK_"sv,
                                  "NVPTX"sv,      "NVCC_"sv,          "PTXAS_"sv,    "CICC_"sv,    "EDG_"sv,
                                  "DUMP_KNOBS"sv, "LLVM_OVERRIDE_"sv, "FINALIZER_"sv};
    // Of those families, what changes messages or the compiler's own resources only.
    constexpr std::array harmless{"NVRTC_DISABLE_CONCURRENT_NVVM"sv, "NVRTC_INTERNAL_GLOBAL_LOCK"sv,
                                  "NVRTC_DISABLE_PCH"sv, "NVRTC_PCH_HEAP_SIZE"sv, "NVJITLINK_TRACE_MESSAGES"sv};
    // What people call the place of it, which no NVRTC reads.
    constexpr std::array places{"NVRTC"sv,     "NVRTC_HOME"sv, "NVRTC_PATH"sv,    "NVRTC_ROOT"sv,
                                "NVRTC_DIR"sv, "NVRTC_LIB"sv,  "NVRTC_LIBRARY"sv, "NVRTC_INCLUDE_DIR"sv};
    if (std::ranges::find(harmless, name) != harmless.end() || std::ranges::find(places, name) != places.end())
        return false;
    return std::ranges::any_of(families, [&](std::string_view f) { return name.starts_with(f); });
}

}  // namespace

trust trust_of_process() noexcept { return ::getauxval(AT_SECURE) != 0 ? trust::secure : trust::ordinary; }

std::uint64_t effective_capabilities() noexcept {
    ::__user_cap_header_struct which{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<::__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (::syscall(SYS_capget, &which, sets.data()) != 0) return 0;
    return std::uint64_t{sets[1].effective} << 32 | sets[0].effective;
}

bool is_confined() noexcept {
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return true;
    constexpr auto reads_everything = std::uint64_t{1} << CAP_DAC_OVERRIDE | std::uint64_t{1} << CAP_DAC_READ_SEARCH;
    return ::geteuid() == 0 && (effective_capabilities() & reads_everything) == 0;
}

bool computes_as_usual() noexcept {
#if defined(__x86_64__)
    constexpr unsigned small_ones_are_zero = 0x8040, rounding = 0x6000;
    if ((__builtin_ia32_stmxcsr() & (small_ones_are_zero | rounding)) != 0) return false;
#elif defined(__aarch64__)
    constexpr std::uint64_t small_ones_are_zero = 0x0108'0003, rounding = 0x00c0'0000;
    std::uint64_t control = 0;
    __asm__("mrs %0, fpcr" : "=r"(control));
    if ((control & (small_ones_are_zero | rounding)) != 0) return false;
#endif
    return std::fegetround() == FE_TONEAREST && std::string_view{::nl_langinfo(RADIXCHAR)} == ".";
}

computing_as_usual::computing_as_usual() noexcept {
    std::fegetenv(&arithmetic_);
    std::fesetenv(FE_DFL_ENV);
    // Takes no memory, and is nobody's to free. No static: a child of fork() would wait for a thread that was just making it.
    auto const c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
    if (c_locale != nullptr) language_ = ::uselocale(c_locale);
}

computing_as_usual::~computing_as_usual() {
    if (language_ != nullptr) ::uselocale(language_);
    std::fesetenv(&arithmetic_);
}

std::vector<std::string> without_threads_that_misread(std::vector<std::string> arguments) {
    auto const mine = ::uselocale(LC_GLOBAL_LOCALE);
    bool const misread = std::string_view{::nl_langinfo(RADIXCHAR)} != ".";
    ::uselocale(mine);
    if (!misread) return arguments;
    std::vector<std::string> out;
    bool is_value = false;
    for (auto& a : arguments) {
        auto const name = std::string_view{a}.substr(0, a.find('='));
        bool const splits = name == "--split-compile" || name == "-split-compile" ||
                            name == "--split-compile-extended" || name == "-split-compile-extended";
        if (!std::exchange(is_value, splits && name.size() == a.size()) && !splits) out.push_back(std::move(a));
    }
    return out;
}

std::vector<std::string> environment_for_workers(char const* const* environment, trust how) {
    std::vector<std::string> out;
    if (how == trust::secure || environment == nullptr) return out;
    for (; *environment != nullptr; ++environment) {
        if (is_passed(name_in(*environment))) out.emplace_back(*environment);
    }
    // A compile touches a hundred megabytes and more for the first time: in huge pages, where the machine gives them to who asks,
    // it takes a twentieth less.
    out.emplace_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
    return out;
}

std::string result_changing_variable(char const* const* environment) {
    if (environment == nullptr) return {};
    for (; *environment != nullptr; ++environment) {
        if (auto const name = name_in(*environment); changes_results(name)) return std::string{name};
    }
    return {};
}

result<void> check_environment(char const* const* environment, trust how) {
    if (how == trust::ordinary) return {};
    if (auto const name = result_changing_variable(environment); !name.empty()) {
        return fail(
            errc::forbidden,
            "{} is set and this program has more rights than who started it: the compiler, which would obey, is "
            "not run in it; install kiln-worker beside Kiln, or remove the variable",
            name);
    }
    return {};
}

}  // namespace kiln::compile
