// SPDX-License-Identifier: Apache-2.0
//
// Where finished primitives are kept and found. Their addresses leave the headers out: what Kiln ships was sealed when it
// was built, and what is made here from the carried headers depends on nothing else on the machine. So one lookup
// answers, without hashing a megabyte of CUB.
#pragma once

#include "prims/request.hpp"
#include "store/store.hpp"

#include <kiln/engine.hpp>

namespace kiln::prims {

// Whose compiler counts: nobody's for what is shipped.
inline constexpr std::string_view any_toolchain = "shipped";
[[nodiscard]] store::address address_of(base::digest const& family, target const& t, std::string_view toolchain);

// The artifact as an entry to keep; what it was compiled from is left out.
[[nodiscard]] store::entry entry_of(artifact const& a, store::address const& at, std::string_view name);

// In the library, in the files beside it, then in the engine's own tiers (KILN_BUNDLES); nullopt: not shipped.
[[nodiscard]] std::optional<obtained> find_shipped(store::store& more, base::digest const& family, target const& t);
[[nodiscard]] std::optional<obtained> find_at(store::store& where, store::address const& at, target const& t);

// Targets whose cubins run on `device`, best first: itself, then older ones of the same generation.
[[nodiscard]] std::vector<target> nearest_targets(arch device);

// "prims-sm_90.kiln": templates of one architecture, beside the library.
[[nodiscard]] std::string template_file_name(arch a);

// Architectures that ready cubins are made for.
[[nodiscard]] std::vector<arch> shipped_archs();

}  // namespace kiln::prims
