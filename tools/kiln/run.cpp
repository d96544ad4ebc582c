// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "capsule.hpp"
#include "intercept/program_name.hpp"
#include "intercept/run_log.hpp"
#include "run_ahead.hpp"
#include "run_environment.hpp"
#include "run_workers.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {

namespace {

struct run_arguments {
    std::string record;
    std::string capsule;
    std::string key;
    std::string jit;
    bool unsigned_too = false;
    bool no_frameworks = false;
    bool verify = false;
    bool verbose = false;
    bool quiet = false;
    bool json = false;
    std::vector<std::string> program;
};

// ---- the program as a child

std::atomic<pid_t> child_of_run{0};

void pass_on(int signal) {
    if (auto const pid = child_of_run.load(); pid > 0) ::kill(pid, signal);
}

// What a terminal sends goes to the program anyway, which is in our group; the rest is passed on. Nothing of it ends us before
// the program.
void handle_signals() {
    struct ::sigaction action {};
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    for (int const signal : {SIGINT, SIGQUIT}) {
        action.sa_handler = SIG_IGN;
        ::sigaction(signal, &action, nullptr);
    }
    for (int const signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGXCPU}) {
        action.sa_handler = pass_on;
        ::sigaction(signal, &action, nullptr);
    }
}

struct signal_state {
    std::array<struct ::sigaction, 32> actions{};
    ::sigset_t mask{};
    signal_state() {
        for (int s = 1; s < 32; ++s) ::sigaction(s, nullptr, &actions[static_cast<std::size_t>(s)]);
        ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    }
    void restore() const {
        for (int s = 1; s < 32; ++s) ::sigaction(s, &actions[static_cast<std::size_t>(s)], nullptr);
        ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    }
};

