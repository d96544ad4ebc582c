// SPDX-License-Identifier: Apache-2.0
#include "compile/in_process.hpp"

#include "base/caught.hpp"
#include "compile/program_end.hpp"

namespace kiln::compile {

namespace {

result<product> run_guarded(job_runner const& run, job const& work) {
    try {
        return run(work);
    } catch (std::exception const&) {
        return base::caught_error(work.name());
    }
}

}  // namespace

result<void> in_process_runner::start(std::shared_ptr<job const> work) {
    auto here = std::make_shared<compile_in_program>();
    if (is_program_ending()) return fail(errc::cancelled, "'{}': the program is ending", work->name());
    auto mine = std::make_shared<slot>();
    KILN_TRY(auto thread, base::start_quiet_thread([mine, work = std::move(work), run = run_, wake = wake_,
                                                    here = std::move(here)]() mutable {
                 here->runs_here();
                 auto outcome = run_guarded(run, *work);
                 here->done();
                 std::lock_guard const lock{mine->mutex};
                 mine->outcome = std::move(outcome);
                 wake->ring();
             }));
    thread.detach();
    slot_ = std::move(mine);
    return {};
}

std::optional<result<product>> in_process_runner::take() {
    if (!slot_) return std::nullopt;
    std::optional<result<product>> out;
    {
        std::lock_guard const lock{slot_->mutex};
        out = std::move(slot_->outcome);
    }
    if (out) slot_.reset();
    return out;
}

}  // namespace kiln::compile
