// SPDX-License-Identifier: Apache-2.0
#include "run_session.hpp"

#include "base/quiet_writes.hpp"
#include "intercept/program_name.hpp"
#include "message.hpp"
#include "run_child.hpp"

#include <sys/wait.h>

namespace kiln::cli {

namespace {

// As in /proc/PID/cmdline.
std::string joined(std::vector<std::string> const& words) {
    std::string out;
    for (auto const& word : words) (out += word) += '\0';
    return out;
}

// What is not answered is told to who wants to know, and to who relies on it.
void tell_what_is_left_alone(run_environment& surroundings, std::string const& program, run_talk const& how) {
    base::quiet_writes const quiet;
    auto const out_of_reach = why_out_of_reach(program);
    if (out_of_reach.is_harmed) surroundings.take_hook_out();
    if (!how.verbose && !how.forbids) return;
    auto const but = how.forbids ? "; what it compiles is not forbidden" : "";
    if (!surroundings.why_not().empty())
        complain(fmt::format("run: {}: nothing is answered{}", surroundings.why_not(), but));
    else if (!out_of_reach.reason.empty())
        complain(fmt::format("run: '{}' runs as without Kiln: {}{}", program, out_of_reach.reason, but));
}

}  // namespace

run_outcome run_in(run_environment& surroundings, base::config const& settings, run_session const& what) {
    if (!what.jit.empty()) surroundings.set("KILN_JIT", what.jit);
    if (what.verify) surroundings.set("KILN_RUN_VERIFY", "1");
    if (what.eager) surroundings.set("KILN_RUN_EAGER", "1");
    auto talk = what.talk;
    talk.forbids = (what.jit.empty() ? settings.text("KILN_JIT") : what.jit) == "forbid";
    tell_what_is_left_alone(surroundings, what.program.front(), talk);
    run_workers workers{surroundings.private_folder(), settings};
    if (workers.is_open()) surroundings.set("KILN_RUN_WORKERS", workers.address().native());
    surroundings.keep_log_at(workers.is_open() ? workers.address() : std::filesystem::path{});
    run_ahead ahead{surroundings.private_folder(), intercept::program_name(joined(what.program))};
    surroundings.set("KILN_RUN_KNOWN", ahead.known().native());
    auto const status = run_to_its_end(what.program, surroundings.variables(), workers, ahead);
    run_outcome out{.log = intercept::read_run_log(surroundings.log()), .talk = talk};
    ahead.remember(out.log);
    if (!status) {
        complain(status.error());
        out.status = 127;
        out.is_ours = true;
        out.is_started = false;
        return out;
    }
    bool const is_wrong = what.verify && WIFEXITED(*status) && summed(out.log.happenings).different > 0;
    out.status = is_wrong ? failed : *status;
    out.is_ours = is_wrong;
    return out;
}

bool ended_well(run_outcome const& outcome) {
    return !outcome.is_ours && WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0;
}

int end_of(run_outcome const& outcome) { return outcome.is_ours ? outcome.status : end_like(outcome.status); }

}  // namespace kiln::cli
