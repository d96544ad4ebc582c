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

// A macro that says the architecture once more, as -D__CUDA_ARCH_LIST__=900 does: the text depends on it in a way nobody here knows.
bool repeats(std::string_view option, std::string_view number) {
    auto const name = bare_name(option);
    bool const defines = name.starts_with('D') || name == "define-macro"sv;
    auto const equals = option.rfind('=');
    if (!defines || equals == option.npos) return false;
    auto const value = option.substr(equals + 1);
    return value == number || value == std::string{number} + "0";
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
    for (auto const& option : options) {
        if (repeats(option, number)) return fail(errc::unsupported, "'{}' repeats the architecture", option);
        if (bare_name(option) == "gpu-name"sv) return fail(errc::unsupported, "'{}' goes to another compiler", option);
    }
    return out;
}

}  // namespace kiln::intercept
