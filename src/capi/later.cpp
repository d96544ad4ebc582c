// SPDX-License-Identifier: Apache-2.0
// Answers that will come, demands, events.
#include "capi/boxes.hpp"

#include <kiln/event.hpp>

#include <array>
#include <mutex>

using namespace kiln;
using capi::guarded;
using capi::not_null;

static_assert(static_cast<int>(priority::predicted) == KILN_PREDICTED &&
              static_cast<int>(priority::declared) == KILN_DECLARED &&
              static_cast<int>(priority::planned) == KILN_PLANNED &&
              static_cast<int>(priority::blocking) == KILN_BLOCKING);
static_assert(static_cast<int>(event_kind::demanded) == KILN_EVENT_DEMANDED &&
              static_cast<int>(event_kind::compiled) == KILN_EVENT_COMPILED &&
              static_cast<int>(event_kind::waited) == KILN_EVENT_WAITED &&
              static_cast<int>(event_kind::loaded) == KILN_EVENT_LOADED &&
              static_cast<int>(event_kind::worker_ended) == KILN_EVENT_WORKER_ENDED &&
              static_cast<int>(event_kind::dispatched) == KILN_EVENT_DISPATCHED &&
              static_cast<int>(event_kind::rewritten) == KILN_EVENT_REWRITTEN &&
              static_cast<int>(event_kind::note) == KILN_EVENT_NOTE);

namespace {

result<priority> read_priority(kiln_priority given) {
    if (given < KILN_PREDICTED || given > KILN_BLOCKING)
        return fail(errc::invalid_argument, "{} is no priority: KILN_PREDICTED to KILN_BLOCKING", given);
    return static_cast<priority>(given);
}

// A text of an event, which has no NUL at its end.
template <std::size_t N>
class terminated {
public:
    explicit terminated(inline_text<N> const& text) noexcept {
        auto const view = text.view();
        std::memcpy(chars_.data(), view.data(), view.size());
        chars_[view.size()] = '\0';
    }
    [[nodiscard]] char const* get() const noexcept { return chars_.data(); }

private:
    std::array<char, N + 1> chars_;
};

}  // namespace

struct kiln_subscription {
    struct ear {
        std::mutex mutex;  // held during a call, so that whoever unsubscribes waits for its end
        kiln_event_callback callback = nullptr;
        void* context = nullptr;

        void hear(event const& e) {
            terminated const unit{e.unit};
            terminated const target{e.target};
            terminated const reason{e.reason};
            terminated const detail{e.detail};
            kiln_event const out{sizeof out,   static_cast<kiln_event_kind>(e.kind),
                                 e.thread,     unit.get(),
                                 target.get(), reason.get(),
                                 detail.get(), e.key,
                                 e.request,    e.duration_ns,
                                 e.value,      e.time_ns,
                                 e.sequence};
            std::lock_guard const lock{mutex};
            if (callback != nullptr) callback(&out, context);
        }
    };
    std::shared_ptr<ear> listener;
    event_log::subscription token;
};

kiln_error* kiln_artifact_later(kiln_engine* engine, kiln_unit const* unit, char const* arch, kiln_kind kind,
                                kiln_pending** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const u, capi::read_unit(unit));
        KILN_TRY(auto const t, capi::read_target(arch, kind));
        *out = new kiln_pending{capi::engine_of(engine).artifact(u, t)};
        return {};
    });
}

kiln_error* kiln_get_later(kiln_engine* engine, kiln_unit const* unit, int32_t device, kiln_pending** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const u, capi::read_unit(unit));
        *out = new kiln_pending{capi::engine_of(engine).get(u, device)};
        return {};
    });
}

int kiln_pending_ready(kiln_pending const* pending) {
    if (pending == nullptr) return 0;
    return std::visit([](auto const& answer) { return answer.ready() ? 1 : 0; }, pending->answer);
}

kiln_error* kiln_pending_then(kiln_pending const* pending, kiln_ready_callback callback, void* context) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(pending, "pending"));
        if (callback == nullptr) return fail(errc::invalid_argument, "callback is NULL");
        std::visit([&](auto const& answer) { answer.then([callback, context](auto const&) { callback(context); }); },
                   pending->answer);
        return {};
    });
}

