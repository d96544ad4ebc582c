// SPDX-License-Identifier: Apache-2.0
#include "warmup/event_file.hpp"

#include "base/check.hpp"
#include "base/files.hpp"
#include "engine/ledger.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace kiln::warmup {

namespace {

using json = nlohmann::json;

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
    out.what.duration_ns = number("ns");
    out.what.value = number("value");
    out.what.time_ns = number("t");
    out.what.sequence = static_cast<std::uint64_t>(number("seq"));
    out.what.thread = static_cast<std::uint32_t>(number("tid"));
    return out;
}

provenance provenance_named(std::string_view name) {
    for (auto const p :
         {provenance::compiled, provenance::memory, provenance::disk, provenance::bundle, provenance::fleet}) {
        if (name_of(p) == name) return p;
    }
    return provenance::disk;
}

priority priority_named(std::string_view name) {
    for (auto const p : {priority::predicted, priority::declared, priority::planned, priority::blocking}) {
        if (name_of(p) == name) return p;
    }
    return priority::declared;
}

void write_down(engine_detail::ledger& book, event const& e) {
    engine_detail::moment const when{e.time_ns};
    auto const bytes = static_cast<std::uint64_t>(e.value);
    auto const ms = static_cast<double>(e.duration_ns) * 1e-6;
    switch (e.kind) {
        case event_kind::demanded: book.demanded(e.unit, e.target, priority_named(e.reason), e.detail, when); break;
        case event_kind::found: book.obtained(e.unit, e.target, {provenance_named(e.reason), 0, 0}, when); break;
        case event_kind::missed:
            book.asked(e.unit, e.target, priority::predicted, when);
            book.missed(e.unit, e.target, e.reason, when);
            break;
        case event_kind::compiling: book.compiling(e.unit, e.target, when); break;
        case event_kind::compiled:
        case event_kind::linked: book.obtained(e.unit, e.target, {provenance::compiled, ms, bytes}, when); break;
        case event_kind::compile_failed:
            book.failed(e.unit, e.target, error{errc::compile_failed, std::string{e.detail.view()}}, when);
            break;
        case event_kind::loading: book.loading(e.unit, e.target, when); break;
        case event_kind::loaded: book.loaded(e.unit, e.target, ms, when); break;
        case event_kind::waited:
            // A plan waits for many; its own line would be no unit's.
            if (!e.reason.view().starts_with("plan")) book.waited(e.unit, e.target, e.duration_ns);
            break;
        default: break;
    }
}

}  // namespace

std::vector<std::int64_t> event_file::pids() const {
    std::vector<std::int64_t> out;
    for (auto const& e : events) {
        if (std::ranges::find(out, e.pid) == out.end()) out.push_back(e.pid);
    }
    return out;
}

event_file parse_events(std::string_view text) {
    event_file out;
    while (!text.empty()) {
        auto const end = text.find('\n');
        auto const line = text.substr(0, end);
        // A line without its end is still being written.
        if (end == text.npos) {
            ++out.bad_lines;
            break;
        }
        text.remove_prefix(end + 1);
        if (auto e = parse_line(line)) out.events.push_back(*e);
        else if (!line.empty()) ++out.bad_lines;
    }
    return out;
}

result<event_file> read_events(std::filesystem::path const& file) {
    KILN_TRY(auto const data, base::read_file(file));
    if (!data)
        return fail(errc::not_found, "{}: no such file; run the program with KILN_EVENTS={} to get one", file.native(),
                    file.native());
    return parse_events(base::as_text(*data));
}

warm_status status_of(event_file const& from, std::int64_t pid, std::int64_t now_ns) {
    engine_detail::ledger book;
    std::int64_t last = 0;
    for (auto const& e : from.events) {
        if (e.pid != pid) continue;
        last = std::max(last, e.what.time_ns);
        if (!e.what.unit.view().empty()) write_down(book, e.what);
    }
    return book.report({now_ns != 0 ? now_ns : last});
}

}  // namespace kiln::warmup
