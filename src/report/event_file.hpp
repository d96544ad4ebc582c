// SPDX-License-Identifier: Apache-2.0
// A file of events as KILN_EVENTS writes it, read back: perhaps of several processes, perhaps still being written, perhaps
// damaged. A line that is no event is counted and left out, whatever is in it.
#pragma once

#include <kiln/event.hpp>
#include <kiln/result.hpp>

#include <filesystem>

namespace kiln::report {

struct past_event {
    event what;
    std::int64_t pid = 0;
    std::size_t from = 0;  // its line in the text
    std::size_t size = 0;
};

struct event_file {
    std::string text = {};                // as it was read
    std::vector<past_event> events = {};  // as they were written
    std::uint64_t bad_lines = 0;          // not JSON, or no event of this version: left out

    // In order of their first events.
    [[nodiscard]] std::vector<std::int64_t> pids() const;
    [[nodiscard]] std::string_view line_of(past_event const& e) const {
        return std::string_view{text}.substr(e.from, e.size);
    }
};

[[nodiscard]] event_file parse_events(std::string text);
// errc::not_found with the remedy.
[[nodiscard]] result<event_file> read_events(std::filesystem::path const& file);

}  // namespace kiln::report
