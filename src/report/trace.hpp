// SPDX-License-Identifier: Apache-2.0
// Events as spans on rows, one row per thread and per compile process: for Chrome's and Perfetto's viewers,
// and for timeline.hpp.
#pragma once

#include "report/event_file.hpp"

#include <map>

namespace kiln::report {

struct span {
    enum class kind { compile, failed, load, wait, read, launch, mark };
    kind what = kind::mark;
    std::int64_t pid = 0;  // of the program
    std::int64_t row = 0;  // a thread, or a compile process
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;  // = from_ns for a mark
    std::string name;
    std::string detail;
};

struct trace {
    std::vector<span> spans;                                            // in order of their beginning
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> rows;  // what each row is called
    std::map<std::int64_t, std::string> programs;                       // processes that said what they are called
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
};

[[nodiscard]] std::string_view name_of(span::kind k);

[[nodiscard]] trace trace_of(event_file const& from);
// Chrome trace events: chrome://tracing, ui.perfetto.dev.
[[nodiscard]] std::string to_chrome(trace const& t);

}  // namespace kiln::report
