// SPDX-License-Identifier: Apache-2.0
#include "compile/known_phrases.hpp"

#include <algorithm>
#include <array>

namespace kiln::compile {

namespace {

using namespace std::string_view_literals;

// Of the toolkit 12.4 to 13.0, of CCCL 2.3 to 3.5 and of CuPy 14.
constexpr std::array phrases{
    // Names of files in messages.
    "__assertfail(__ASSERT_STR_HELPER(e), __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char))"sv,
    "__assertfail(message, __FILE__, __LINE__, __func__, sizeof(char))"sv,
    "__assert_fail(message, __FILE__, __LINE__, __func__)"sv,
    "__assert_rtn(__func__, __FILE__, __LINE__, __message__)"sv,
    "__assert_rtn(__func__, __FILE__, __LINE__, message)"sv,
    "__assert2(__FILE__, __LINE__, __func__, message)"sv,
    "_wassert(_CRT_WIDE(#message), __FILEW__, __LINE__)"sv,
    "::_CUDA_VSTD::__libcpp_verbose_abort(\"%s:%d: assertion %s failed: %s\", __FILE__, __LINE__, #expression, message)"sv,
    "__cccl_debug_info(__FILE__, __LINE__, \"p == nullptr\","sv,
    "__libcpp_debug_info(__FILE__, __LINE__, \"p == nullptr\","sv,
    "_CCCL_PRAGMA(message(__FILE__ \":\" _CCCL_TO_STRING(__LINE__) \": warning: \""sv,
    "__pragma(message(__FILE__ \":\" CUB_COMP_DEPR_IMPL0(__LINE__) \": warning: \""sv,
    "__pragma(message(__FILE__ \":\" THRUST_COMP_DEPR_IMPL0(__LINE__) \": warning: \""sv,
    "__pragma(message(__FILE__ \"(\" _LIBCUDACXX_TOSTRING(__LINE__) \") : warning note: \""sv,
    "asm volatile(\".pragma \\\"\\n\" __FILE__ \"(\" _CCCL_TO_STRING(__LINE__) \"): %0\""sv,
    "CUB_NS_QUALIFIER::Debug((cudaError_t) (e), __FILE__, __LINE__)"sv,
    "cub::Debug(error, __FILE__, __LINE__)"sv,
    "MDSPAN_IMPL_STANDARD_NAMESPACE::detail::precondition(#__VA_ARGS__, __FILE__, __LINE__)"sv,
    "::fprintf(stderr, \"%s:%u: An instance of class %s would be thrown.\\n what(): %s\\nAborted\\n\", __FILE__, __LINE__, #_TYPE,"sv,
    // CCCL's own way to a name, for who says "source_location" or "_CCCL_BUILTIN_FILE"; its errors on the host do.
    "_CCCL_HAS_BUILTIN(__builtin_FILE)"sv,
    "#define _CCCL_BUILTIN_FILE() __builtin_FILE()"sv,
    "#define _CCCL_BUILTIN_FILE() __FILE__"sv,
    "#undef _CCCL_BUILTIN_FILE"sv,
    "class source_location"sv,
    "explicit constexpr source_location("sv,
    "constexpr source_location() = default;"sv,
    "static constexpr source_location current("sv,
    "const char* __file = _CCCL_BUILTIN_FILE(),"sv,
    "return source_location{__file, __func, __line, __column};"sv,
    "#include <cuda/std/source_location>"sv,
    "#define __cccl_lib_source_location"sv,
    "__cpp_lib_source_location 201907L <source_location>"sv,
    "_CUDA_VSTD::source_location __loc = _CUDA_VSTD::source_location::current()"sv,
    "_CUDA_VSTD::source_location = _CUDA_VSTD::source_location::current()"sv,
    "::cuda::std::source_location __loc = ::cuda::std::source_location::current()"sv,
    "::cuda::std::source_location = ::cuda::std::source_location::current()"sv,
    // Underscores in front of names of their own.
    "__annotate__(__##a##__)"sv,
    "__has_builtin(__##__x) || __has_keyword(__##__x)"sv,
    "_CCCL_HAS_BUILTIN(__##__x) || _CCCL_HAS_KEYWORD(__##__x)"sv,
    "_LIBCUDACXX_CONCAT(__, _LIBCUDACXX_CUDA_ABI_VERSION)"sv,
    "_LIBCUDACXX_CONCAT(__, _LIBCUDACXX_ABI_VERSION)"sv,
    "_CCCL_PP_CAT(__, _LIBCUDACXX_CUDA_ABI_VERSION)"sv,
    "_LIBCUDACXX_PIPELINE_CONCAT2(__, _LIBCUDACXX_PIPELINE_ASSUMED_ABI_VERSION)"sv,
    "_CCCL_PP_SPLICE_WITH(_, CUB, "sv,
    "_CCCL_PP_SPLICE_WITH(_, THRUST, "sv,
    "_CCCL_PP_SPLICE_WITH(_, _SM, "sv,
    "_CCCL_PP_TAIL(_, ...)"sv,
    "_CCCL_PP_SECOND(_, second, ...)"sv,
    "_CCCL_PP_CAT(_, _N)"sv,
    "_NV_CONCAT_EVAL(_, __VA_ARGS__)"sv,
    "(int _{};"sv,
    "cudaOccupancyMaxPotentialBlockSize(&_,"sv,
    "suffixes not preceded by \xe2\x80\x98_\xe2\x80\x99 are reserved"sv,
    "elect.sync _|"sv,
    ".b64 _,"sv,
    "a user-provided literal suffix must begin with \"_\""sv,
    "##_()"sv,
    "##_##P"sv,
    "__storage##_##sc##size##loc"sv,
    "custom types and __[u]int128"sv,
};

constexpr bool is_of_a_word(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

std::string squeezed(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    bool is_apart = false;
    for (auto const c : text) {
        bool const is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!is_blank && is_apart && !out.empty() && is_of_a_word(out.back()) && is_of_a_word(c)) out += ' ';
        if (!is_blank) out += c;
        is_apart = is_blank;
    }
    return out;
}

// One that begins in the middle of somebody's word, or in somebody's namespace, is another.
bool begins_at(std::string_view text, std::size_t at, std::string_view phrase) {
    if (at == 0 || !is_of_a_word(phrase.front())) return true;
    return !is_of_a_word(text[at - 1]) && !(text[at - 1] == ':' && phrase.find("::") != phrase.npos);
}

void erase_all(std::string& text, std::string_view phrase) {
    for (auto at = text.find(phrase); at != text.npos; at = text.find(phrase, at)) {
        if (begins_at(text, at, phrase)) text.replace(at, phrase.size(), " ");
        ++at;
    }
}

}  // namespace

std::string without_known_phrases(std::string_view text) {
    auto out = squeezed(text);
    for (auto const phrase : phrases) erase_all(out, squeezed(phrase));
    return out;
}

}  // namespace kiln::compile
