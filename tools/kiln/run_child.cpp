// SPDX-License-Identifier: Apache-2.0
#include "run_child.hpp"

#include "run_stop.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

// What handlers know.
std::atomic<pid_t> child_of_run{0};
std::atomic<int> end_of_run{-1};  // an eventfd
std::atomic<bool> collects_orphans{false};

bool is_of_job_control(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

// What a terminal sends goes to the program anyway, which is in our group. Whether it stops is up to the program.
void pass_on(int signal, ::siginfo_t* about, void*) {
    bool const is_of_terminal =
        (signal == SIGINT || signal == SIGQUIT || is_of_job_control(signal)) && about->si_code == SI_KERNEL;
    int const before = errno;
    auto const pid = child_of_run.load();
    if (pid > 0 && about->si_code == SI_QUEUE) ::sigqueue(pid, signal, about->si_value);
    else if (pid > 0 && !is_of_terminal) ::kill(pid, signal);
    else if (pid <= 0 && is_of_job_control(signal)) stop_by(signal);
    errno = before;
}

// Whether the orphans of others come to us: we are the first process of a container, or took them upon ourselves (who does so and then becomes
// us keeps them).
bool is_given_orphans() {
    int is_subreaper = 0;
    return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0 && is_subreaper != 0);
}

// Whom a shell or an init in our place would collect: a number that is not given back is a process that is still there, to who waits until it is
// gone and to a limit of processes. The program is left alone, and stands before others only once it has ended. Of our own children, workers,
// nobody asks more than whether they are still there.
void collect_orphans(pid_t program) {
    ::siginfo_t about{};
    while (::waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0 &&
           about.si_pid != program) {
        ::waitid(P_PID, static_cast<::id_t>(about.si_pid), nullptr, WEXITED | WNOHANG);
        about = {};
    }
}

// Of any child: workers end, too. A pidfd would say the same, but not on kernels before 5.3 and not in every sandbox.
void note_change(int, ::siginfo_t*, void*) {
    int const before = errno;
    ::siginfo_t about{};
    auto const pid = child_of_run.load();
    if (pid > 0 && collects_orphans.load()) collect_orphans(pid);
    if (pid > 0 && ::waitid(P_PID, static_cast<::id_t>(pid), &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        about.si_pid == pid)
        (void)!::eventfd_write(end_of_run.load(), 1);
    about = {};
    if (pid > 0 && ::waitid(P_PID, static_cast<::id_t>(pid), &about, WSTOPPED | WNOHANG) == 0 && about.si_pid == pid)
        stop_with(pid, about.si_status);
    errno = before;
}

// None of these ends us before the program. Who ignores SIGCHLD, and leaves that to us, would never learn how the program ended. SIGXFSZ may be of a
// file of ours, and is nothing to pass on.
std::vector<int> const& handled() {
    static auto const all = [] {
        std::vector<int> out{SIGINT,  SIGQUIT,   SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGXCPU,
                             SIGCHLD, SIGVTALRM, SIGPROF, SIGIO,  SIGPWR,  SIGURG,  SIGTSTP, SIGTTIN, SIGTTOU};
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) out.push_back(signal);
        return out;
    }();
    return all;
}

// Of the signals we handle, and of those alone: how they were before. The program gets them so.
class signal_state {
public:
    // From here on none is lost: they wait until release().
    signal_state() : before_(handled().size()) {
        ::sigset_t all;
        ::sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, &mask_);
        struct ::sigaction action {};
        action.sa_flags = SA_RESTART | SA_SIGINFO;
        ::sigfillset(&action.sa_mask);
        auto before = before_.begin();
        for (int const signal : handled()) {
            action.sa_sigaction = signal == SIGCHLD ? note_change : pass_on;
            ::sigaction(signal, &action, &*before++);
        }
    }
    // Who starts us may have blocked the signal that tells us of the program's end.
    void release() const {
        auto mask = mask_;
        ::sigdelset(&mask, SIGCHLD);
        ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    }
    void restore() const {
        auto before = before_.begin();
        for (int const signal : handled()) ::sigaction(signal, &*before++, nullptr);
        ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }

private:
    std::vector<struct ::sigaction> before_;
    ::sigset_t mask_{};
};

