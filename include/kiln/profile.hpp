// SPDX-License-Identifier: Apache-2.0
//
// Warm-up that learns. A recording holds what a process really asked for, in order of first use, with everything needed to
// make it again; replaying one brings all of it in before the program asks. With KILN_PROFILE=FILE both happen by
// themselves; `kiln record` and `kiln replay` do the same from outside. Failures are events: a profile can make a start
// faster, never wrong.
#pragma once

#include <kiln/demand.hpp>

#include <functional>
#include <utility>

namespace KILN_PUBLIC kiln {

// Ends a recording before its engine goes. Dropping it changes nothing.
class recording {
public:
    explicit recording(std::function<void()> end, std::function<result<void>()> written = {})
        : end_{std::move(end)}, written_{std::move(written)} {}
    // What is used from now on is not written. Again: nothing.
    void stop() {
        if (auto const end = std::exchange(end_, nullptr)) end();
    }
    // Why what was used so far is not in the file.
    [[nodiscard]] result<void> written() const { return written_ ? written_() : result<void>{}; }

private:
    std::function<void()> end_;
    std::function<result<void>()> written_;
};

// Records from now on, until it is stopped or the engine goes. The file must not exist; where it does, FILE.<pid>-<random> is
// written. The engine must outlive a call of stop().
recording record_profile(std::string const& file, engine& of = engine::process());

// A profile of a program that would ask for these, in this order: for those who know without a run. Replaces the file.
// errc::not_found for a name that is none.
[[nodiscard]] result<void> write_profile(std::string const& file, std::vector<want> const& what);

struct replayed {
    std::uint64_t demanded = 0;
    std::uint64_t stale = 0;  // recipes this program cannot make: of another version, or of a pack it does not have
    std::uint64_t torn_bytes = 0;  // left out at the end of a recording that was cut off
};

// Demands what the profile lists for this machine's GPU (or for `how.targets`), with priority::predicted unless `how` says
// more, in order of first use. Reads the file here and now; everything else happens in the background.
[[nodiscard]] result<replayed> replay_profile(std::string const& file, demand_options how = {});

}  // namespace kiln
