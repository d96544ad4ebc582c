// SPDX-License-Identifier: Apache-2.0
#include "engine/status_json.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::engine_detail {

namespace {

// Calls back with each name and value, in the order of the JSON.
template <class Visit>
void for_each_field(unit_status const& of, Visit visit) {
    visit("name", std::string_view{of.name});
    visit("target", std::string_view{of.target});
    visit("state", name_of(of.state));
    visit("priority", name_of(of.how));
    visit("from", of.from ? std::optional{name_of(*of.from)} : std::nullopt);
    visit("miss", std::string_view{of.miss});
    visit("consumers", std::string_view{of.consumers});
    visit("submitted_ms", of.submitted_ms);
    visit("since_ms", of.since_ms);
    visit("ready_ms", of.ready_ms);
    visit("compile_ms", of.compile_ms);
    visit("load_ms", of.load_ms);
    visit("bytes", of.bytes);
    visit("waits", of.waits);
    visit("blocked_ms", of.blocked_ms);
    visit("error", std::string_view{of.error});
}

template <class Visit>
void for_each_field(warm_status const& of, Visit visit) {
    visit("submitted", of.submitted);
    visit("ready", of.ready);
    visit("pending", of.pending);
    visit("failed", of.failed);
    visit("compiled", of.compiled);
    visit("waits", of.waits);
    visit("blocked_ms", of.blocked_ms);
}

std::string as_text(std::string_view value) { return base::json_quoted(value); }
std::string as_text(std::optional<std::string_view> value) { return value ? as_text(*value) : "null"; }
template <class Number>
    requires std::is_arithmetic_v<Number> std::string as_text(Number value) { return fmt::format("{}", value); }

template <class Status>
std::string fields_of(Status const& of) {
    std::string out;
    for_each_field(of, [&](std::string_view name, auto value) {
        out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", name, as_text(value));
    });
    return out;
}

}  // namespace

nlohmann::ordered_json to_json(unit_status const& of) {
    nlohmann::ordered_json out;
    for_each_field(of, [&](char const* name, auto value) {
        if constexpr (std::is_same_v<decltype(value), std::optional<std::string_view>>)
            out[name] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
        else out[name] = value;
    });
    return out;
}

std::string to_json_text(warm_status const& of) {
    std::string units;
    for (auto const& u : of.units) units += fmt::format("{}{{{}}}", units.empty() ? "" : ",", fields_of(u));
    return fmt::format("{{{},\"units\":[{}]}}", fields_of(of), units);
}

}  // namespace kiln::engine_detail
