// SPDX-License-Identifier: Apache-2.0
// Architectures as people write them, in build systems too, and what they stand for.
#pragma once

#include <kiln/target.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace kiln::cli {

// What there is to choose from; each is asked only for a word that needs it.
struct known_archs {
    std::function<result<std::vector<int>>()> of_compiler;  // 75, 80, ..., in order
    std::function<result<std::vector<arch>>()> of_machine;
};

// "90", "sm_90a", "compute_90" (PTX), "90-real", "90-virtual" (PTX), "80-90" (all between), "native", "all", "all-major". With a kind,
// that kind of each.
[[nodiscard]] result<std::vector<target>> targets_of_word(std::string_view word, std::optional<artifact_kind> kind,
                                                          known_archs const& known);

// All that several words stand for on this machine and with its compiler, each once: --arch of every command.
[[nodiscard]] result<std::vector<target>> targets_of_words(std::vector<std::string> const& words,
                                                           std::optional<artifact_kind> kind = std::nullopt);

}  // namespace kiln::cli
