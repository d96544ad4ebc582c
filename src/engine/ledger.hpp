// SPDX-License-Identifier: Apache-2.0
// What became of everything that was asked for, one line each: the engine writes it as things happen, `kiln status` from an
// event file. A line is found by identity, and names are for people: two libraries that both call a unit "saxpy" have two.
#pragma once

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/fork_guard.hpp"

#include <kiln/status.hpp>

#include <list>
#include <map>

namespace kiln::engine_detail {

// When it happened: now, unless it is read from an event file.
struct moment {
    std::int64_t ns = base::now_ns();
};

// How the writer knows a thing: its name, and its identity where it has one. What packs make they know by name alone; such
// a line and the first identity that comes under the same name and target are one.
struct known_as {
    template <std::convertible_to<std::string_view> Text>
    known_as(Text const& text, base::digest const& identity = {}) : name{text}, id{identity} {}

    std::string_view name;
    base::digest id;
};

class ledger {
public:
    void demanded(known_as thing, std::string_view target, priority how, std::string_view consumer, moment when = {});
    void deferred(known_as thing, std::string_view consumer, moment when = {});
    // Looked for; has no effect on what is ready.
    void asked(known_as thing, std::string_view target, priority how, moment when = {});
    void raised(known_as thing, std::string_view target, priority how);
    void missed(known_as thing, std::string_view target, std::string_view reason, moment when = {});
    void compiling(known_as thing, std::string_view target, moment when = {});
    struct outcome {
        provenance from = provenance::compiled;
        double compile_ms = 0;
        std::uint64_t bytes = 0;
    };
    void obtained(known_as thing, std::string_view target, outcome how, moment when = {});
    void loading(known_as thing, std::string_view target, moment when = {});
    void loaded(known_as thing, std::string_view target, double ms, moment when = {});
    void failed(known_as thing, std::string_view target, error const& why, moment when = {});
    void wait_begins(known_as thing, std::string_view target);
    void wait_ends(known_as thing, std::string_view target, std::int64_t ns);
    // A wait that is over, from an event file.
    void waited(known_as thing, std::string_view target, std::int64_t ns);

    // "absent" and so on; empty where nothing was missed.
    [[nodiscard]] std::string miss_of(known_as thing, std::string_view target) const;
    [[nodiscard]] std::optional<unit_status> find(known_as thing, std::string_view target, moment now = {}) const;
    [[nodiscard]] warm_status report(moment now = {}) const;

private:
    struct line {
        unit_status shown;
        bool has_identity = false;
        std::int64_t submitted_ns = 0;
        std::int64_t since_ns = 0;
    };
    using name_and_target = std::pair<std::string, std::string>;
    struct index_key {
        base::digest id;
        name_and_target name;
        auto operator<=>(index_key const&) const = default;
    };

    [[nodiscard]] line* look(known_as thing, std::string_view target) const;
    [[nodiscard]] line& at(known_as thing, std::string_view target, moment when);
    void enter(line& l, work_state state, moment when);
    [[nodiscard]] static unit_status snapshot(line const& l, std::int64_t start, std::int64_t now);

    mutable base::forkable_mutex mutex_;
    std::list<line> lines_;  // in order of submission
    std::map<index_key, line*> index_;
    std::map<name_and_target, std::vector<line*>> by_name_;
    std::int64_t first_ns_ = 0;
    std::int64_t last_done_ns_ = 0;
};

}  // namespace kiln::engine_detail
