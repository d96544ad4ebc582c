// SPDX-License-Identifier: Apache-2.0
// How much of a test suite ran on the GPU, and whether that is as much as a baseline says: nothing passes because it was not counted.
#pragma once

#include "audit/report.hpp"

namespace kiln::audit {

// The classes add up to all; verified: by kernels that ran.
struct health_counts {
    std::uint64_t all = 0, gpu = 0, cpu = 0, fell_back = 0, failed = 0, verified = 0;
    [[nodiscard]] double gpu_share() const { return share(gpu); }
    [[nodiscard]] double verified_share() const { return share(verified); }

private:
    [[nodiscard]] double share(std::uint64_t of) const {
        return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
    }
};

struct health {
    // Processes always, and dispatches of those that use Kiln: the one says nothing of the other.
    health_counts processes, dispatches;
    std::map<std::string, std::uint64_t> reasons;
    struct unit {
        std::string name;
        std::uint64_t kernels = 0;
        bool on_gpu = false;
    };
    std::vector<unit> units;        // the processes, by name
    std::set<std::string> missing;  // of what a GPU needs, on the machine it ran on
    [[nodiscard]] bool of_dispatches() const { return dispatches.all != 0; }
    [[nodiscard]] health_counts const& told() const { return of_dispatches() ? dispatches : processes; }
    // The lower one where there are both.
    [[nodiscard]] double gpu_share() const {
        return of_dispatches() ? std::min(dispatches.gpu_share(), processes.gpu_share()) : processes.gpu_share();
    }
};
// `name`: of the processes that were recorded; empty: their own.
void add_health(model const& m, std::string const& name, health& to);
// Why processes may be missing in it; empty: none is.
[[nodiscard]] std::string why_not_counted(model const& m);
[[nodiscard]] std::string to_text(health const& h);
[[nodiscard]] nlohmann::ordered_json to_json(health const& h);

// What a test suite is held to. One of old says less, and only what it says is compared.
struct health_baseline {
    double gpu_share = 0;
    std::string of;  // dispatches or processes; empty: not known
    std::optional<double> verified_share, process_share;
    std::optional<std::uint64_t> gpu_processes;
    std::map<std::string, std::uint64_t> gpu_units;  // how many of that name were on the GPU
};
// errc::invalid_argument for what is none.
[[nodiscard]] result<health_baseline> parse_health_baseline(std::string_view text);

struct health_verdict {
    std::vector<std::string> broken;  // what fell, by name
    std::string why_not;              // it cannot be judged; empty: it can
};
[[nodiscard]] health_verdict compare(health_baseline const& before, health const& now);

}  // namespace kiln::audit