// Never comes back.
[[noreturn]] void become(std::vector<char*> const& arguments, std::vector<char*> const& environment, int report) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execvpe(arguments.front(), arguments.data(), environment.data());
    int const why = errno;
    (void)!::write(report, &why, sizeof why);
    ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string> const& texts) {
    std::vector<char*> out;
    for (auto const& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

// Compiles are made for the program while it runs. Where the kernel has no pidfds they are not, and it makes them itself.
void work_for(pid_t pid, run_workers& workers, std::vector<std::string> const& environment) {
#ifdef SYS_pidfd_open
    base::file_descriptor const end{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    if (end && workers.is_open()) workers.serve_until_end(end.get(), environment);
#endif
}

// The status as waitpid gives it. errc::not_found where the program could not be started.
result<int> wait_for(std::vector<std::string> const& program, std::vector<std::string> const& environment,
                     run_workers& workers, run_ahead& ahead) {
    auto const arguments = pointers(program);
    auto const variables = pointers(environment);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return io_error("pipe", errno);
    base::file_descriptor reads{pipe[0]}, writes{pipe[1]};
    signal_state const before;
    handle_signals();
    // None is lost between the fork and the moment we know whom to pass it on to.
    ::sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    auto const pid = ::fork();
    if (pid < 0) {
        int const why = errno;
        before.restore();
        return io_error("fork", why);
    }
    if (pid == 0) {
        before.restore();
        become(arguments, variables, writes.get());
    }
    child_of_run.store(pid);
    ::sigprocmask(SIG_SETMASK, &before.mask, nullptr);
    writes.reset();
    int why = 0;
    bool const started = ::read(reads.get(), &why, sizeof why) <= 0;
    if (started) ahead.start();
    if (started) work_for(pid, workers, environment);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return io_error("waitpid", errno);
    }
    child_of_run.store(0);
    before.restore();
    if (!started) return error{errc::not_found, fmt::format("{}: {}", program.front(), std::strerror(why))};
    return status;
}

// Who waits for us sees what became of the program: its exit status, or the signal that ended it.
int end_like(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    ::rlimit const no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::fflush(nullptr);
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

// ---- what cannot be served

std::filesystem::path found_in_path(std::string const& program) {
    if (program.find('/') != program.npos) return program;
    auto const* const path = ::getenv("PATH");
    std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
    while (true) {
        auto const colon = rest.find(':');
        auto const file = std::filesystem::path{rest.substr(0, colon)} / program;
        if (::access(file.c_str(), X_OK) == 0) return file;
        if (colon == rest.npos) return program;
        rest.remove_prefix(colon + 1);
    }
}

// The loader a program asks for; nullopt: it is no ELF program, a script perhaps. Empty: it has none.
std::optional<std::string> interpreter_of(std::filesystem::path const& file) {
    auto const fd = base::open_file(file, O_RDONLY | O_NONBLOCK);
    ::Elf64_Ehdr head{};
    if (!fd || ::pread(fd->get(), &head, sizeof head, 0) != sizeof head) return std::nullopt;
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
    for (int i = 0; i < head.e_phnum; ++i) {
        ::Elf64_Phdr part{};
        auto const at = static_cast<::off_t>(head.e_phoff + static_cast<std::uint64_t>(i) * sizeof part);
        if (::pread(fd->get(), &part, sizeof part, at) != sizeof part) break;
        if (part.p_type != PT_INTERP || part.p_filesz > 4096) continue;
        std::string out(part.p_filesz, '\0');
        if (::pread(fd->get(), out.data(), out.size(), static_cast<::off_t>(part.p_offset)) <= 0) break;
        return out.c_str();
    }
    return std::string{};
}

// Why the loader will not ask us in this program; empty when it will.
std::string out_of_reach(std::string const& program) {
    auto const file = found_in_path(program);
    struct ::stat about {};
    if (::stat(file.c_str(), &about) == 0 && (about.st_mode & (S_ISUID | S_ISGID)) != 0)
        return "it runs with raised privileges, where the loader takes nothing from the environment";
    auto const loader = interpreter_of(file);
    if (!loader) return {};
    if (loader->empty()) return "it is linked statically, so there is no loader to ask";
    if (loader->find("musl") != loader->npos) return "it runs on musl, whose loader cannot be asked";
    return {};
}

// ---- what happened

struct run_summary {
    std::uint64_t answered = 0, made = 0, failed = 0, forwarded = 0, forbidden = 0, verified = 0, different = 0;
    std::chrono::milliseconds saved{};
    std::chrono::microseconds answering{};
    std::chrono::microseconds making{};
};

run_summary summed(std::vector<intercept::happening> const& all) {
    using what = intercept::happening::what;
    run_summary out;
    for (auto const& h : all) {
        switch (h.kind) {
            case what::answered:
                ++out.answered;
                out.saved += h.cost;
                out.answering += h.took;
                break;
            case what::made:
                ++out.made;
                out.making += h.took;
                break;
            case what::failed: ++out.failed; break;
            case what::forwarded: ++out.forwarded; break;
            case what::forbidden: ++out.forbidden; break;
            case what::verified: ++out.verified; break;
            case what::different: ++out.different; break;
        }
    }
    return out;
}

std::string sentence(run_summary const& s) {
    auto const seconds = [](auto t) { return std::chrono::duration<double>{t}.count(); };
    auto out = fmt::format("{} compiles answered in {:.3f} s, {} made", s.answered, seconds(s.answering), s.made);
    if (s.made > 0) out += fmt::format(" in {:.1f} s", seconds(s.making));
    out += fmt::format(", {:.1f} s not waited", seconds(s.saved));
    if (s.failed > 0) out += fmt::format("; {} did not compile", s.failed);
    if (s.forwarded > 0) out += fmt::format("; {} left to the library itself", s.forwarded);
    if (s.forbidden > 0) out += fmt::format("; {} forbidden", s.forbidden);
    if (s.verified + s.different > 0)
        out += fmt::format("; {} made again and the same, {} different", s.verified, s.different);
    return out;
}

json as_json(intercept::happening const& h) {
    json out{{"what", name_of(h.kind)}, {"process", h.process}, {"by", h.by},           {"library", h.library},
             {"program", h.program},    {"target", h.target},   {"us", h.took.count()}, {"cost_ms", h.cost.count()}};
    if (h.at) {
        out["family"] = h.at->family.hex();
        out["request"] = h.at->request.hex();
        out["key"] = h.at->key.hex();
    }
    if (!h.detail.empty()) out["detail"] = h.detail;
    return out;
}

std::filesystem::path requests_of(run_arguments const& a) { return std::filesystem::absolute(a.record + ".requests"); }

json record_of(run_arguments const& a, std::vector<intercept::happening> const& all,
               std::filesystem::path const& caches) {
    json happenings = json::array();
    for (auto const& h : all) happenings.push_back(as_json(h));
    return {{"format", "kiln-run"},
            {"version", 1},
            {"program", a.program},
            {"caches", caches.native()},
            {"requests", a.record.empty() ? "" : requests_of(a).native()},
            {"happenings", std::move(happenings)}};
}

void tell(run_arguments const& a, std::vector<intercept::happening> const& all) {
    auto const sum = summed(all);
    if (a.verbose || a.jit == "warn") {
        for (auto const& h : all) {
            bool const is_told = a.verbose || h.kind == intercept::happening::what::made;
            if (is_told)
                complain(fmt::format("run: {} {} '{}' for {} ({} us) {}", h.library, name_of(h.kind), h.program,
                                     h.target, h.took.count(), h.detail));
        }
    }
    for (auto const& h : all) {
        if (h.kind == intercept::happening::what::different)
            complain(fmt::format("run: '{}' for {}: made again it differs in {}", h.program, h.target, h.detail));
        if (h.kind == intercept::happening::what::forbidden)
            complain(fmt::format("run: '{}' for {} would have been compiled: {}", h.program, h.target, h.detail));
    }
    if (!a.quiet && (!all.empty() || a.verbose)) complain("run: " + sentence(sum));
}

// As in /proc/PID/cmdline.
std::string joined(std::vector<std::string> const& words) {
    std::string out;
    for (auto const& word : words) (out += word) += '\0';
    return out;
}

struct run_outcome {
    int status = 0;  // as waitpid gives it, or ours to end with
    bool is_ours = false;
};

run_outcome run_and_tell(run_arguments const& a) {
    if (!a.record.empty()) check_text_output(a.record).value();
    run_environment surroundings{a.verbose ? run_environment::talk::much : run_environment::talk::little};
    if (!a.jit.empty()) surroundings.set("KILN_JIT", a.jit);
    if (a.verify) surroundings.set("KILN_RUN_VERIFY", "1");
    if (!a.capsule.empty()) {
        auto const place =
            unpack_for_run(a.capsule, {.key = a.key, .unsigned_too = a.unsigned_too}, surroundings.private_folder())
                .value();
        surroundings.add_read_only_cache(place / "cache");
        if (!a.no_frameworks) surroundings.use_framework_caches(place / "caches", framework_use::filled);
    }
    if (!a.record.empty() && base::make_directories(requests_of(a), 0700))
        surroundings.set("KILN_RUN_REQUESTS", requests_of(a).native());
    std::filesystem::path caches;
    if (!a.record.empty() && !a.no_frameworks) {
        caches = std::filesystem::absolute(a.record + ".caches");
        if (a.capsule.empty()) surroundings.use_framework_caches(caches, framework_use::recording);
    }
    if (auto const why = out_of_reach(a.program.front()); !why.empty() && a.verbose)
        complain(fmt::format("run: '{}' runs as without Kiln: {}", a.program.front(), why));
    run_workers workers{surroundings.private_folder()};
    if (workers.is_open()) surroundings.set("KILN_RUN_WORKERS", workers.address().native());
    run_ahead ahead{surroundings.private_folder(), intercept::program_name(joined(a.program))};
    surroundings.set("KILN_RUN_KNOWN", ahead.known().native());
    surroundings.set("KILN_RUN_HEADERS", ahead.headers().native());
    auto const status = wait_for(a.program, surroundings.variables(), workers, ahead);
    auto const all = intercept::read_run_log(surroundings.log());
    ahead.remember(all);
    if (!status) {
        complain(status.error());
        return {127, true};
    }
    if (a.json) std::fputs((record_of(a, all, caches).dump() + "\n").c_str(), stderr);
    else tell(a, all);
    if (!a.record.empty())
        write_text_output(a.record, base::as_bytes(record_of(a, all, caches).dump(1) + "\n")).value();
    if (a.verify && summed(all).different > 0 && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return {failed, true};
    return {*status, false};
}

// Everything of ours is gone before we end as the program did, perhaps by a signal.
int run_under_kiln(run_arguments const& a) {
    auto const end = run_and_tell(a);
    return end.is_ours ? end.status : end_like(end.status);
}

}  // namespace

void add_run(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<run_arguments>();
    auto* const app = add_command(root, "run");
    app->add_option("--record", arguments->record, "what was asked for, for 'kiln capsule build'");
    app->add_option("--capsule", arguments->capsule, "answers and caches to start with");
    app->add_option("--key", arguments->key, "public key the capsule must be signed by");
    app->add_flag("--unsigned", arguments->unsigned_too, "use a capsule nobody vouches for");
    app->add_option("--jit", arguments->jit, "allow, warn or forbid")
        ->check(CLI::IsMember({"allow", "warn", "forbid"}));
    app->add_flag("--no-frameworks", arguments->no_frameworks, "leave the caches of frameworks alone");
    app->add_flag("--verify", arguments->verify, "make every answer again and compare");
    app->add_flag("-v,--verbose", arguments->verbose, "one line for each compile");
    app->add_flag("-q,--quiet", arguments->quiet, "no line at the end");
    app->add_flag("--json", arguments->json, "the summary as JSON, on standard error");
    app->add_option("COMMAND", arguments->program, "program and its arguments")->required();
    app->prefix_command(false);
    app->positionals_at_end();
    commands.push_back({app, [arguments] { return run_under_kiln(*arguments); }});
}

}  // namespace kiln::cli