std::vector<char*> pointers(std::vector<std::string> const& texts) {
    std::vector<char*> out;
    for (auto const& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

struct child {
    pid_t pid = -1;
    int why_not = 0;  // errno of what kept it from starting
};

// The child has our memory until it has become the program, so nothing but system calls is made there; in return nothing of it
// has to be copied, and we know at once what became of it.
[[gnu::noinline]] child start(char* const* arguments, char* const* environment, signal_state const& before) {
    int volatile failure = 0;
    auto const pid = ::vfork();
    if (pid == 0) {
        before.restore();
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::execvpe(arguments[0], arguments, environment);
        failure = errno;
        ::_exit(127);
    }
    return {pid, pid < 0 ? errno : failure};
}

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

template <class Entry>
std::vector<Entry> entries_at(int fd, std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    std::vector<Entry> out(bytes > most ? 0 : bytes / sizeof(Entry));
    auto const size = out.size() * sizeof(Entry);
    bool const is_whole = ::pread(fd, out.data(), size, static_cast<::off_t>(offset)) == static_cast<::ssize_t>(size);
    return is_whole ? out : std::vector<Entry>{};
}

// The libraries that a program is linked with, as it names them; none where that cannot be read.
std::vector<std::string> needs_of(std::filesystem::path const& file) {
    auto const fd = base::open_file(file, O_RDONLY | O_NONBLOCK);
    if (!fd) return {};
    auto const head = entries_at<::Elf64_Ehdr>(fd->get(), 0, sizeof(::Elf64_Ehdr));
    if (head.empty()) return {};
    auto const parts = entries_at<::Elf64_Phdr>(fd->get(), head[0].e_phoff, head[0].e_phnum * sizeof(::Elf64_Phdr));
    auto const offset_of = [&](std::uint64_t address) {
        auto const at = std::ranges::find_if(parts, [&](auto const& p) {
            return p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz;
        });
        return at == parts.end() ? std::uint64_t{0} : at->p_offset + (address - at->p_vaddr);
    };
    std::uint64_t names = 0, size = 0;
    std::vector<std::uint64_t> needed;
    for (auto const& part : parts) {
        if (part.p_type != PT_DYNAMIC) continue;
        for (auto const& entry : entries_at<::Elf64_Dyn>(fd->get(), part.p_offset, part.p_filesz)) {
            if (entry.d_tag == DT_STRTAB) names = offset_of(entry.d_un.d_ptr);
            if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
            if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
        }
    }
    auto text = entries_at<char>(fd->get(), names, size);
    text.push_back('\0');
    std::vector<std::string> out;
    for (auto const at : needed) {
        if (at < text.size()) out.emplace_back(text.data() + at);
    }
    return out;
}

}  // namespace

result<int> run_alone(std::vector<std::string> const& program, std::vector<std::string> const& environment,
                      beside_program const& beside) {
    auto const arguments = pointers(program);
    auto const variables = pointers(environment);
    base::file_descriptor const end{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    end_of_run.store(end.get());
    collects_orphans.store(is_given_orphans());
    signal_state const before;
    auto const started = start(arguments.data(), variables.data(), before);
    child_of_run.store(started.pid);
    if (collects_orphans.load()) ::raise(SIGCHLD);  // for who ended before there was a handler
    before.release();
    if (started.pid > 0 && started.why_not == 0) beside.meanwhile(end.get());
    int status = 0;
    while (started.pid > 0 && ::waitpid(started.pid, &status, 0) < 0) {
        if (errno != EINTR) return io_error("waitpid", errno);
    }
    child_of_run.store(0);
    if (started.pid > 0 && started.why_not == 0) beside.afterwards(status);
    before.restore();
    if (started.pid < 0) return io_error("fork", started.why_not);
    if (started.why_not != 0)
        return error{errc::not_found, fmt::format("{}: {}", program.front(), std::strerror(started.why_not))}
            .with_status(started.why_not);
    return status;
}

result<int> run_to_its_end(std::vector<std::string> const& program, std::vector<std::string> const& environment,
                           run_workers& workers, run_ahead& ahead) {
    auto const serve = [&](int end) {
        ahead.start();
        workers.serve_until_end(end, environment);
    };
    return run_alone(program, environment, {.meanwhile = serve});
}

int end_like(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    int const signal = WTERMSIG(status);
    ::rlimit const no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::fflush(nullptr);
    ::signal(signal, SIG_DFL);
    ::sigset_t just_this;
    ::sigemptyset(&just_this);
    ::sigaddset(&just_this, signal);
    ::sigprocmask(SIG_UNBLOCK, &just_this, nullptr);
    ::raise(signal);
    return 128 + signal;
}

out_of_reach why_out_of_reach(std::string const& program) {
    auto const file = found_in_path(program);
    struct ::stat about {};
    bool const is_there = ::stat(file.c_str(), &about) == 0;
    bool const is_raised_by_mode = is_there && (((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
                                                ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid()));
    if (is_raised_by_mode || ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0)
        return {"it runs with raised privileges, where the loader takes nothing from the environment"};
    auto const loader = interpreter_of(file);
    if (!loader) return {};
    if (loader->empty()) return {"it is linked statically, so there is no loader to ask"};
    if (loader->find("musl") != loader->npos) return {"it runs on musl, whose loader cannot be asked"};
    for (auto const& needed : needs_of(file)) {
        if (needed.starts_with("libtsan.") || needed.starts_with("liblsan."))
            return {fmt::format("{} keeps more for each thread than the loader has room for beside us", needed), true};
    }
    return {};
}

std::string with_room_for_threads(std::string tunables) {
    constexpr std::string_view name = "glibc.rtld.optional_static_tls";
    if (fmt::format(":{}", tunables).find(fmt::format(":{}=", name)) != tunables.npos) return tunables;
    // Taken from every thread's stack, of which the smallest have 16 KiB.
    return fmt::format("{}{}{}=4096", tunables, tunables.empty() ? "" : ":", name);
}

}  // namespace kiln::cli
