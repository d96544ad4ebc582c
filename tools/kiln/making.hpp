// SPDX-License-Identifier: Apache-2.0
// Recipes for targets, made ready through one engine with a bar: what warm, replay and demo share.
#pragma once

#include "command.hpp"

#include "engine/engine_state.hpp"
#include "engine/pack.hpp"
#include "store/bundle.hpp"
#include "warmup/profile_file.hpp"

namespace kiln::cli {

struct thing {
    engine_detail::recipe by;
    target for_target;
    double expected_ms = 0;  // what it cost when it was recorded; 0: not known

    // Afterwards:
    std::optional<result<engine_detail::made_artifact>> answer = {};
    std::optional<provenance> from = {};  // where it came from, before it was in memory
    double ready_ms = 0;
    double compile_ms = 0;
};

// errc::not_found with the remedy for names and packs that do not exist.
[[nodiscard]] result<std::vector<engine_detail::recipe>> recipes_named(std::vector<std::string> const& names);
[[nodiscard]] result<std::vector<engine_detail::recipe>> recipes_of_pack(std::string const& pack);
[[nodiscard]] std::vector<engine_detail::recipe> recipes_of_everything();

// What a profile lists, for the architectures it was recorded on or for those that the words stand for.
[[nodiscard]] result<std::vector<thing>> things_of(warmup::profile const& from, std::vector<std::string> const& archs);

// Every answer is set; returns how many failed. `title` of the bar.
std::size_t make_all(engine& e, std::vector<thing>& things, std::string const& title);

// What can be bundled of them.
[[nodiscard]] result<void> write_bundle(engine& e, std::vector<thing> const& things, std::string const& file,
                                        std::string const& sign);

[[nodiscard]] json describe(thing const& t);
// Name, target, from, ms, size; one line for each that did not fail.
[[nodiscard]] std::string table_of(std::vector<thing> const& things);
void complain_about(std::vector<thing> const& things);

}  // namespace kiln::cli
