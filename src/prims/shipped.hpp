// SPDX-License-Identifier: Apache-2.0
//
// Where finished primitives are kept and found. Their addresses leave the headers out: what Kiln ships was sealed when it
// was built, and what is made here from the carried headers depends on nothing else on the machine. So one lookup
// answers, without hashing a megabyte of CUB.
#pragma once

#include "engine/pack_verbs.hpp"
#include "prims/request.hpp"
#include "prims/routes.hpp"

namespace kiln::prims {

inline constexpr std::string_view licence = "Apache-2.0 WITH LLVM-exception";

[[nodiscard]] store::address address_of(base::digest const& family, target const& t, std::string_view toolchain);
// The same whoever compiled it.
[[nodiscard]] store::address shipped_address(base::digest const& family, target const& t);
// LTO-IR is read by linkers of the CUDA that made it: 12, 13.
[[nodiscard]] store::address template_address(base::digest const& family, target const& t, int cuda_major);
// Of the machine's linker; 0: there is none, or its file does not tell.
[[nodiscard]] int linker_major(engine& with);

// The artifact as an entry to keep; what it was compiled from is left out.
[[nodiscard]] std::shared_ptr<store::entry> entry_at(store::address const& at, artifact a, engine& with);

// Shipped with the library, beside it, or in a bundle of the program's; nullopt: not shipped.
[[nodiscard]] std::optional<engine_detail::made_artifact> find_shipped(engine& with, base::digest const& family,
                                                                       target const& t, closeness how);
// A template this machine's linker can read.
[[nodiscard]] std::optional<engine_detail::made_artifact> find_shipped_template(engine& with, request const& what,
                                                                                target const& ir);

}  // namespace kiln::prims
