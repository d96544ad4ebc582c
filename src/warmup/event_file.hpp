// SPDX-License-Identifier: Apache-2.0
// A file of events as KILN_EVENTS writes it, read back: perhaps of several processes, perhaps still being written.
#pragma once

#include <kiln/event.hpp>
#include <kiln/result.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <map>

namespace kiln::warmup {

struct past_event {
    event what;
    std::int64_t pid = 0;
};

struct event_file {
    std::vector<past_event> events;  // as they were written
    std::uint64_t bad_lines = 0;     // not JSON, or no event of this version: left out

    [[nodiscard]] std::vector<std::int64_t> pids() const;
};

[[nodiscard]] event_file parse_events(std::string_view text);
// errc::not_found with the remedy.
[[nodiscard]] result<event_file> read_events(std::filesystem::path const& file);

// What status() would have said in that process; `now_ns` on its monotonic clock, 0: the time of its last event.
[[nodiscard]] warm_status status_of(event_file const& from, std::int64_t pid, std::int64_t now_ns = 0);

}  // namespace kiln::warmup
