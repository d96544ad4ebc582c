// SPDX-License-Identifier: Apache-2.0
#include <kiln/plan.hpp>

#include "cuda/context.hpp"
#include "warmup/director.hpp"

namespace kiln {

struct plan::state {
    std::vector<want> what;
    demand_options how;
    std::once_flag once;
    std::optional<demanded> started;
};

namespace {

warm_report gone(std::string const& name) {
    return {.cold = {{.name = name,
                      .target = {},
                      .state = work_state::cancelled,
                      .why = "the engine is gone",
                      .code = errc::cancelled}}};
}

}  // namespace

std::string warm_report::text() const {
    if (cold.empty()) return fmt::format("all {} warm", total);
    auto out = fmt::format("{} of {} cold: ", cold.size(), total);
    bool first = true;
    for (auto const& c : cold) {
        if (!std::exchange(first, false)) out += ", ";
        out += fmt::format("{} ({}", c.name, name_of(c.state));
        if (!c.why.empty()) out += ": " + c.why;
        else if (c.state != work_state::queued) out += fmt::format(" since {:.0f} ms", c.since_ms);
        out += ')';
    }
    return out;
}

plan::plan(std::string name, std::vector<want> what, demand_options how)
    : name_{std::move(name)}, state_{std::make_shared<state>()} {
    state_->what = std::move(what);
    state_->how = std::move(how);
    state_->how.how = std::max(state_->how.how, priority::planned);
    if (state_->how.consumer.empty()) state_->how.consumer = name_;
}

demanded const& plan::start() const {
    std::call_once(state_->once, [&] { state_->started = kiln::demand(state_->what, state_->how); });
    return *state_->started;
}

void plan::prepare() const { (void)start(); }

warm_report plan::ensure_warm(std::chrono::milliseconds deadline) const {
    base::stopwatch const watch;
    auto const until = base::from_now(deadline);
    auto const& batch = start().internals();
    auto const by = batch->by.lock();
    if (!by) return gone(name_);
    // From here on somebody waits for it.
    if (deadline.count() > 0) by->raise(batch, priority::blocking);
    (void)by->wait_until(*batch, until);
    auto out = by->cold(*batch);
    out.waited_ms = watch.ms();
    auto& events = (state_->how.engine != nullptr ? *state_->how.engine : engine::process()).internals().events;
    if (out.waited_ms >= 1) {
        events.emit({.kind = event_kind::waited,
                     .unit = name_,
                     .reason = out ? "plan" : "plan-deadline",
                     .detail = out.text(),
                     .duration_ns = watch.ns()});
    }
    return out;
}

warm_report plan::cold() const {
    auto const& batch = start().internals();
    auto const by = batch->by.lock();
    return by ? by->cold(*batch) : gone(name_);
}

result<void> plan::begin_capture(stream_ref on) const {
    if (auto const report = cold(); !report)
        return fail(errc::timeout, "plan '{}': capture not begun, {}; call ensure_warm() first", name_, report.text());
    KILN_TRY(auto const api, cuda::start_driver());
    return cuda::call<&cuda::driver_api::stream_begin_capture>(*api, on.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

}  // namespace kiln
