// SPDX-License-Identifier: Apache-2.0
#include "intercept/run_events.hpp"

#include <algorithm>
#include <unistd.h>

namespace kiln::intercept {

namespace {

// Events have codes where people read sentences.
std::string_view code_of_miss(std::string_view why) {
    if (why.empty() || why == "new") return "absent";
    if (why.ends_with(" changed") || why.ends_with(" appeared") || why.ends_with(" is gone")) return "header-changed";
    return why == "recache" ? "recache" : "unusable";
}

class describer {
public:
    describer(happening const& h, std::int64_t now_ns) : h_{h}, now_ns_{now_ns} {}

    [[nodiscard]] event plain(event_kind kind, std::string_view reason, std::string_view detail) const {
        event out{.kind = kind, .unit = h_.program, .target = h_.target, .reason = reason, .detail = detail};
        out.time_ns = now_ns_;
        if (h_.at) out.key = h_.at->key.prefix();
        if (auto const request = request_of(h_)) out.request = request->prefix();
        return out;
    }
    [[nodiscard]] event lasting(event_kind kind, std::string_view reason, std::string_view detail) const {
        auto out = plain(kind, reason, detail);
        out.duration_ns = std::chrono::nanoseconds{h_.took}.count();
        return out;
    }
    // Who joined a compile of another's stood still; only then did he read what had come of it.
    [[nodiscard]] std::vector<event> found() const {
        auto found = lasting(event_kind::found, "disk", h_.by);
        if (h_.waited.count() == 0) return {found};
        found.duration_ns -= std::min(found.duration_ns, std::chrono::nanoseconds{h_.waited}.count());
        auto waited = plain(event_kind::waited, "compile", h_.by + "; another was making it");
        waited.duration_ns = std::chrono::nanoseconds{h_.waited}.count();
        waited.time_ns = now_ns_ - found.duration_ns;
        return {found, waited};
    }
    [[nodiscard]] std::vector<event> missed_and(event_kind outcome, std::string_view detail) const {
        auto const begun = now_ns_ - std::chrono::nanoseconds{h_.took}.count();
        auto const why = why_made(h_);
        auto missed = plain(event_kind::missed, code_of_miss(why_missed(h_)), why);
        auto compiling = plain(event_kind::compiling, {}, h_.by);
        compiling.value = h_.maker != 0 ? h_.maker : h_.process;
        missed.time_ns = compiling.time_ns = begun;
        return {missed, compiling, lasting(outcome, h_.library, detail),
                lasting(event_kind::waited, "compile", fmt::format("{}; missed: {}", h_.by, why))};
    }

private:
    happening const& h_;
    std::int64_t now_ns_;
};

}  // namespace

std::vector<event> events_of(happening const& h, std::int64_t now_ns) {
    using what = happening::what;
    describer const d{h, now_ns};
    switch (h.kind) {
        case what::answered: return d.found();
        case what::made:
            return d.missed_and(h.library == "nvjitlink" ? event_kind::linked : event_kind::compiled, h.by);
        case what::failed: return d.missed_and(event_kind::compile_failed, h.by + ": " + h.detail);
        case what::forbidden:
            return {d.plain(event_kind::missed, code_of_miss(h.detail), h.detail),
                    d.plain(event_kind::compile_failed, "forbidden", h.by + ": --jit=forbid")};
        case what::forwarded: return {d.plain(event_kind::fell_back, "own-library", h.by + ": " + h.detail)};
        case what::verified: return {d.plain(event_kind::note, "verified", h.by)};
        case what::different: return {d.plain(event_kind::warned, "differs", h.by + ": " + h.detail)};
    }
    return {};
}

event introduction(std::string_view program) {
    return {.kind = event_kind::note, .reason = "program", .detail = program};
}

}  // namespace kiln::intercept
