// SPDX-License-Identifier: Apache-2.0
// For programs of tests: an engine whose compiler is a function of theirs, and what is asked of it.
#pragma once

#include "engine/engine_state.hpp"

namespace kiln::test {

inline constexpr char const* pretended_toolchain = "nvrtc fake";

inline engine_detail::order order_of(unit const& u, target t) {
    engine_detail::subject about{.name = u.name,
                                 .target = t,
                                 .id = compile::identify(u, t, pretended_toolchain).value(),
                                 .toolchain = pretended_toolchain,
                                 .roots = {},
                                 .device = {}};
    return {std::move(about), compile::job{{}, compile::compile_job{u, t}}, {}};
}

// What comes of a job: long enough in the making to be shared.
inline compile::product product_of(compile::job const& j, std::string_view image, double ms = 20) {
    auto const& c = std::get<compile::compile_job>(j.task);
    artifact out{.unit = c.unit.name, .target = c.target, .toolchain = pretended_toolchain};
    auto const raw = base::as_bytes(image);
    out.image.assign(raw.begin(), raw.end());
    out.compile_ms = ms;
    return out;
}

inline void compile_by(engine& e, event_log& events, compile::job_runner how) {
    compile::pool_options options;
    options.workers = 0;
    options.in_process = std::move(how);
    auto& s = e.internals();
    s.requests.reset();
    s.pool = std::make_unique<compile::worker_pool>(options, events);
    s.requests = std::make_unique<engine_detail::coordinator>(
        engine_detail::coordinator_options{}, engine_detail::coordinator::parts{*s.store, *s.pool, events, s.book});
}

inline unit unit_called(std::string const& name) {
    return {.name = name, .source = "__global__ void " + name + "() {}"};
}

inline result<obtained> get_sync(engine& e, unit const& u) {
    auto const t = target::parse("sm_90").value();
    return e.internals().requests->ask(order_of(u, t), priority::blocking).answer.wait_sync();
}

}  // namespace kiln::test
