// SPDX-License-Identifier: Apache-2.0
#include "compile/standard_headers.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace kiln::compile {

namespace {

// What these say, the compiler knows without any header.
struct own_header {
    std::string_view name;
    std::string_view text;
};
// <cuda/std/cfloat> leaves it to the host's, and NVRTC has none. On devices a long double is a double.
constexpr std::string_view float_h = R"(#pragma once
#define FLT_RADIX 2
#define FLT_ROUNDS 1
#define FLT_EVAL_METHOD 0
#define DECIMAL_DIG 17
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_EXP 128
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.40282346638528859811704183484516925e+38F
#define FLT_MIN 1.17549435082228750796873653722224568e-38F
#define FLT_EPSILON 1.19209289550781250000000000000000000e-7F
#define FLT_TRUE_MIN 1.40129846432481707092372958328991613e-45F
#define FLT_HAS_SUBNORM 1
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_DECIMAL_DIG 17
#define DBL_MIN_EXP (-1021)
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_EXP 1024
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.79769313486231570814527423731704357e+308
#define DBL_MIN 2.22507385850720138309023271733240406e-308
#define DBL_EPSILON 2.22044604925031308084726333618164062e-16
#define DBL_TRUE_MIN 4.94065645841246544176568792868221372e-324
#define DBL_HAS_SUBNORM 1
#define LDBL_MANT_DIG DBL_MANT_DIG
#define LDBL_DIG DBL_DIG
#define LDBL_DECIMAL_DIG DBL_DECIMAL_DIG
#define LDBL_MIN_EXP DBL_MIN_EXP
#define LDBL_MIN_10_EXP DBL_MIN_10_EXP
#define LDBL_MAX_EXP DBL_MAX_EXP
#define LDBL_MAX_10_EXP DBL_MAX_10_EXP
#define LDBL_MAX DBL_MAX
#define LDBL_MIN DBL_MIN
#define LDBL_EPSILON DBL_EPSILON
#define LDBL_TRUE_MIN DBL_TRUE_MIN
#define LDBL_HAS_SUBNORM 1
)";

constexpr std::array own_headers{
    own_header{"cassert", "#include <assert.h>\n"},
    // No guard: NDEBUG counts anew each time, as C has it.
    own_header{"assert.h",
               "#undef assert\n"
               "#ifdef NDEBUG\n"
               "#define assert(...) ((void)0)\n"
               "#else\n"
               "#define assert(...) ((__VA_ARGS__) ? (void)0 : __assertfail(#__VA_ARGS__, __FILE__, __LINE__, "
               "__PRETTY_FUNCTION__, sizeof(char)))\n"
               "#endif\n"},
    own_header{"cstdio", "#pragma once\nnamespace std { using ::printf; }\n"},
    own_header{"stdio.h", "#pragma once\n"},
    own_header{"cfloat", "#include <float.h>\n"},
    own_header{"float.h", float_h},
    own_header{"math.h", "#pragma once\n"},
    own_header{"new", "#pragma once\n"},
};

// Where <cuda/std/NAME> has another name, is not meant to be named, or is C's.
struct other_name {
    std::string_view name;
    std::string_view in_cuda_std;
};
constexpr std::array other_names{
    other_name{"algorithm", "__algorithm_"}, other_name{"stdint.h", "cstdint"}, other_name{"stddef.h", "cstddef"},
    other_name{"limits.h", "climits"},       other_name{"stdlib.h", "cstdlib"}, other_name{"string.h", "cstring"},
    other_name{"time.h", "ctime"},
};

