// SPDX-License-Identifier: Apache-2.0
// The director's threads: one that takes demands in, one that loads, and as many that drive packs as compiles run at once.
#include "warmup/director.hpp"

#include "base/quiet_thread.hpp"

#include <algorithm>

namespace kiln::warmup {

namespace {

using engine_detail::role_scope;
using engine_detail::thread_role;

// The most urgent; of equals the first.
template <class Range, class Of>
auto most_urgent(Range& all, Of of) {
    return std::ranges::min_element(all, [&](auto const& a, auto const& b) {
        auto const& x = *of(a);
        auto const& y = *of(b);
        return x.how != y.how ? x.how > y.how : x.sequence < y.sequence;
    });
}

constexpr std::chrono::milliseconds patience_at_exit{100};

}  // namespace

error director::no_thread(std::string const& name) {
    return fail(errc::io, "'{}': no thread could be started to bring it in; the system has none left", name);
}

// With the lock, which the new thread asks for before it counts itself out.
template <class Body>
void director::start(std::thread& thread, Body body) {
    auto whole = [this, body = std::move(body)] {
        body();
        std::lock_guard const lock{mutex_};
        --alive_;
        changed_.notify_all();
    };
    // Signals are the host program's. A machine that has no thread left has no warm-up.
    auto made = base::start_quiet_thread(std::move(whole));
    if (!made) return;
    ++alive_;
    thread = *std::move(made);
}

// With the lock. Afterwards `intake_` is joinable, unless the system has no thread.
void director::start_intake() {
    if (!intake_.joinable()) start(intake_, [this] { run_intake(); });
}

void director::run_intake() {
    for (;;) {
        std::vector<std::function<void()>> tasks;
        std::vector<batch_ptr> batches;
        {
            std::unique_lock lock{mutex_};
            work_.wait(lock, [&] { return stopping_ || !first_.empty() || !incoming_.empty(); });
            if (stopping_) return;
            tasks.swap(first_);
            batches.swap(incoming_);
        }
        // Callers' demands before predictions, in the order they came.
        std::ranges::stable_sort(batches, std::ranges::greater{}, [](batch_ptr const& b) { return b->how.how; });
        for (auto const& b : batches) take(b);
        for (auto const& task : tasks) base::if_memory_allows(task);
    }
}

void director::queue_load(item_ptr const& i, task_kind kind) {
    {
        std::lock_guard const lock{mutex_};
        if (stopping_) return;
        to_load_.push_back({i, kind});
        if (!loader_.joinable()) start(loader_, [this] { run_loader(); });
        work_.notify_all();
        if (loader_.joinable()) return;
        to_load_.pop_back();
    }
    settle(i, no_thread(i->name));
}

void director::queue_drive(item_ptr const& i) {
    {
        std::lock_guard const lock{mutex_};
        if (stopping_) return;
        to_drive_.push_back(i);
        auto const most = static_cast<std::size_t>(std::clamp(engine_.internals().pool->capacity(), 1, 64));
        if (to_drive_.size() > idle_drivers_ && drivers_.size() < most) {
            start(drivers_.emplace_back(), [this] { run_driver(); });
            if (!drivers_.back().joinable()) drivers_.pop_back();
        }
        work_.notify_all();
        if (!drivers_.empty()) return;
        to_drive_.pop_back();
    }
    settle(i, no_thread(i->name));
}

void director::run_loader() {
    for (;;) {
        work_item next;
        {
            std::unique_lock lock{mutex_};
            work_.wait(lock, [&] { return stopping_ || !to_load_.empty(); });
            if (stopping_) return;
            auto const at = most_urgent(to_load_, [](work_item const& w) { return w.what.get(); });
            next = std::move(*at);
            to_load_.erase(at);
        }
        settling(next.what, [&] { next.kind == task_kind::load ? load_unit(next.what) : try_pack(next.what); });
    }
}

void director::run_driver() {
    for (;;) {
        item_ptr next;
        {
            std::unique_lock lock{mutex_};
            ++idle_drivers_;
            work_.wait(lock, [&] { return stopping_ || !to_drive_.empty(); });
            --idle_drivers_;
            if (stopping_) return;
            auto const at = most_urgent(to_drive_, [](item_ptr const& i) { return i.get(); });
            next = std::move(*at);
            to_drive_.erase(at);
            next->running = true;
            next->since_ns = base::now_ns();
        }
        settling(next, [&] { drive_pack(next); });
    }
}

void director::load_unit(item_ptr const& i) {
    role_scope const role{{thread_role::kind::background, i->how}};
    auto ready = engine_.internals().get_sync(*i->order, i->device, {});
    if (!ready) return settle(i, std::move(ready).error());
    settle(i, std::shared_ptr<void const>{std::make_shared<ready_unit>(*std::move(ready))});
}

result<std::shared_ptr<void const>> director::bring_in(item const& i) {
    auto const* const p = engine_detail::find_pack(i.made_by->kind);
    if (p == nullptr) return fail(errc::not_found, "'{}': there is no pack '{}' here", i.name, i.made_by->kind);
    if (!i.for_target) return p->load(engine_, *i.made_by, i.device, {});
    KILN_TRY(auto const made, p->make(engine_, *i.made_by, *i.for_target, {}));
    engine_.internals().book.obtained(i.line(), i.label,
                                      {made.got.from, made.got.what->compile_ms, made.got.what->image.size()});
    return std::shared_ptr<void const>{};
}

void director::try_pack(item_ptr const& i) {
    role_scope const role{{thread_role::kind::find_only, i->how}};
    auto done = bring_in(*i);
    if (!done && done.error().code() == errc::timeout) return queue_drive(i);
    settle(i, std::move(done));
}

void director::drive_pack(item_ptr const& i) {
    auto const how = [&] {
        std::lock_guard const lock{mutex_};
        return i->how;
    }();
    role_scope const role{{thread_role::kind::background, how}};
    settle(i, bring_in(*i));
}

void director::stop() noexcept {
    {
        std::lock_guard const lock{mutex_};
        stopping_ = true;
    }
    work_.notify_all();
    changed_.notify_all();
}

void director::join() noexcept {
    {
        std::lock_guard const lock{mutex_};
        if (std::exchange(joined_, true)) return;
    }
    // At exit a thread that starts the driver or creates a context is left behind: the process ends under it.
    bool ended = true;
    if (engine_.internals().is_process) {
        std::unique_lock lock{mutex_};
        ended = changed_.wait_for(lock, patience_at_exit, [&] { return alive_ == 0; });
    }
    auto const leave = [&](std::thread& t) {
        if (!t.joinable()) return;
        if (ended) t.join();
        else t.detach();
    };
    leave(intake_);
    leave(loader_);
    std::ranges::for_each(drivers_, leave);  // no more come: it was stopped
}

}  // namespace kiln::warmup
