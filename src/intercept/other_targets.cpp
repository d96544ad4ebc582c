// SPDX-License-Identifier: Apache-2.0
#include "intercept/other_targets.hpp"

#include <algorithm>

namespace kiln::intercept {

namespace {

using namespace std::string_view_literals;

std::string_view bare_name(std::string_view option) {
    auto const from = option.find_first_not_of('-');
    if (from == option.npos) return {};
    option.remove_prefix(from);
    return option.substr(0, option.find('='));
}

bool names_target(std::string_view option) {
    auto const name = bare_name(option);
    return option.starts_with('-') && (name == "arch"sv || name == "gpu-architecture"sv);
}

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

// "sm_90" -> "90"; empty for what has no plain number: native, sm_90a.
std::string_view number_in(std::string_view target) {
    for (auto const prefix : {"sm_"sv, "compute_"sv}) {
        if (target.starts_with(prefix) && is_number(target.substr(prefix.size()))) return target.substr(prefix.size());
    }
    return {};
}

// The macro that an option defines or takes back, "SM=80"; empty where it is about none. `next` is the option after it.
std::string_view macro_in(std::string_view option, std::string_view next) {
    auto const is_blank_or_equals = [](char c) { return c == ' ' || c == '\t' || c == '='; };
    for (auto const name : {"-D"sv, "-U"sv, "--define-macro"sv, "--undefine-macro"sv}) {
        if (!option.starts_with(name)) continue;
        auto macro = option.substr(name.size());
        while (!macro.empty() && is_blank_or_equals(macro.front())) macro.remove_prefix(1);
        return macro.empty() ? next : macro;
    }
    return {};
}

// Whether the number stands there by itself: in "sm_80", "80a", "{70,80}", and not in "1080" or "8000".
bool has_number(std::string_view text, std::string_view number) {
    auto const is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    for (auto at = text.find(number); at != text.npos; at = text.find(number, at + 1)) {
        if ((at == 0 || !is_digit(at - 1)) && !is_digit(at + number.size())) return true;
    }
    return false;
}

bool names_major(std::string name) {
    std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    return name.find("maj") != name.npos;
}

// A macro that says the architecture once more, as -D__CUDA_ARCH_LIST__=900 does: the text depends on it in a way nobody here knows.
// In its name (-DSM_80) or in its value, as 80, 800, 8.0 or the first of two numbers.
bool repeats(std::string_view macro, std::string const& number) {
    auto const major = number.substr(0, number.size() - 1);
    auto const equals = macro.find('=');
    bool const is_major =
        equals != macro.npos && macro.substr(equals + 1) == major && names_major(std::string{macro.substr(0, equals)});
    return is_major || has_number(macro, number) || has_number(macro, number + "0") ||
           has_number(macro, major + "." + number.back());
}

}  // namespace

result<std::vector<std::string>> options_for(std::span<std::string const> options, std::string_view arch) {
    auto const wanted = number_in(arch);
    if (wanted.empty())
        return fail(errc::unsupported, "'{}': requests are made again for plain architectures, sm_90 and its like",
                    arch);
    std::vector<std::string> out{options.begin(), options.end()};
    std::string number;
    int found = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!names_target(out[i])) continue;
        ++found;
        auto const equals = out[i].find('=');
        if (equals == std::string::npos && i + 1 == out.size()) break;
        auto& holder = equals == std::string::npos ? out[i + 1] : out[i];
        auto const from = equals == std::string::npos ? 0 : equals + 1;
        auto const target = holder.substr(from);
        number = number_in(target);
        if (number.empty())
            return fail(errc::unsupported, "it was asked for '{}', which says more than a plain architecture", target);
        holder.replace(from, holder.size() - from, target.substr(0, target.find('_') + 1) + std::string{wanted});
    }
    if (found != 1 || number.empty())
        return fail(errc::unsupported, "its options name {} architecture", found == 0 ? "no" : "more than one");
    for (std::size_t i = 0; i < options.size(); ++i) {
        auto const& option = options[i];
        auto const macro = macro_in(option, i + 1 < options.size() ? std::string_view{options[i + 1]} : ""sv);
        if (repeats(macro, number)) return fail(errc::unsupported, "the macro '{}' repeats the architecture", macro);
        if (bare_name(option) == "gpu-name"sv) return fail(errc::unsupported, "'{}' goes to another compiler", option);
    }
    return out;
}

}  // namespace kiln::intercept