// Of the library of C++23, what <cuda/std/...> has of others, and of C's what has a use in kernels.
constexpr std::string_view all_names[] = {
    "algorithm",
    "any",
    "array",
    "assert.h",
    "atomic",
    "barrier",
    "bit",
    "bitset",
    "cassert",
    "ccomplex",
    "cctype",
    "cerrno",
    "cfenv",
    "cfloat",
    "charconv",
    "chrono",
    "cinttypes",
    "climits",
    "clocale",
    "cmath",
    "codecvt",
    "compare",
    "complex",
    "concepts",
    "condition_variable",
    "coroutine",
    "csetjmp",
    "csignal",
    "cstdarg",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "ctime",
    "cuchar",
    "cwchar",
    "cwctype",
    "deque",
    "exception",
    "execution",
    "expected",
    "filesystem",
    "flat_map",
    "flat_set",
    "float.h",
    "format",
    "forward_list",
    "fstream",
    "functional",
    "future",
    "generator",
    "initializer_list",
    "inplace_vector",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "iterator",
    "latch",
    "limits",
    "limits.h",
    "linalg",
    "list",
    "locale",
    "map",
    "math.h",
    "mdspan",
    "memory",
    "memory_resource",
    "mutex",
    "new",
    "numbers",
    "numeric",
    "optional",
    "ostream",
    "print",
    "queue",
    "random",
    "ranges",
    "ratio",
    "regex",
    "scoped_allocator",
    "semaphore",
    "set",
    "shared_mutex",
    "source_location",
    "span",
    "spanstream",
    "sstream",
    "stack",
    "stacktrace",
    "stddef.h",
    "stdexcept",
    "stdfloat",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "stop_token",
    "streambuf",
    "string",
    "string.h",
    "string_view",
    "strstream",
    "syncstream",
    "system_error",
    "thread",
    "time.h",
    "tuple",
    "type_traits",
    "typeindex",
    "typeinfo",
    "unordered_map",
    "unordered_set",
    "utility",
    "valarray",
    "variant",
    "vector",
    "version",
};
static_assert(std::ranges::is_sorted(all_names));

bool is_in(std::span<std::string const> toolkit, std::string_view cuda_std_name) {
    return std::ranges::any_of(toolkit, [&](std::string const& directory) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(fmt::format("{}/cuda/std/{}", directory, cuda_std_name), ignored);
    });
}

constexpr std::string_view own_root = "/.kiln/standard/own/";
constexpr std::string_view forwarding_root = "/.kiln/standard/cuda/";

}  // namespace

bool is_standard_header(std::string_view name) { return std::ranges::binary_search(all_names, name); }

std::string find_standard_header(std::string_view name, std::span<std::string const> toolkit) {
    if (!is_standard_header(name)) return {};
    if (std::ranges::find(own_headers, name, &own_header::name) != own_headers.end())
        return fmt::format("{}{}", own_root, name);
    // cuda/std looks for <version> itself, to learn of the host's library.
    if (name != "version" && is_in(toolkit, name)) return fmt::format("{}{}", forwarding_root, name);
    auto const other = std::ranges::find(other_names, name, &other_name::name);
    if (other == other_names.end() || !is_in(toolkit, other->in_cuda_std)) return {};
    return fmt::format("{}{}", forwarding_root, other->in_cuda_std);
}

bool is_standard_header_path(std::string_view path) noexcept {
    return path.starts_with(own_root) || path.starts_with(forwarding_root);
}

std::optional<std::string> read_standard_header(std::string_view path) {
    if (path.starts_with(own_root)) {
        auto const own = std::ranges::find(own_headers, path.substr(own_root.size()), &own_header::name);
        return own == own_headers.end() ? std::nullopt : std::optional{std::string{own->text}};
    }
    if (!path.starts_with(forwarding_root)) return std::nullopt;
    // A directive, not declarations: what the compiler itself has in std, such as std::move, stays what is found first.
    // Some of them, such as <cuda/std/climits>, declare nothing.
    return fmt::format(
        "#pragma once\n#include <cuda/std/{}>\nnamespace cuda {{ namespace std {{}} }}\n"
        "namespace std {{ using namespace cuda::std; }}\n",
        path.substr(forwarding_root.size()));
}

std::string missing_header_advice(std::string_view log, std::span<std::string const> toolkit) {
    constexpr std::string_view words = "open source file \"";
    auto const at = log.find(words);
    if (at == log.npos) return {};
    auto const rest = log.substr(at + words.size());
    auto const name = rest.substr(0, rest.find('"'));
    bool const of_cccl = name.starts_with("cuda/std/") || name.starts_with("cub/") || name.starts_with("thrust/");
    if (of_cccl || (is_standard_header(name) && !is_in(toolkit, "cstdint")))
        return fmt::format(
            "; <{}> needs the CUDA toolkit's headers (CCCL), and {}: install them ('pip install "
            "nvidia-cuda-cccl', or the toolkit), or set KILN_CUDA_PATH",
            name, toolkit.empty() ? "none were found" : "those found do not have it");
    if (is_standard_header(name) && is_in(toolkit, name))
        return fmt::format("; for devices it is <cuda/std/{}>: include that", name);
    if (is_standard_header(name))
        return fmt::format(
            "; <{}> is of the host's C++ library, and neither the compiler nor <cuda/std/...> has one for "
            "devices; there are <array>, <span>, <tuple>, <optional>, <type_traits> and others",
            name);
    return "; add its directory to the unit's include_dirs (kiln compile -I) or its text to its headers";
}

}  // namespace kiln::compile
