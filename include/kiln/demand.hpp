// SPDX-License-Identifier: Apache-2.0
//
// Saying what will be needed, before it is. demand() never blocks: it copies what it is given and returns; everything else
// (finding, compiling in worker processes, loading, resolving) happens in the background, once per unit and target,
// however many consumers ask. Failures stay in status() until somebody asks for the unit itself. On a machine without a
// GPU a demand does nothing unless it names targets: no thread, no process, no file. Safe from any thread.
//
//     KILN_REQUIRES(sjoin, "select_i32", "exclusive_scan_i32", pip);   // beside the code that uses them; costs nothing
//     sjoin_requires.demand();                                         // when that code becomes likely
//     kiln::demand({pip, "select_i32"});                               // or directly
#pragma once

#include <kiln/engine.hpp>

#include <initializer_list>
#include <span>

namespace KILN_PUBLIC kiln {

namespace engine_detail {
struct recipe;
}

// One thing that will be needed: a unit, or a specialisation by name ('kiln list').
class want {
public:
    want(unit const& u) : unit_{std::make_shared<unit const>(u)} {}
    want(std::shared_ptr<unit const> u) : unit_{std::move(u)} {}
    want(char const* spec) : spec_{spec} {}
    want(std::string spec) : spec_{std::move(spec)} {}
    want(std::string_view spec) : spec_{spec} {}
    // Without a copy: `u` must live until the process ends.
    [[nodiscard]] static want static_unit(unit const& u) {
        return want{std::shared_ptr<unit const>{std::shared_ptr<void>{}, &u}};
    }

    // Of a profile: a specialisation with whatever it was made with.
    [[nodiscard]] static want from_recipe(std::shared_ptr<engine_detail::recipe const> what);

    [[nodiscard]] std::string const& name() const noexcept { return unit_ ? unit_->name : spec_; }
    [[nodiscard]] std::shared_ptr<engine_detail::recipe const> const& as_recipe() const noexcept { return recipe_; }
    // Null for a specialisation.
    [[nodiscard]] std::shared_ptr<unit const> const& as_unit() const noexcept { return unit_; }

private:
    std::shared_ptr<unit const> unit_;
    std::shared_ptr<engine_detail::recipe const> recipe_;
    std::string spec_;
};

struct demand_options {
    std::vector<target> targets = {};  // artifacts for these; none: for the device, loaded and resolved
    int device = 0;
    priority how = priority::declared;
    std::string consumer = {};       // who wants it: for status and events
    kiln::engine* engine = nullptr;  // default: engine::process()
};

// What one call demanded. Dropping it changes nothing.
class demanded {
public:
    struct state;
    explicit demanded(std::shared_ptr<state> s) noexcept : state_{std::move(s)} {}

    // Never lowers. What already runs goes on as it is.
    void raise(priority how) const;
    // Withdraws what no one else wants and no process has taken yet.
    void cancel() const;

    [[nodiscard]] std::shared_ptr<state> const& internals() const noexcept { return state_; }

private:
    std::shared_ptr<state> state_;
};

demanded demand(std::initializer_list<want> what, demand_options how = {});
demanded demand(std::vector<want> what, demand_options how = {});

struct requirement_options {
    // Facts of which one must be present for demand_present() to demand it: types, shapes, families. None: always.
    std::vector<std::string_view> when = {};
    std::string_view pack = {};
};

// What a piece of code uses, declared next to it. Static and passive: being linked registers a pointer and nothing else.
class requirement {
public:
    // Static: both must live until the process ends.
    struct item {
        constexpr item(char const* name) noexcept : spec{name} {}
        constexpr item(std::string_view name) noexcept : spec{name} {}
        constexpr item(unit const& u) noexcept : of{&u} {}
        item(unit&&) = delete;
        std::string_view spec = {};
        unit const* of = nullptr;
    };

    requirement(std::string_view consumer, std::initializer_list<item> what, requirement_options more = {});
    ~requirement();
    requirement(requirement const&) = delete;
    requirement& operator=(requirement const&) = delete;

    [[nodiscard]] std::string_view consumer() const noexcept { return consumer_; }
    [[nodiscard]] requirement_options const& more() const noexcept { return more_; }
    [[nodiscard]] std::vector<want> wants() const;
    [[nodiscard]] std::vector<std::string> names() const;
    demanded demand(demand_options how = {}) const;

private:
    std::string_view consumer_;
    std::vector<item> what_;
    requirement_options more_;
};

// Everything declared in this program, in no particular order.
[[nodiscard]] std::vector<requirement const*> requirements();
// nullptr: nobody of that name declared anything.
[[nodiscard]] requirement const* find_requirement(std::string_view consumer);

// By what is present: demands what was declared for at least one of these facts ("polygon", "i32", "512x512").
demanded demand_present(std::span<std::string_view const> facts, demand_options how = {});

// Sees what the program really asks for while it lives, by name: for the tests that hold declarations to the truth.
class use_watch {
public:
    explicit use_watch(engine& of = engine::process());
    ~use_watch();
    use_watch(use_watch const&) = delete;
    use_watch& operator=(use_watch const&) = delete;

    // In order of first use.
    [[nodiscard]] std::vector<std::string> used() const;
    // Empty if the declaration is the truth; else what is missing and what is never used, in words.
    [[nodiscard]] std::string difference(requirement const& declared) const;

private:
    struct state;
    std::shared_ptr<state> state_;
    engine* engine_;
};

}  // namespace kiln

// KILN_REQUIRES(sjoin, "select_i32", pip): names of specialisations and static units, by whom they are used. Makes the object
// sjoin_requires.
#define KILN_REQUIRES(consumer, ...)                       \
    static ::kiln::requirement const consumer##_requires { \
#consumer, { __VA_ARGS__ }                         \
    }
