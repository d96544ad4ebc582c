// SPDX-License-Identifier: Apache-2.0
#include "past_status.hpp"

#include "engine/ledger.hpp"

#include <algorithm>

namespace kiln::cli {

namespace {

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

// What comes to nothing without having failed.
void write_down_note(engine_detail::ledger& book, event const& e) {
    engine_detail::moment const when{e.time_ns};
    std::string const why{e.detail.view()};
    if (e.reason.view() == name_of(work_state::deferred)) book.deferred(e.unit, {}, when);
    if (e.reason.view() == name_of(errc::cancelled)) book.failed(e.unit, e.target, error{errc::cancelled, why}, when);
}

// A plan waits for many, and its own line would be no unit's; what was spent on servers is a part of what a caller waited.
bool is_a_units(std::string_view reason) {
    return !reason.starts_with("plan") && reason != "fleet" && reason != "lease";
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
        case event_kind::note: write_down_note(book, e); break;
        case event_kind::loading: book.loading(e.unit, e.target, when); break;
        case event_kind::loaded: book.loaded(e.unit, e.target, ms, when); break;
        case event_kind::waited:
            if (is_a_units(e.reason.view())) book.waited(e.unit, e.target, e.duration_ns);
            break;
        default: break;
    }
}

}  // namespace

warm_status status_of(report::event_file const& from, std::int64_t pid, std::int64_t now_ns) {
    engine_detail::ledger book;
    std::int64_t last = 0;
    for (auto const& e : from.events) {
        if (e.pid != pid) continue;
        last = std::max(last, e.what.time_ns);
        if (!e.what.unit.view().empty()) write_down(book, e.what);
    }
    return book.report({now_ns != 0 ? now_ns : last});
}

}  // namespace kiln::cli
