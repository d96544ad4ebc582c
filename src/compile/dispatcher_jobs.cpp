// SPDX-License-Identifier: Apache-2.0
// What becomes of jobs: given to a worker, settled, tried again, given up with a reproduction file, or run here.
#include "compile/dispatcher.hpp"

#include "base/caught.hpp"
#include "compile/reproduction.hpp"

namespace kiln::compile {

namespace {

std::string target_of(job const& work) {
    return std::visit([](auto const& w) { return w.target.arch.name(); }, work.task);
}

}  // namespace

std::size_t dispatcher::queued() const {
    std::lock_guard const lock{core_.mutex};
    return core_.queue.size();
}

std::optional<dispatcher::active_job> dispatcher::next_queued() {
    auto next = [&] {
        std::lock_guard const lock{core_.mutex};
        return core_.queue.pop();
    }();
    if (!next) return std::nullopt;
    return active(*std::move(next));
}

dispatcher::active_job dispatcher::active(queued_job next) {
    return {.id = next.id,
            .work = std::make_shared<job const>(std::move(next.work)),
            .done = std::move(next.done),
            .tell = std::move(next.tell),
            .prefix = next.prefix,
            .how = next.how};
}

steering dispatcher::steer(worker const& w, base::digest const& prefix) const {
    if (w.prefixes.has(prefix)) return steering::here;
    auto out = steering::nowhere;
    for (auto const& other : workers_) {
        if (other.where == phase::dying || !other.prefixes.has(prefix)) continue;
        if (other.where == phase::idle) return steering::idle;
        out = steering::busy;
    }
    return out;
}

// What somebody waits for is better off in a worker that has not stepped back, and what nobody waits for in one that has. Headers that
// a worker has count for more: without others on the machine stepping back costs nothing.
steering dispatcher::steer(worker const& w, queued_job const& j) const {
    auto const by_headers = j.prefix ? steer(w, *j.prefix) : steering::nowhere;
    if (by_headers == steering::here) return by_headers;
    bool const should_step_back = j.how != priority::blocking;
    bool const is_another_better =
        w.steps_back != should_step_back && std::ranges::any_of(workers_, [&](worker const& other) {
            return other.where == phase::idle && other.steps_back == should_step_back;
        });
    return is_another_better ? steering::idle : by_headers;
}

std::optional<dispatcher::active_job> dispatcher::next_queued_for(worker const& w) {
    auto const rank = [&](queued_job const& j) -> std::optional<int> {
        auto const how = steer(w, j);
        return how == steering::idle ? std::nullopt : std::optional{static_cast<int>(how)};
    };
    auto next = [&] {
        std::lock_guard const lock{core_.mutex};
        return core_.queue.pop(rank);
    }();
    if (!next) return std::nullopt;
    return active(*std::move(next));
}

std::optional<dispatcher::active_job> dispatcher::next_job(worker const& w, base::time_point now) {
    bool const fresh_enough = w.jobs_done == 0 || trouble_.resting(now);
    if (retries_.empty() || !fresh_enough) return next_queued_for(w);
    auto next = std::move(retries_.front());
    retries_.pop_front();
    return next;
}

void dispatcher::assign(base::time_point now) {
    // A job left for the one that has its headers is anybody's once that one is at work.
    for (bool given = true; given;) {
        given = false;
        for (auto& w : workers_) {
            while (w.where == phase::idle) {
                auto next = next_job(w, now);
                if (!next) break;
                given = true;
                give(w, std::move(*next), now);
            }
        }
    }
}

error const* dispatcher::quarantined(base::byte_span encoded) const {
    if (quarantine_.empty()) return nullptr;
    auto const at = quarantine_.find(base::sha256_of(encoded));
    return at == quarantine_.end() ? nullptr : &at->second;
}

// Leaves the worker busy with the job; or idle if the job was settled without it; or dying if it turned out to be gone.
void dispatcher::give(worker& w, active_job j, base::time_point now) {
    auto const encoded = encode(*j.work);
    if (auto const* known = quarantined(encoded)) return finish(j, *known);
    // What broke a worker is tried again as plainly as can be.
    auto const headers = j.tries.count() == 0 ? header_use::reused : header_use::plain;
    if (j.how != priority::blocking) w.steps_back = true;
    std::uint8_t const nice = w.steps_back ? starvation::nice : 0;
    auto sent = w.process.send(frame_kind::request, encode(numbered_body{j.id, headers, encoded, nice}));
    if (!sent && sent.error().code() == errc::invalid_argument) {
        return finish(j, std::move(sent).error().within(j.work->name()));
    }
    if (!sent) {
        // It died while idle: no fault of this job.
        retries_.push_front(std::move(j));
        return lost_stream(w, {});
    }
    if (j.tell.started) base::if_memory_allows([&] { j.tell.started(w.process.pid()); });
    if (j.prefix) w.prefixes.add(*j.prefix);
    j.started = now;
    j.had = {};
    j.left = patience{now, core_.options.compile_timeout, w.process.time_had()};
    w.work = std::move(j);
    w.where = phase::busy;
    w.since = now;
}

void dispatcher::settle(worker& w, result<product> outcome, header_use headers) {
    auto const now = base::clock::now();
    auto j = std::move(*w.work);
    w.work.reset();
    w.where = phase::idle;
    w.since = now;
    ++w.jobs_done;
    w.busy_ns += std::chrono::nanoseconds{now - j.started}.count();
    w.process.forget_words();
    if (!outcome && outcome.error().code() == errc::out_of_memory) {
        end(w, "memory", outcome.error().message());
        return came_to_grief(std::move(j), mishap::memory, outcome.error().message(), w.process.last_words());
    }
    core_.count([&](auto& c) {
        if (headers == header_use::made) ++c.headers_made;
        if (headers == header_use::reused) ++c.headers_reused;
    });
    if (j.tell.headers) j.tell.headers(headers);
    finish(j, std::move(outcome));
}

void dispatcher::finish(active_job& j, result<product> outcome) {
    core_.count([&](auto& c) { ++(outcome ? c.done : c.failed); });
    j.done(std::move(outcome));
}

void dispatcher::came_to_grief(active_job j, mishap what, std::string const& how, std::string const& words) {
    if (what == mishap::memory) limit_.halve(base::clock::now());
    j.tries.add(what);
    if (j.tries.may_try_again()) {
        core_.count([](auto& c) { ++c.retried; });
        retries_.push_back(std::move(j));
        return;
    }
    auto why = final_error(j, what, how, words);
    // A job that crashes its compiler does so again. Hangs, kills and shortages may be the machine's doing.
    if (what == mishap::crashed) quarantine_.emplace(base::sha256_of(encode(*j.work)), why);
    finish(j, std::move(why));
}

error dispatcher::final_error(active_job const& j, mishap what, std::string const& how, std::string const& words) {
    auto message = fmt::format("{} for {}: ", j.work->name(), target_of(*j.work));
    auto code = errc::worker_failed;
    int const times = j.tries.count();
    switch (what) {
        case mishap::crashed: message += fmt::format("the compiler failed {} times, last: {}", times, how); break;
        case mishap::killed:
            message += fmt::format("the compile process was killed {} times, last: {}", times, how);
            break;
        case mishap::hung:
            code = errc::timeout;
            message += fmt::format("{}, {} times; allow more with KILN_COMPILE_TIMEOUT", how, times);
            break;
        case mishap::memory:
            code = errc::out_of_memory;
            message += fmt::format(
                "the compiler needs more memory than there is or than the bound of {} MiB (KILN_WORKER_MEMORY), "
                "{} times, last: {}",
                core_.options.worker_memory >> 20, times, how);
            break;
    }
    if (!core_.options.reproductions.empty()) {
        auto const file = write_reproduction(core_.options.reproductions, {*j.work, how, words});
        message += file ? fmt::format("; reproduction: {}", file->native())
                        : fmt::format("; no reproduction: {}", file.error().message());
    }
    return error{code, std::move(message)}.with_log(words);
}

void dispatcher::run_here(base::time_point now) {
    bool const by_choice = core_.capacity() == 0;
    while (!here_.busy() && (by_choice || (trouble_.resting(now) && count_alive() == 0))) {
        std::optional<active_job> next;
        if (retries_.empty()) {
            next = next_queued();
        } else {
            next = std::move(retries_.front());
            retries_.pop_front();
        }
        if (!next) return;
        if (!next->tries.harmless()) {
            finish(*next, fail(errc::worker_failed, "{}: its worker failed and no other can be started: {}",
                               next->work->name(), trouble_.why()));
            continue;
        }
        if (!by_choice) {
            core_.events.emit({.kind = event_kind::fell_back,
                               .unit = next->work->name(),
                               .target = target_of(*next->work),
                               .reason = "in-process",
                               .detail = trouble_.why()});
        }
        core_.count([](auto& c) { ++c.in_process; });
        if (next->tell.started) base::if_memory_allows([&] { next->tell.started(core_.owner); });
        if (auto started = here_.start(next->work); !started) finish(*next, std::move(started).error());
        else here_job_ = std::move(next);
    }
}

}  // namespace kiln::compile
