// SPDX-License-Identifier: Apache-2.0
#include "report/event_file.hpp"

#include "base/check.hpp"
#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace kiln::report {

namespace {

using json = nlohmann::json;

// Times may be added and subtracted without care.
constexpr std::int64_t latest = std::int64_t{1} << 61;

std::optional<event_kind> kind_named(std::string_view name) {
    for (int k = 0; k <= static_cast<int>(event_kind::note); ++k) {
        if (name_of(static_cast<event_kind>(k)) == name) return static_cast<event_kind>(k);
    }
    return std::nullopt;
}

std::optional<past_event> parse_line(std::string_view line) {
    auto const j = json::parse(line, nullptr, false);
    if (!j.is_object()) return std::nullopt;
    auto const text = [&](char const* name) {
        auto const at = j.find(name);
        return at != j.end() && at->is_string() ? at->get<std::string>() : std::string{};
    };
    auto const number = [&](char const* name) -> std::int64_t {
        auto const at = j.find(name);
        return at != j.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
    };
    auto const time = [&](char const* name) { return std::clamp(number(name), std::int64_t{0}, latest); };
    auto const kind = kind_named(text("kind"));
    if (!kind) return std::nullopt;
    past_event out;
    out.pid = number("pid");
    out.what.kind = *kind;
    out.what.unit = text("unit");
    out.what.target = text("target");
    out.what.reason = text("reason");
    out.what.detail = text("detail");
    auto const key = text("key");
    std::from_chars(key.data(), key.data() + key.size(), out.what.key, 16);
    out.what.duration_ns = time("ns");
    out.what.value = number("value");
    out.what.time_ns = time("t");
    out.what.sequence = static_cast<std::uint64_t>(number("seq"));
    out.what.thread = static_cast<std::uint32_t>(number("tid"));
    return out;
}

}  // namespace

std::vector<std::int64_t> event_file::pids() const {
    std::vector<std::int64_t> out;
    for (auto const& e : events) {
        if (std::ranges::find(out, e.pid) == out.end()) out.push_back(e.pid);
    }
    return out;
}

event_file parse_events(std::string text) {
    event_file out;
    out.text = std::move(text);
    for (std::size_t from = 0; from < out.text.size();) {
        auto const end = out.text.find('\n', from);
        // A line without its end is still being written.
        if (end == out.text.npos) {
            ++out.bad_lines;
            break;
        }
        auto const line = std::string_view{out.text}.substr(from, end - from);
        if (auto e = parse_line(line)) {
            e->from = from;
            e->size = line.size();
            out.events.push_back(*std::move(e));
        } else if (!line.empty()) ++out.bad_lines;
        from = end + 1;
    }
    return out;
}

result<event_file> read_events(std::filesystem::path const& file) {
    KILN_TRY(auto const data, base::read_file(file));
    if (!data)
        return fail(errc::not_found, "{}: no such file; run the program with KILN_EVENTS={} to get one", file.native(),
                    file.native());
    return parse_events(std::string{base::as_text(*data)});
}

}  // namespace kiln::report
