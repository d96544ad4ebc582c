// SPDX-License-Identifier: Apache-2.0
//
// The specialisations Kiln ships by name: what `kiln list` shows and what a demand may name. Reading the list costs
// nothing; artifact_of() finds or compiles one for any target and needs no GPU.
#pragma once

#include <kiln/engine.hpp>

#include <span>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

struct spec {
    std::string name;                  // "exclusive_scan_i32"
    std::string kind;                  // "exclusive_scan"
    std::vector<std::string> types;    // {"u64", "i32"}: keys before values
    std::string by;                    // operator: "plus", "less", ...; empty where there is none
    std::vector<std::string> kernels;  // entry points
    std::string pack;                  // "prims"
};

// In the order of their names' first appearance; the same ever after.
[[nodiscard]] std::span<spec const> catalogue();
// nullptr: there is none of this name.
[[nodiscard]] spec const* find_spec(std::string_view name);

// Blocks where it must be compiled. errc::not_found for an unknown name, with what there is.
[[nodiscard]] result<obtained> artifact_of_sync(std::string_view spec_name, target t, engine& with = engine::process(),
                                                wait_options wait = {});
// Loads it on a device too, so that the first handle of this kind costs nothing.
[[nodiscard]] result<void> prepare_sync(std::string_view spec_name, int device = 0, engine& with = engine::process());

}  // namespace kiln
