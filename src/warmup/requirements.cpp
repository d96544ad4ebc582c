// SPDX-License-Identifier: Apache-2.0
// Declarations and what they are held to.
#include "engine/engine_state.hpp"

#include <kiln/demand.hpp>

#include <algorithm>
#include <set>

namespace kiln {

namespace {

// Made at the first registration, before main in any order, and never destroyed.
struct registry {
    std::mutex mutex;
    std::vector<requirement const*> all;
};
registry& declared() {
    static registry& r = *new registry;
    return r;
}

}  // namespace

want want::from_recipe(std::shared_ptr<engine_detail::recipe const> what) {
    want out{std::string_view{what->name}};
    out.recipe_ = std::move(what);
    return out;
}

requirement::requirement(std::string_view consumer, std::initializer_list<item> what, requirement_options more)
    : consumer_{consumer}, what_{what}, more_{std::move(more)} {
    std::lock_guard const lock{declared().mutex};
    declared().all.push_back(this);
}

// A shared object may be closed again.
requirement::~requirement() {
    std::lock_guard const lock{declared().mutex};
    std::erase(declared().all, this);
}

std::vector<want> requirement::wants() const {
    std::vector<want> out;
    for (auto const& i : what_) out.push_back(i.of != nullptr ? want::static_unit(*i.of) : want{i.spec});
    return out;
}

std::vector<std::string> requirement::names() const {
    std::vector<std::string> out;
    for (auto const& i : what_) out.push_back(i.of != nullptr ? i.of->name : std::string{i.spec});
    return out;
}

std::vector<requirement const*> requirements() {
    std::lock_guard const lock{declared().mutex};
    return declared().all;
}

requirement const* find_requirement(std::string_view consumer) {
    std::lock_guard const lock{declared().mutex};
    auto const at = std::ranges::find(declared().all, consumer, &requirement::consumer);
    return at == declared().all.end() ? nullptr : *at;
}

struct use_watch::state final : engine_detail::use_observer {
    void used(engine_detail::use_record const& what) override {
        std::lock_guard const lock{mutex};
        if (std::ranges::find(names, what.name) == names.end()) names.emplace_back(what.name);
    }
    std::mutex mutex;
    std::vector<std::string> names;
};

use_watch::use_watch(engine& of) : state_{std::make_shared<state>()}, engine_{&of} { of.internals().uses.add(state_); }
use_watch::~use_watch() { engine_->internals().uses.remove(state_.get()); }

std::vector<std::string> use_watch::used() const {
    std::lock_guard const lock{state_->mutex};
    return state_->names;
}

std::string use_watch::difference(requirement const& declaration) const {
    auto const names = used();
    auto const declared_names = declaration.names();
    std::set<std::string> const really{names.begin(), names.end()};
    std::set<std::string> const said{declared_names.begin(), declared_names.end()};
    std::string out;
    for (auto const& n : really) {
        if (!said.contains(n)) out += fmt::format("{}: uses '{}' and does not declare it\n", declaration.consumer(), n);
    }
    for (auto const& n : said) {
        if (!really.contains(n)) out += fmt::format("{}: declares '{}' and never used it\n", declaration.consumer(), n);
    }
    return out;
}

}  // namespace kiln
