// SPDX-License-Identifier: Apache-2.0
#include "arch_words.hpp"

#include "base/check.hpp"
#include "base/config.hpp"
#include "compile/toolchain.hpp"
#include "cuda/library_search.hpp"
#include "cuda/nvrtc_api.hpp"

#include <kiln/device.hpp>

#include <algorithm>

namespace kiln::cli {

namespace {

result<target> one(std::string_view text, std::optional<artifact_kind> kind) {
    KILN_TRY(auto const a, arch::parse(text));
    return target::make(a, kind.value_or(a.is_virtual() ? artifact_kind::ptx : artifact_kind::cubin));
}

// Those that are, and PTX of the last for what is to come: as CMake has it.
result<std::vector<target>> every(std::vector<int> const& numbers, std::optional<artifact_kind> kind) {
    std::vector<target> out;
    for (int const n : numbers) {
        KILN_TRY(auto const t, one(std::to_string(n), kind));
        out.push_back(t);
    }
    if (!numbers.empty() && !kind) {
        KILN_TRY(auto const t, one(fmt::format("compute_{}", numbers.back()), artifact_kind::ptx));
        out.push_back(t);
    }
    return out;
}

result<std::vector<target>> between(std::string_view first, std::string_view last, std::optional<artifact_kind> kind,
                                    known_archs const& known) {
    KILN_TRY(auto const low, arch::parse(first));
    KILN_TRY(auto const high, arch::parse(last));
    if (low.variant() != '\0' || high.variant() != '\0' || low.is_virtual() || high.is_virtual())
        return fail(errc::invalid_argument, "'{}-{}': a range is of plain architectures: 80-90", first, last);
    KILN_TRY(auto const numbers, known.of_compiler());
    std::vector<target> out;
    for (int const n : numbers) {
        if (n < low.number() || n > high.number()) continue;
        KILN_TRY(auto const t, one(std::to_string(n), kind));
        out.push_back(t);
    }
    if (out.empty())
        return fail(errc::invalid_argument, "'{}-{}': the compiler knows no architecture between them", first, last);
    return out;
}

}  // namespace

result<std::vector<target>> targets_of_word(std::string_view word, std::optional<artifact_kind> kind,
                                            known_archs const& known) {
    if (word == "native") {
        KILN_TRY(auto const here, known.of_machine());
        std::vector<target> out;
        for (auto const& a : here) {
            KILN_TRY(auto const t, target::make(a, kind.value_or(artifact_kind::cubin)));
            out.push_back(t);
        }
        return out;
    }
    if (word == "all" || word == "all-major") {
        KILN_TRY(auto numbers, known.of_compiler());
        if (word == "all-major" && !numbers.empty()) {
            // The first of each major: 75 where there is no 70.
            std::vector<int> majors;
            for (int const n : numbers) {
                if (majors.empty() || majors.back() / 10 != n / 10) majors.push_back(n);
            }
            numbers = std::move(majors);
        }
        return every(numbers, kind);
    }
    auto const dash = word.find('-');
    auto const first = word.substr(0, dash);
    auto const rest = dash == word.npos ? std::string_view{} : word.substr(dash + 1);
    if (dash != word.npos && rest != "real" && rest != "virtual") return between(first, rest, kind, known);
    auto const text =
        rest == "virtual" && !first.starts_with("compute_") ? fmt::format("compute_{}", first) : std::string{first};
    auto made = rest == "real" ? one(text, kind.value_or(artifact_kind::cubin)) : one(text, kind);
    if (!made) return std::move(made).error();
    return std::vector{*made};
}

namespace {

// Loads the compiler: only for words that mean what it knows.
result<std::vector<int>> known_to_compiler() {
    cuda::library_search const search{cuda::search_environment::process(base::config::load())};
    KILN_TRY(auto const tool, compile::find_nvrtc(search));
    KILN_TRY(auto const api, cuda::load_nvrtc(tool.path));
    return api->supported_archs();
}

result<std::vector<arch>> of_devices() {
    auto all = devices();
    if (!all) return std::move(all).error().within("'native' is the architecture of this machine's GPU");
    std::vector<arch> out;
    for (auto const& d : *all) {
        auto const a = arch::of_device(d.major, d.minor);
        if (std::ranges::find(out, a) == out.end()) out.push_back(a);
    }
    return out;
}

}  // namespace

result<std::vector<target>> targets_of_words(std::vector<std::string> const& words, std::optional<artifact_kind> kind) {
    known_archs const known{known_to_compiler, of_devices};
    std::vector<target> out;
    for (auto const& word : words) {
        KILN_TRY(auto const meant, targets_of_word(word, kind, known));
        for (auto const& t : meant) {
            if (std::ranges::find(out, t) == out.end()) out.push_back(t);
        }
    }
    return out;
}

}  // namespace kiln::cli
