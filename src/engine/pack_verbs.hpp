// SPDX-License-Identifier: Apache-2.0
//
// What a pack does with an engine beyond asking for units: find without compiling, load what was found, and the store's
// entry of an artifact. Each of them is here and nowhere else.
#pragma once

#include "engine/lookup.hpp"
#include "engine/pack.hpp"

#include <functional>

namespace kiln::engine_detail {

struct entry_facts {
    store::address at;
    std::string producer;
    std::string licence;
};
// The artifact as tiers and bundles keep it.
[[nodiscard]] std::shared_ptr<store::entry> entry_of(artifact const& a, entry_facts about);
[[nodiscard]] std::shared_ptr<store::entry> entry_of(made_artifact const& made, std::string producer);

// The unit's artifact and where it is kept. Blocks where it must be compiled.
[[nodiscard]] result<made_artifact> make_unit(engine& with, unit const& u, target t, wait_options wait);

// Looks in every tier and never compiles; nullopt: nobody has it. An artifact under an address of the pack's own making is
// exactly that one; a unit may be served by what is near enough to run on `device`.
[[nodiscard]] std::optional<obtained> find_kept(engine& with, store::address const& at, target const& t);
[[nodiscard]] result<std::optional<obtained>> find_kept(engine& with, unit const& u, int device);

// The unit on a device by what ships for exactly that one; nullopt where nothing does. This machine's compiler is not looked
// for, which takes milliseconds in the first process of a fresh machine.
[[nodiscard]] result<std::optional<ready_unit>> load_shipped(engine& with, unit const& u, int device,
                                                             wait_options const& wait);
// That, or what the engine finds or makes.
[[nodiscard]] result<ready_unit> shipped_or_made(engine& with, unit const& u, int device, wait_options const& wait);

// Loaded once per process and device under `what.id.request`; name and target are for events and status. What the driver
// refuses although it passed every check is forgotten everywhere and made anew, once; what was just made is not.
[[nodiscard]] result<ready_unit> load_or_make_anew(engine::state& with, subject const& what, made_artifact const& found,
                                                   int device, std::function<result<obtained>()> const& make_anew);

}  // namespace kiln::engine_detail
