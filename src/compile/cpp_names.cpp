// SPDX-License-Identifier: Apache-2.0
#include "compile/cpp_names.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kiln::compile {

namespace {

// "(anonymous namespace)" and "operator()" hold parentheses too: a parameter list is the last group at the outermost level.
std::string_view without_parameters(std::string_view text) {
    if (text.empty() || text.back() != ')') return text;
    int depth = 0;
    for (auto at = text.size(); at-- > 0;) {
        if (text[at] == ')') ++depth;
        if (text[at] == '(' && --depth == 0) return text.substr(0, at);
    }
    return text;
}

// Only templates are mangled with their return type: "void scale<float>". The name begins after the last blank outside of
// any brackets.
std::string_view without_return_type(std::string_view text) {
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '<' || text[at] == '(' || text[at] == '{') ++depth;
        if (text[at] == '>' || text[at] == ')' || text[at] == '}') --depth;
        if (text[at] == ' ' && depth == 0) begin = at + 1;
    }
    return text.substr(begin);
}

}  // namespace

std::string cpp_name(std::string const& lowered) {
    if (!lowered.starts_with("_Z")) return lowered;
    int status = 0;
    std::unique_ptr<char, void (*)(void*)> const text{abi::__cxa_demangle(lowered.c_str(), nullptr, nullptr, &status),
                                                      &std::free};
    if (status != 0 || text == nullptr) return lowered;
    return std::string{without_return_type(without_parameters(text.get()))};
}

bool is_name_of(std::string_view asked, std::string const& lowered) {
    if (asked.starts_with('&')) asked.remove_prefix(1);
    return asked == lowered || asked == cpp_name(lowered);
}

}  // namespace kiln::compile
