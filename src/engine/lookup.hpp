// SPDX-License-Identifier: Apache-2.0
//
// From a unit and a target to an artifact in the store: exactly what was asked for, the same made by another compiler
// (bundles), or the nearest that may run. No compiling here.
#pragma once

#include "compile/includes.hpp"
#include "compile/keys.hpp"
#include "store/store.hpp"

#include <kiln/engine.hpp>

namespace kiln::engine_detail {

struct subject {
    std::string name;
    kiln::target target;
    compile::identity id;
    std::string toolchain;  // empty: no compiler on this machine
    compile::include_roots roots;
    std::optional<kiln::arch> device;  // set when the artifact is to be loaded: then something near may do
};

struct found_artifact {
    artifact_ptr what;  // null on a miss
    provenance from = provenance::memory;
    store::address at;
    std::string reason;  // on a miss, a stable code: absent, header-changed, ...
    std::string detail;  // prose
};

// "memory, disk (/home/ann/.cache/kiln), 2 bundles": for error messages.
[[nodiscard]] std::string describe_tiers(store::store& where);

// What absent headers mean for an entry that comes from there. A fleet has whatever version was published first, and so seals no
// headers but the toolkit's.
[[nodiscard]] compile::absent_headers rule_for(store::origin const& from) noexcept;

// What a tier at this place gives is said to come from there.
[[nodiscard]] provenance provenance_of(store::location where) noexcept;

// explain: nothing is counted, renewed or copied.
enum class purpose { serve, explain };
[[nodiscard]] found_artifact look_up(store::store& where, subject const& what, purpose why = purpose::serve);

// What came from further away later: decoded and its headers compared, by the rules of where it came from. Nothing is counted.
[[nodiscard]] found_artifact accept(store::store& where, subject const& what, store::found const& found);

// What ships for exactly this target, whichever compiler made it: `what` needs no toolchain, so that none is looked for.
[[nodiscard]] found_artifact look_up_shipped(store::store& where, subject const& what);

// Something that can be turned into what is needed without the source: LTO-IR to link, or PTX for the driver to compile.
[[nodiscard]] found_artifact look_up_portable(store::store& where, subject const& what, artifact_kind kind);

}  // namespace kiln::engine_detail
