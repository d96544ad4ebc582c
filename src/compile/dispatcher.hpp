// SPDX-License-Identifier: Apache-2.0
//
// The pool's thread: owns every worker, gives jobs to them, watches deadlines and deaths, and decides what becomes of a
// job whose worker came to grief. Everything here is touched by that one thread only; what callers see goes through
// pool_core.
#pragma once

#include "base/digest.hpp"
#include "compile/in_process.hpp"
#include "compile/pool_policy.hpp"
#include "compile/viewpoint.hpp"
#include "compile/worker_process.hpp"

#include <deque>
#include <list>
#include <poll.h>
#include <unordered_map>

namespace kiln::compile {

class dispatcher {
public:
    dispatcher(pool_core& core, std::shared_ptr<bell const> wake);
    void run();

private:
    struct active_job {
        worker_pool::ticket id = 0;
        std::shared_ptr<job const> work;
        owed_answer done;
        job_notices tell{};
        attempts tries{};
        std::optional<base::digest> prefix{};  // of its headers: source_prefix.hpp
        priority how = priority::predicted;
        base::time_point started{};
        patience left{};
        starvation had{};
    };

    enum class phase { starting, idle, busy, dying };

    struct worker {
        worker_process process;
        viewpoint seen_from{};  // of the program's, when it was started
        phase where = phase::starting;
        base::time_point since;            // when this phase began
        std::optional<active_job> work{};  // busy; or dying, and what becomes of the job depends on how it ended
        std::string_view end_reason = {};  // dying at our hand
        std::string end_detail = {};
        bool greeted = false;     // it said hello
        bool steps_back = false;  // for everybody else: it had a job that nobody waited for
        std::uint64_t jobs_done = 0;
        std::int64_t busy_ns = 0;
        recent_prefixes prefixes{};  // what it has, or is making, precompiled headers of
    };
    using worker_list = std::list<worker>;
    // Somebody waits for a job that is at everybody else's mercy.
    [[nodiscard]] static bool is_kept_waiting(worker const& w) noexcept {
        return w.steps_back && w.work && w.work->how == priority::blocking;
    }
    // Nobody waits for its job, which is at everybody else's mercy and could be begun anew.
    [[nodiscard]] static bool could_make_room(worker const& w) noexcept {
        return w.steps_back && w.work && w.work->how != priority::blocking && w.work->tries.count() == 0;
    }

    // One turn of the loop.
    void turn();
    void expire(base::time_point now);
    void start_workers(base::time_point now);
    void assign(base::time_point now);
    void run_here(base::time_point now);
    void publish();
    void wait(base::time_point now);
    void listen();
    void excuse_lateness(base::time_point planned);
    [[nodiscard]] base::time_point next_wake(base::time_point now) const;
    void shut_down();
    void orphan(worker& w) noexcept;
    void close_jobs();
    void leave_to_undertaker();

    // Workers.
    [[nodiscard]] result<void> start_worker(base::time_point now);
    void look_after(worker& w, base::time_point now);
    void hear_who_waits();
    void begin_anew_if_starved(worker& w, base::time_point now);
    // How many jobs that somebody waits for have no worker, and will have none until another is done.
    [[nodiscard]] int count_without_room() const;
    [[nodiscard]] bool makes_room_if_starved(worker& w, base::time_point now);
    void hear(worker& w);
    [[nodiscard]] result<void> understand(worker& w, frame const& f);
    [[nodiscard]] result<void> welcome(worker& w, frame const& f);
    void end(worker& w, std::string_view reason, std::string detail = {});
    [[nodiscard]] active_job take_job(worker& w, std::string_view reason, std::string detail) noexcept;
    void lost_stream(worker& w, std::string detail);
    void bury(base::time_point now);
    void mourn(worker& w, child_end const& how, base::time_point now);
    [[nodiscard]] mishap classify(child_end const& how, std::string_view words);
    void retire_stale(int most);
    void retire_strangers();
    [[nodiscard]] int count(phase where) const noexcept;
    [[nodiscard]] int count_fresh() const noexcept;  // starting, or idle and never used
    [[nodiscard]] int count_alive() const noexcept;
    [[nodiscard]] int count_stillborn()
        const noexcept;  // ended by themselves before hello; not reaped, so not counted yet

    // Jobs.
    [[nodiscard]] std::optional<active_job> next_job(worker const& w, base::time_point now);
    [[nodiscard]] std::optional<active_job> next_queued();
    [[nodiscard]] std::optional<active_job> next_queued_for(worker const& w);
    [[nodiscard]] static active_job active(queued_job next);
    [[nodiscard]] steering steer(worker const& w, base::digest const& prefix) const;
    [[nodiscard]] steering steer(worker const& w, queued_job const& j) const;
    [[nodiscard]] std::size_t queued() const;
    void give(worker& w, active_job j, base::time_point now);
    void settle(worker& w, result<product> outcome, header_use headers);
    void came_to_grief(active_job j, mishap what, std::string const& how, std::string const& words);
    [[nodiscard]] error final_error(active_job const& j, mishap what, std::string const& how, std::string const& words);
    [[nodiscard]] error const* quarantined(base::byte_span encoded) const;
    void finish(active_job& j, result<product> outcome);

    pool_core& core_;
    std::shared_ptr<bell const> wake_;
    worker_list workers_;
    std::deque<active_job> retries_;  // before anything queued, and each in a fresh worker
    std::optional<active_job> here_job_;
    in_process_runner here_;
    concurrency_limit limit_;
    start_trouble trouble_;
    std::filesystem::path program_;  // empty: to be looked for
    std::optional<std::uint64_t> oom_kills_;
    std::unordered_map<base::digest, error, base::digest_hash> quarantine_;
    std::vector<::pollfd> polled_;
};

}  // namespace kiln::compile
