// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of events, read and drawn: trace, timeline, status. What comes out is JSON, and SVG without holes.
#include "fuzz/fuzz.hpp"
#include "report/event_file.hpp"
#include "report/timeline.hpp"
#include "report/trace.hpp"

#include <nlohmann/json.hpp>

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const file = report::parse_events(std::string{base::as_text(fuzz::bytes_of(data, size))});
    fuzz::must(file.text.size() == size && file.pids().size() <= file.events.size());
    for (auto const& e : file.events) {
        fuzz::must(e.from + e.size < size && file.text[e.from + e.size] == '\n');
        // A line alone says the same.
        auto const alone = report::parse_events(std::string{file.line_of(e)} + "\n");
        fuzz::must(alone.events.size() == 1 && alone.bad_lines == 0 && alone.events[0].what.kind == e.what.kind &&
                   alone.events[0].what.unit.view() == e.what.unit.view() && alone.events[0].pid == e.pid);
    }
    auto const drawn = report::trace_of(file);
    for (auto const& s : drawn.spans) fuzz::must(s.to_ns >= s.from_ns);
    fuzz::must(nlohmann::json::accept(report::to_chrome(drawn)));
    auto const picture = report::timeline_svg(drawn, "fuzz");
    fuzz::must(picture.starts_with("<svg"));
    for (auto const* const hole : {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf", "width=\"-"})
        fuzz::must(picture.find(hole) == picture.npos);
    return 0;
}
