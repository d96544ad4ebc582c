// SPDX-License-Identifier: Apache-2.0
//
// A pack: units, specialisations and operations that ship together. It is one static object, made from one folder in each of
// kernels/, src/, include/kiln/, tests/ and bench/ and one line in src/CMakeLists.txt (kiln_pack). Being linked registers a
// pointer, and what ships of it with every engine; nothing is read or started. Commands and demands ask packs() and know
// none of them by name.
#pragma once

#include "base/embedded_file.hpp"
#include "engine/recipe.hpp"
#include "store/tier.hpp"

#include <kiln/catalogue.hpp>

#include <mutex>
#include <span>

namespace KILN_PUBLIC kiln {
class operation;  // what they are is known to runtime and warmup; a pack says which are its own
class requirement;
}  // namespace kiln

namespace kiln::engine_detail {

struct made_artifact {
    obtained got;
    store::address at;  // where it is kept
    std::string licence;
};

struct pack_facts {
    std::string_view name;                  // of its folders, and the kind of its recipes: profiles hold it
    std::span<embedded::file const> ships;  // what the build made of it: every *.kiln is a bundle
    std::span<operation const* const> operations = {};
    // What its operations need beyond what their variants say: by family, by size. Named here, an archive brings them along.
    std::span<requirement const* const> requirements = {};
};

class pack {
public:
    // Packs are static and never die before the engines.
    explicit pack(pack_facts const& about);
    pack(pack const&) = delete;
    pack& operator=(pack const&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return about_.name; }
    [[nodiscard]] std::span<operation const* const> operations() const noexcept { return about_.operations; }
    [[nodiscard]] std::span<requirement const* const> requirements() const noexcept { return about_.requirements; }

    // What a demand may name, in a stable order.
    [[nodiscard]] virtual std::vector<spec> const& specs() const = 0;
    // Each of its plain units once, where it is made of such: several names may share one. Else empty.
    [[nodiscard]] virtual std::vector<unit> const& units() const;
    // errc::not_found or errc::corrupt for a recipe of another time.
    [[nodiscard]] virtual result<made_artifact> make(engine& with, recipe const& what, target t,
                                                     wait_options wait) const = 0;
    // Loaded, kernels resolved; what is returned keeps it so.
    [[nodiscard]] virtual result<std::shared_ptr<void const>> load(engine& with, recipe const& what, int device,
                                                                   wait_options wait) const = 0;

    [[nodiscard]] spec const* find_spec(std::string_view name) const;
    // A recipe is its name; nullopt: no name of this pack.
    [[nodiscard]] std::optional<recipe> find(std::string_view name) const;
    [[nodiscard]] std::vector<recipe> recipes() const;

protected:
    ~pack() = default;

private:
    pack_facts about_;
};

// A pack of plain units: a list of names is all there is to write. Names may share a unit, known by its own name.
struct named_unit {
    spec about;
    unit what;
};

class unit_pack final : public pack {
public:
    // `list` is called once, at the first need.
    unit_pack(pack_facts const& about, std::vector<named_unit> (*list)()) : pack{about}, list_{list} {}

    [[nodiscard]] std::vector<spec> const& specs() const override { return all().specs; }
    [[nodiscard]] std::vector<unit> const& units() const override { return all().units; }
    // nullptr: no name of this pack.
    [[nodiscard]] unit const* find_unit(std::string_view spec_name) const;
    [[nodiscard]] result<made_artifact> make(engine& with, recipe const& what, target t,
                                             wait_options wait) const override;
    [[nodiscard]] result<std::shared_ptr<void const>> load(engine& with, recipe const& what, int device,
                                                           wait_options wait) const override;

private:
    struct contents {
        std::vector<spec> specs;
        std::vector<unit> units;
        std::vector<std::size_t> unit_of;  // of each spec
    };
    [[nodiscard]] contents const& all() const;
    [[nodiscard]] result<unit const*> unit_named(recipe const& what) const;

    std::vector<named_unit> (*list_)();
    mutable std::once_flag once_;
    mutable contents const* all_ = nullptr;  // never destroyed: threads of an engine may ask until the very end
};

// In order of their names.
[[nodiscard]] std::vector<pack const*> packs();
[[nodiscard]] pack const* find_pack(std::string_view name);
// The same; errc::not_found with what there is.
[[nodiscard]] result<pack const*> pack_named(std::string_view name);
// Any pack's; errc::not_found with what there is.
[[nodiscard]] result<recipe> find_recipe(std::string_view spec);

}  // namespace kiln::engine_detail

// In the file that holds the pack's object. Whoever refers to kiln_has_<name>, or has the linker ask for it, links the pack
// and what ships of it, also from an archive; kiln_has_packs stands for all of libkiln's.
#define KILN_PACK(name)                  \
    extern "C" void kiln_has_##name();   \
    extern "C" void kiln_has_##name() {} \
    static_assert(true)
