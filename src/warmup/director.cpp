// SPDX-License-Identifier: Apache-2.0
#include "warmup/director.hpp"

#include <algorithm>
#include <unistd.h>

namespace kiln::warmup {

namespace {

constexpr bool is_done(work_state s) {
    return s != work_state::queued && s != work_state::compiling && s != work_state::loading;
}

}  // namespace

bool may_have_gpu() noexcept {
    static bool const answer = [] {
        // Linux, WSL, Tegra.
        for (auto const* path : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl", "/dev/nvhost-gpu", "/dev/nvgpu"}) {
            if (::access(path, F_OK) == 0) return true;
        }
        return false;
    }();
    return answer;
}

std::shared_ptr<director> director::of(engine& e) {
    auto& s = e.internals();
    std::lock_guard const lock{s.attached_mutex};
    if (!s.attached && !s.shut) s.attached = std::make_shared<director>(e);
    return std::static_pointer_cast<director>(s.attached);
}

director::~director() {
    stop();
    join();
}

void director::add(batch_ptr const& batch) {
    if (batch->how.targets.empty() && !may_have_gpu()) {
        for (auto const& w : batch->what) {
            constexpr std::string_view why = "no GPU on this machine, and no target was named";
            write_down_demand(*batch, {w.name()}, {}, batch->how.how);
            write_down_deferred(w.name(), why);
            batch->hopeless.push_back({.name = w.name(),
                                       .target = {},
                                       .state = work_state::deferred,
                                       .why = std::string{why},
                                       .code = errc::no_device});
        }
        batch->taken = true;
        return;
    }
    {
        std::lock_guard const lock{mutex_};
        if (stopping_) return;
        incoming_.push_back(batch);
        start_intake();
        work_.notify_all();
        if (intake_.joinable()) return;
        incoming_.pop_back();
    }
    // Whoever waits for it would wait for nobody.
    for (auto const& w : batch->what) refuse(batch, w, work_state::failed, no_thread(w.name()));
    take_nothing_more(batch);
}

void director::first(std::function<void()> task) {
    std::lock_guard const lock{mutex_};
    if (stopping_) return;
    first_.push_back(std::move(task));
    start_intake();
    work_.notify_all();
}

void director::take(batch_ptr const& batch) {
    for (auto const& w : batch->what) {
        {
            std::lock_guard const lock{mutex_};
            if (stopping_ || batch->cancelled) break;
        }
        if (batch->how.targets.empty()) try_to_place(batch, w, std::nullopt);
        for (auto const& t : batch->how.targets) try_to_place(batch, w, t);
    }
    take_nothing_more(batch);
}

// Nobody else could catch on this thread.
void director::try_to_place(batch_ptr const& batch, want const& w, std::optional<kiln::target> const& t) noexcept {
    try {
        place(batch, w, t);
    } catch (std::exception const&) {
        auto const why = base::caught_error();
        try {
            refuse(batch, w, work_state::failed, why);
        } catch (std::exception const&) {
            // Not even for its name: there is room for this much.
            std::lock_guard const lock{mutex_};
            batch->hopeless.push_back({.name = {},
                                       .target = {},
                                       .state = work_state::failed,
                                       .why = "out of memory",
                                       .code = errc::out_of_memory});
        }
    }
}

void director::take_nothing_more(batch_ptr const& batch) {
    {
        std::lock_guard const lock{mutex_};
        batch->taken = true;
    }
    changed_.notify_all();
}

std::string director::label_of(int device) {
    auto const info = kiln::device(device);
    return info ? info->target() : std::string{};
}

// What goes into the ledger goes into the events too: whoever reads them later is told the same.
void director::write_down_demand(demanded::state const& batch, engine_detail::known_as thing, std::string_view target,
                                 priority how) {
    auto& s = engine_.internals();
    s.book.demanded(thing, target, how, batch.how.consumer);
    s.events.emit({.kind = event_kind::demanded,
                   .unit = thing.name,
                   .target = target,
                   .reason = name_of(how),
                   .detail = batch.how.consumer,
                   .request = thing.id.prefix()});
}

void director::write_down_deferred(std::string_view name, std::string_view why) {
    auto& s = engine_.internals();
    s.book.deferred(name, {});
    s.events.emit({.kind = event_kind::note, .unit = name, .reason = name_of(work_state::deferred), .detail = why});
}

void director::write_down_failure(std::string_view name, std::string_view target, error const& why) {
    auto& s = engine_.internals();
    s.book.failed(name, target, why);
    s.events.emit({.kind = why.code() == errc::cancelled ? event_kind::note : event_kind::compile_failed,
                   .unit = name,
                   .target = target,
                   .reason = name_of(why.code()),
                   .detail = why.message()});
}

void director::refuse(batch_ptr const& batch, want const& w, work_state state, error const& why) {
    write_down_demand(*batch, {w.name()}, {}, batch->how.how);
    if (state == work_state::deferred) write_down_deferred(w.name(), why.message());
    else write_down_failure(w.name(), {}, why);
    {
        std::lock_guard const lock{mutex_};
        batch->hopeless.push_back({.name = w.name(),
                                   .target = {},
                                   .state = state,
                                   .why = why.message(),
                                   .log = why.log(),
                                   .code = why.code()});
    }
    base::if_memory_allows([&] { progress_.settle(w.name(), state, progress_.add(w.name()), {}); });
}

// Finds or makes the item; nullopt where there is nothing to do about it.
std::optional<item_ptr> director::item_for(batch_ptr const& batch, want const& w,
                                           std::optional<kiln::target> const& t) {
    auto& s = engine_.internals();
    auto fresh = std::make_shared<item>();
    fresh->name = w.name();
    fresh->for_target = t;
    fresh->device = batch->how.device;
    if (!t) {
        // Starts the driver, here where nobody waits for it.
        if (auto const info = kiln::device(batch->how.device); !info) {
            refuse(batch, w, work_state::deferred, info.error());
            return std::nullopt;
        }
    }
    fresh->label = t ? t->arch.name() : label_of(fresh->device);
    std::pair<base::digest, std::string> key;
    if (auto const u = w.as_unit()) {
        auto order = t ? s.order_for(*u, *t) : s.order_on(*u, fresh->device);
        if (!order) {
            refuse(batch, w, work_state::failed, order.error());
            return std::nullopt;
        }
        key.first = fresh->identity = engine_detail::identity_of(order->subject);
        fresh->order = std::make_shared<engine_detail::order const>(*std::move(order));
    } else {
        auto recipe =
            w.as_recipe() ? result<engine_detail::recipe>{*w.as_recipe()} : engine_detail::find_recipe(w.name());
        if (!recipe) {
            refuse(batch, w, work_state::failed, recipe.error());
            return std::nullopt;
        }
        key.first = recipe->id();
        fresh->made_by = *std::move(recipe);
    }
    key.second = t ? fmt::format("{} {}", fresh->label, name_of(t->kind)) : fmt::format("device {}", fresh->device);

    std::lock_guard const lock{mutex_};
    auto& slot = items_[key];
    if (!slot) {
        fresh->sequence = ++last_sequence_;
        fresh->since_ns = base::now_ns();
        fresh->expected = progress_.add(fresh->name);
        slot = std::move(fresh);
    }
    return slot;
}

director::placement director::join(batch_ptr const& batch, item_ptr const& i, priority& how) {
    std::lock_guard const lock{mutex_};
    if (batch->cancelled) return placement::nothing;
    how = batch->how.how;
    batch->items.push_back(i);
    ++i->wanted_by;
    i->how = std::max(i->how, how);
    if (i->state == work_state::cancelled) {
        i->started = false;
        set_state(*i, work_state::queued);
        i->expected = progress_.add(i->name);
    }
    return std::exchange(i->started, true) ? placement::raised : placement::started;
}

void director::place(batch_ptr const& batch, want const& w, std::optional<kiln::target> const& t) {
    auto const found = item_for(batch, w, t);
    if (!found) return;
    auto const& i = *found;
    auto how = priority::predicted;
    switch (join(batch, i, how)) {
        case placement::nothing: return withdraw_untouched(i);
        case placement::raised:
            base::if_memory_allows([&] {
                write_down_demand(*batch, i->line(), i->label, how);
                if (i->is_unit()) engine_.internals().requests->raise(i->identity, how);
            });
            return;
        case placement::started: break;
    }
    settling(i, [&] {
        write_down_demand(*batch, i->line(), i->label, how);
        if (i->is_unit()) ask_for_unit(i);
        else queue_load(i, task_kind::try_pack);
    });
}

// Made for a batch that was cancelled before it came to anything: nobody wants it, nothing was started.
void director::withdraw_untouched(item_ptr const& i) {
    {
        std::lock_guard const lock{mutex_};
        if (i->started) return;
    }
    settle(i, fail(errc::cancelled, "'{}': the demand was withdrawn", i->name));
}

void director::ask_for_unit(item_ptr const& i) {
    auto& s = engine_.internals();
    if (!i->for_target) {
        if (auto ready = s.already_loaded(*i->order, i->device))
            return settle(i, std::shared_ptr<void const>{std::make_shared<ready_unit>(*std::move(ready))});
    }
    auto const how = [&] {
        std::lock_guard const lock{mutex_};
        return i->how;
    }();
    auto const answer = s.requests->ask(*i->order, how).answer;
    bool wanted = false;
    {
        // It may have been cancelled between the demand and this: then there was nothing to take back yet.
        std::lock_guard const lock{mutex_};
        wanted = i->in_engine = i->wanted_by > 0;
    }
    if (!wanted) s.requests->cancel(i->identity);
    answer.then([weak = weak_from_this(), i](result<obtained> const& got) {
        if (auto const self = weak.lock()) self->settling(i, [&] { self->unit_answered(i, got); });
    });
}

void director::unit_answered(item_ptr const& i, result<obtained> const& got) {
    {
        std::lock_guard const lock{mutex_};
        i->in_engine = false;
    }
    if (!got && got.error().code() == errc::cancelled && is_wanted_again(*i)) return ask_for_unit(i);
    // Without a compiler a bundle may still have something the driver or nvJitLink can use.
    bool const perhaps = !got && got.error().code() == errc::not_found && !i->for_target;
    if (!got && !perhaps) return settle(i, error{got.error()});
    if (i->for_target) return settle(i, std::shared_ptr<void const>{});
    queue_load(i, task_kind::load);
}

// Withdrawn by the last who wanted it, and demanded anew before that took effect.
bool director::is_wanted_again(item const& i) {
    std::lock_guard const lock{mutex_};
    return !stopping_ && i.wanted_by > 0;
}

void director::set_state(item& i, work_state state) {
    i.state = state;
    i.since_ns = base::now_ns();
}

// Whoever waits for it is told, whether or not there is memory to write it down.
void director::settle(item_ptr const& i, result<std::shared_ptr<void const>> how) noexcept {
    std::optional<unit_status> seen;
    base::if_memory_allows([&] {
        // Of a unit the engine has written everything down; a pack may have failed before it came to the engine.
        if (!how && !i->is_unit()) write_down_failure(i->name, i->label, how.error());
        seen = engine_.internals().book.find(i->line(), i->label);
    });
    auto state = work_state::ready;
    progress_board::expectation expected;
    {
        std::lock_guard const lock{mutex_};
        if (is_done(i->state)) return;
        if (!how) {
            state = how.error().code() == errc::cancelled ? work_state::cancelled : work_state::failed;
            i->why = std::move(how).error();
        } else {
            i->kept = *std::move(how);
            i->why.reset();
        }
        i->running = false;
        set_state(*i, state);
        expected = i->expected;
    }
    // Before those who wait: they may be listening, and gone when they have what they waited for.
    double const compile_ms = seen && seen->from == provenance::compiled ? seen->compile_ms : 0;
    base::if_memory_allows([&] {
        progress_.settle(i->name, state, expected,
                         {.compile_ms = compile_ms, .at_once = engine_.internals().pool->capacity()});
    });
    changed_.notify_all();
}

void director::raise(batch_ptr const& batch, priority how) {
    std::vector<item_ptr> raised;
    {
        std::lock_guard const lock{mutex_};
        batch->how.how = std::max(batch->how.how, how);
        for (auto const& i : batch->items) {
            if (i->how >= how || is_done(i->state)) continue;
            i->how = how;
            raised.push_back(i);
        }
    }
    for (auto const& i : raised) {
        write_down_demand(*batch, i->line(), i->label, how);
        if (i->is_unit()) engine_.internals().requests->raise(i->identity, how);
    }
}

void director::cancel(batch_ptr const& batch) {
    std::vector<item_ptr> free;
    {
        std::lock_guard const lock{mutex_};
        free.reserve(batch->items.size());
        if (std::exchange(batch->cancelled, true)) return;
        for (auto const& i : batch->items) {
            if (--i->wanted_by > 0 || is_done(i->state) || i->running) continue;
            // What the engine was not asked for yet is taken back by whoever is about to ask.
            if (i->is_unit() && !std::exchange(i->in_engine, false)) continue;
            std::erase(to_drive_, i);
            std::erase_if(to_load_, [&](work_item const& w) { return w.what == i; });
            free.push_back(i);
        }
    }
    for (auto const& i : free) {
        if (i->is_unit()) engine_.internals().requests->cancel(i->identity);
        else settle(i, fail(errc::cancelled, "'{}': the demand was withdrawn", i->name));
    }
}

bool director::wait_until(demanded::state const& batch, base::time_point deadline) {
    std::unique_lock lock{mutex_};
    // What is done is not looked at again with every item of a long list, only once more at the end.
    std::size_t done = 0;
    return changed_.wait_until(lock, deadline, [&] {
        if (stopping_) return true;
        if (!batch.taken) return false;
        while (done < batch.items.size() && is_done(batch.items[done]->state)) ++done;
        if (done < batch.items.size()) return false;
        done = 0;
        return std::ranges::all_of(batch.items, [](item_ptr const& i) { return is_done(i->state); });
    });
}

warm_report director::cold(demanded::state const& batch) {
    auto& book = engine_.internals().book;
    auto const now = base::now_ns();
    warm_report out;
    std::lock_guard const lock{mutex_};
    out.cold = batch.hopeless;
    out.total = batch.hopeless.size() + batch.items.size();
    if (!batch.taken) {
        // Nothing has been looked at yet.
        auto const per_want = std::max<std::size_t>(1, batch.how.targets.size());
        out.total = batch.what.size() * per_want;
        for (std::size_t n = (batch.items.size() + batch.hopeless.size()) / per_want; n < batch.what.size(); ++n)
            out.cold.push_back({.name = batch.what[n].name(), .target = {}, .state = work_state::queued});
    }
    for (auto const& i : batch.items) {
        if (i->state == work_state::ready) continue;
        cold_item c{.name = i->name,
                    .target = i->label,
                    .state = i->state,
                    .since_ms = static_cast<double>(now - i->since_ns) * 1e-6};
        if (i->why) {
            c.why = i->why->message();
            c.log = i->why->log();
            c.code = i->why->code();
        }
        if (!is_done(i->state)) {
            auto const seen = book.find(i->line(), i->label);
            if (seen && (seen->state == work_state::compiling || seen->state == work_state::loading)) {
                c.state = seen->state;
                c.since_ms = seen->since_ms;
            } else if (i->running) c.state = work_state::compiling;
        }
        out.cold.push_back(std::move(c));
    }
    return out;
}

}  // namespace kiln::warmup
