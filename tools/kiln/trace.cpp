// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "report/timeline.hpp"

namespace kiln::cli {

namespace {

struct trace_arguments {
    std::string events;
    std::string output;
    std::string svg;
    std::string title;
    bool as_json = false;
};

int run(trace_arguments const& a) {
    if (a.output.empty() && a.svg.empty()) {
        complain("nothing to write: name a file with -o, or a picture with --svg");
        return misused;
    }
    if ((a.output == "-") + (a.svg == "-") + (a.as_json ? 1 : 0) > 1) {
        complain("only one of -o, --svg and --json can have standard output");
        return misused;
    }
    for (auto const& written : {a.output, a.svg})
        if (!written.empty()) {
            check_text_output(written).value();
            check_apart({written}, {a.events}).value();
        }
    auto const file = report::read_events(a.events).value();
    if (file.events.empty()) {
        complain(fmt::format("{}: no events in it; a program writes them with KILN_EVENTS={}", a.events, a.events));
        return failed;
    }
    auto const t = report::trace_of(file);
    if (!a.output.empty()) write_text_output(a.output, base::as_bytes(report::to_chrome(t))).value();
    if (!a.svg.empty()) {
        auto const text = report::timeline_svg(t, a.title.empty() ? a.events : a.title);
        write_text_output(a.svg, base::as_bytes(text)).value();
    }
    if (a.output == "-" || a.svg == "-") return ok;
    auto const ms = static_cast<double>(t.last_ns - t.first_ns) * 1e-6;
    if (a.as_json)
        print_json(json{{"events", file.events.size()},
                        {"bad_lines", file.bad_lines},
                        {"spans", t.spans.size()},
                        {"rows", t.rows.size()},
                        {"ms", ms}});
    else
        print(fmt::format(
            "{} events on {} rows, {:.0f} ms{}{}\n", file.events.size(), t.rows.size(), ms,
            a.output.empty() ? "" : fmt::format("; open {} in ui.perfetto.dev or chrome://tracing", a.output),
            file.bad_lines > 0 ? fmt::format("; {} lines left out", file.bad_lines) : ""));
    return ok;
}

}  // namespace

void add_trace(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<trace_arguments>();
    auto* const app = add_command(root, "trace");
    app->add_option("EVENTS", arguments->events, "event file")->required();
    app->add_option("-o,--output", arguments->output, "trace to write");
    app->add_option("--svg", arguments->svg, "picture to write");
    app->add_option("--title", arguments->title, "of the picture");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