kiln_error* kiln_pending_artifact_sync(kiln_pending const* pending, int64_t deadline_ms, kiln_artifact** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(pending, "pending"));
        KILN_CHECK(not_null(out, "out"));
        auto const* const answer = std::get_if<kiln::pending<obtained>>(&pending->answer);
        if (answer == nullptr)
            return fail(errc::invalid_argument, "this is of kiln_get_later: kiln_pending_loaded_sync");
        KILN_TRY(auto got, answer->wait_sync(capi::milliseconds(deadline_ms)));
        *out = capi::boxed(std::move(got));
        return {};
    });
}

kiln_error* kiln_pending_loaded_sync(kiln_pending const* pending, int64_t deadline_ms, kiln_loaded** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(pending, "pending"));
        KILN_CHECK(not_null(out, "out"));
        auto const* const answer = std::get_if<kiln::pending<ready_unit>>(&pending->answer);
        if (answer == nullptr)
            return fail(errc::invalid_argument, "this is of kiln_artifact_later: kiln_pending_artifact_sync");
        KILN_TRY(auto got, answer->wait_sync(capi::milliseconds(deadline_ms)));
        *out = new kiln_loaded{std::move(got)};
        return {};
    });
}
void kiln_pending_free(kiln_pending* pending) { delete pending; }

kiln_error* kiln_demand(kiln_engine* engine, kiln_unit const* units, size_t unit_count, char const* const* names,
                        size_t name_count, kiln_demand_options const* options, kiln_demanded** out) {
    return guarded([&]() -> result<void> {
        std::vector<want> what;
        if (unit_count > 0) KILN_CHECK(not_null(units, "units"));
        auto const* at = reinterpret_cast<unsigned char const*>(units);
        for (std::size_t i = 0; i < unit_count; ++i, at += units->size) {
            KILN_TRY(auto const u, capi::read_unit(reinterpret_cast<kiln_unit const*>(at)));
            what.emplace_back(u);
        }
        KILN_TRY(auto specs, capi::read_texts(names, name_count, "names"));
        for (auto& spec : specs) what.emplace_back(std::move(spec));
        demand_options how{.engine = engine == nullptr ? nullptr : &engine->engine};
        if (options != nullptr) {
            KILN_TRY(auto const o, capi::read_struct(options, "kiln_demand_options"));
            how.device = o.device;
            KILN_TRY(how.how, read_priority(o.priority));
            how.consumer = capi::text_or_empty(o.consumer);
            KILN_TRY(auto const archs, capi::read_texts(o.archs, o.arch_count, "kiln_demand_options::archs"));
            for (auto const& arch : archs) {
                KILN_TRY(auto const t, target::parse(arch));
                how.targets.push_back(t);
            }
        }
        auto asked = demand(std::move(what), std::move(how));
        if (out != nullptr) *out = new kiln_demanded{std::move(asked)};
        return {};
    });
}
void kiln_demanded_raise(kiln_demanded const* what, kiln_priority priority) {
    base::if_memory_allows([&] {
        auto const how = read_priority(priority);
        if (what != nullptr && how) what->what.raise(*how);
    });
}
void kiln_demanded_cancel(kiln_demanded const* what) {
    base::if_memory_allows([&] {
        if (what != nullptr) what->what.cancel();
    });
}
void kiln_demanded_free(kiln_demanded* what) { delete what; }

char const* kiln_event_kind_name(kiln_event_kind kind) {
    if (kind < KILN_EVENT_DEMANDED || kind > KILN_EVENT_NOTE) return "unknown";
    return name_of(static_cast<event_kind>(kind)).data();
}

kiln_error* kiln_subscribe(kiln_event_callback callback, void* context, kiln_subscription** out) {
    return guarded([&]() -> result<void> {
        if (callback == nullptr) return fail(errc::invalid_argument, "callback is NULL");
        KILN_CHECK(not_null(out, "out"));
        auto listener = std::make_shared<kiln_subscription::ear>();
        listener->callback = callback;
        listener->context = context;
        auto token = event_log::process().subscribe([listener](event const& e) { listener->hear(e); });
        *out = new kiln_subscription{std::move(listener), std::move(token)};
        return {};
    });
}

void kiln_subscription_free(kiln_subscription* subscription) {
    if (subscription == nullptr) return;
    {
        std::lock_guard const lock{subscription->listener->mutex};
        subscription->listener->callback = nullptr;
    }
    delete subscription;
}
