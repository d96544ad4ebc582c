// SPDX-License-Identifier: Apache-2.0
// What became of every unit, by name and target: the engine writes it as things happen, `kiln status` from an event file.
#pragma once

#include "base/clock.hpp"

#include <kiln/status.hpp>

#include <map>
#include <mutex>

namespace kiln::engine_detail {

// When it happened: now, unless it is read from an event file.
struct moment {
    std::int64_t ns = base::now_ns();
};

class ledger {
public:
    void demanded(std::string_view name, std::string_view target, priority how, std::string_view consumer,
                  moment when = {});
    void deferred(std::string_view name, std::string_view consumer, moment when = {});
    // Looked for; has no effect on what is ready.
    void asked(std::string_view name, std::string_view target, priority how, moment when = {});
    void raised(std::string_view name, std::string_view target, priority how);
    void missed(std::string_view name, std::string_view target, std::string_view reason, moment when = {});
    void compiling(std::string_view name, std::string_view target, moment when = {});
    struct outcome {
        provenance from = provenance::compiled;
        double compile_ms = 0;
        std::uint64_t bytes = 0;
    };
    void obtained(std::string_view name, std::string_view target, outcome how, moment when = {});
    void loading(std::string_view name, std::string_view target, moment when = {});
    void loaded(std::string_view name, std::string_view target, double ms, moment when = {});
    void failed(std::string_view name, std::string_view target, error const& why, moment when = {});
    void wait_begins(std::string_view name, std::string_view target);
    void wait_ends(std::string_view name, std::string_view target, std::int64_t ns);
    // A wait that is over, from an event file.
    void waited(std::string_view name, std::string_view target, std::int64_t ns);

    // "absent" and so on; empty where nothing was missed.
    [[nodiscard]] std::string miss_of(std::string_view name, std::string_view target) const;
    [[nodiscard]] std::optional<unit_status> find(std::string_view name, std::string_view target,
                                                  moment now = {}) const;
    [[nodiscard]] warm_status report(moment now = {}) const;

private:
    struct line {
        unit_status what;
        std::size_t order = 0;
        std::int64_t submitted_ns = 0;
        std::int64_t since_ns = 0;
    };
    [[nodiscard]] line& at(std::string_view name, std::string_view target, moment when);
    void enter(line& l, work_state state, moment when);
    [[nodiscard]] static unit_status shown(line const& l, std::int64_t start, std::int64_t now);

    mutable std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, line> lines_;
    std::int64_t first_ns_ = 0;
    std::int64_t last_done_ns_ = 0;
};

}  // namespace kiln::engine_detail
