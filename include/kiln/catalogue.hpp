// SPDX-License-Identifier: Apache-2.0
//
// The specialisations of all packs in this program by name: what `kiln list` shows and what a demand may name. Reading the
// list starts nothing; artifact_of_sync() finds or compiles one for any target and needs no GPU. A program linked with
// libkiln.a has the packs it asked for: kiln::kiln_static of CMake asks for all.
#pragma once

#include <kiln/engine.hpp>

#include <span>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

struct spec {
    std::string name;                       // "exclusive_scan_i32"
    std::string kind = {};                  // "exclusive_scan"
    std::vector<std::string> types = {};    // {"u64", "i32"}: keys before values
    std::string by = {};                    // operator: "plus", "less", ...; empty where there is none
    std::vector<std::string> kernels = {};  // entry points
    std::string pack = {};                  // "prims"
};

// Pack by pack in order of their names, within one as the pack lists them; the same ever after.
[[nodiscard]] std::span<spec const> catalogue();
// nullptr: there is none of this name.
[[nodiscard]] spec const* find_spec(std::string_view name);

// Blocks where it must be compiled. errc::not_found for an unknown name, with what there is.
[[nodiscard]] result<obtained> artifact_of_sync(std::string_view spec_name, target t, engine& with = engine::process(),
                                                wait_options wait = {});
// Loads it on a device too, for as long as the engine lives, so that the first handle of this kind costs nothing.
[[nodiscard]] result<void> prepare_sync(std::string_view spec_name, int device = 0, engine& with = engine::process());

}  // namespace kiln
