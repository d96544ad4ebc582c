// SPDX-License-Identifier: Apache-2.0
//
// libkiln-recorder.so: the driver loads it inside cuInit (CUDA_INJECTION64_PATH), and from then on the process writes down what
// its GPU does and who asked for it. Observes only. An error in the beginning leaves a note and lets the program run; there are no signal
// handlers, nothing of CUPTI's is called while the process ends but one flush, and after a fork the child is left alone.
//
//   KILN_AUDIT_DIR     where the recording goes; without it nothing is recorded
//   KILN_AUDIT_LEVEL   0: subscribed only; 1: what rules need (default); 2: every call
//   KILN_AUDIT_CUPTI   a libcupti to use where the program has none mapped
//   KILN_AUDIT_STACKS  none: programs without Python are recorded without their stacks
//   KILN_AUDIT_KEY     of the hashes of contents, a number new in every run
#include "python_frames.hpp"
#include "watched_calls.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace kiln::recorder {

std::atomic<bool> on{false};
recorder* self = nullptr;

void give_up() noexcept {
    on = false;
    self->file.mark_full();
}

namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;

// ---- buffers

// The launching thread writes into them: pages that were touched before cost it no fault.
std::array<std::atomic<void*>, 4> spare_buffers{};

void* take_spare() {
    for (auto& s : spare_buffers)
        if (auto* const memory = s.exchange(nullptr)) return memory;
    auto* const fresh = ::mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return fresh == MAP_FAILED ? nullptr : fresh;
}
void keep_spare(void* memory) {
    for (auto& s : spare_buffers) {
        void* none = nullptr;
        if (s.compare_exchange_strong(none, memory)) return;
    }
    ::munmap(memory, buffer_bytes);
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
    auto* const memory = take_spare();
    *buffer = static_cast<std::uint8_t*>(memory);
    *bytes = memory == nullptr ? 0 : buffer_bytes;
    *most_records = 0;
}

// By who holds the file's lock.
void empty_ring() {
    site_sample s;
    while (self->ring.take(s)) {
        if (s.correlation == 0) {
            format::cpu_record r;
            r.thread = s.thread;
            r.time = s.time;
            r.used = s.cpu;
            self->file.add(r, r.time);
            continue;
        }
        format::site_record r;
        r.correlation = s.correlation;
        r.thread = s.thread;
        r.stack = s.stack;
        r.time = s.time;
        r.pointer = s.pointer;
        r.bytes = s.bytes;
        r.hash = s.hash;
        r.cpu = s.cpu;
        self->file.add(r, r.time);
    }
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
    if (on && buffer != nullptr && valid > 0)
        or_give_up([&] {
            auto const lock = self->file.lock();
            CUpti_Activity* record = nullptr;
            while (self->cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS)
                add_activity(self->file, self->cupti, record, self->counts);
            std::size_t dropped = 0;
            if (self->cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS) self->dropped += dropped;
            empty_ring();
            self->file.flush();
        });
    if (buffer != nullptr) keep_spare(buffer);
}

void add_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id, void const* data) {
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API)
        return on_call(domain, id, *static_cast<CUpti_CallbackData const*>(data));
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_MODULE_LOADED) return;
    auto const* const about = static_cast<CUpti_ResourceData const*>(data)->resourceDescriptor;
    format::module_record r;
    r.time = now_ns();
    r.bytes = static_cast<CUpti_ModuleResourceData const*>(about)->cubinSize;
    auto const lock = self->file.lock();
    self->file.add(r, r.time);
}
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, void const* data) {
    if (on) or_give_up([&] { add_callback(domain, id, data); });
}

// ---- the service thread

std::vector<::pid_t> threads_now() {
    std::vector<::pid_t> out;
    auto* const tasks = ::opendir("/proc/self/task");
    for (::dirent const* t = nullptr; tasks != nullptr && (t = ::readdir(tasks)) != nullptr;)
        if (auto const id = static_cast<::pid_t>(std::atoi(t->d_name)); id > 0) out.push_back(id);
    if (tasks != nullptr) ::closedir(tasks);
    return out;
}

// Whether the first thread has ended by pthread_exit(), and after it all of the program's: without us the process would have ended.
bool is_left_alone() {
    char text[64], path[64];
    // A thread that has ended has no memory to read: asked so, nothing is opened ten times a second in the program's table of descriptors.
    ::iovec here{text, 1}, there{path, 1};
    path[0] = '\0';
    if (::process_vm_readv(self->owner, &here, 1, &there, 1, 0) == 1) return false;
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(self->owner));
    int const fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    auto const n = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    text[n > 0 ? n : 0] = '\0';
    auto const* const name_ends = std::strrchr(text, ')');
    if (name_ends == nullptr || std::strncmp(name_ends, ") Z", 3) != 0) return false;
    auto const mine = static_cast<::pid_t>(::syscall(SYS_gettid));
    auto const others = threads_now();
    return !others.empty() && std::ranges::all_of(others, [&](::pid_t t) {
        return t == self->owner || t == mine || std::ranges::find(self->helpers, t) != self->helpers.end();
    });
}
[[noreturn]] void end_process() {
    ::sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
    std::exit(0);  // as the last thread of a process does
}

void add_cpu_times() {
    auto const time = now_ns();
    auto const add = [&](std::uint32_t thread, std::uint64_t used) {
        format::cpu_record r;
        r.thread = thread;
        r.time = time;
        r.used = used;
        self->file.add(r, time);
    };
    add(0, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    for (auto const& t : self->threads) {
        auto const id = t.load(std::memory_order_relaxed);
        if (id == 0) break;
        ::timespec used{};
        auto const its_clock = static_cast<::clockid_t>((~id << 3) | 6u);  // as pthread_getcpuclockid makes it
        if (::clock_gettime(its_clock, &used) == 0)
            add(id,
                static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(used.tv_nsec));
    }
}

// What a killed process leaves is at most a second old. A callback costs every launch, so launches and what comes with them are looked at
// for 20 ms of each second once there were many.
void serve_once(unsigned n) {
    ::timespec const look{0, 20'000'000};
    {
        auto const lock = self->file.lock();
        empty_ring();
        add_cpu_times();
    }
    if (n % 10 != 0) return;
    self->cupti.flush_all(0);
    {
        auto const lock = self->file.lock();
        self->file.flush();
    }
    if (self->level == 0 || self->launches < launches_watched_at_first) return;
    watch_launches(watch::on);
    ::nanosleep(&look, nullptr);
    watch_launches(watch::off);
}
void* serve(void*) {
    ::timespec const tick{0, 100'000'000};
    (void)this_thread();  // while there is memory
    for (unsigned n = 1;; ++n) {
        ::nanosleep(&tick, nullptr);
        if (!on || self->file.is_locked_in()) return nullptr;
        bool is_over = false;
        or_give_up([&] {
            serve_once(n);
            is_over = is_left_alone();
        });
        if (is_over) end_process();
    }
}

void add_end() {
    auto const lock = self->file.lock();
    empty_ring();
    add_cpu_times();
    format::end_record r;
    r.time = now_ns();
    r.dropped = self->dropped;
    r.timeless = self->counts.timeless;
    r.sites_lost = self->ring.lost();
    r.discarded = self->file.discarded();
    self->file.add(r, r.time);
    if (*python_frames::why_off() != '\0') {
        format::note_record n;
        n.what = static_cast<std::uint32_t>(format::note_kind::no_stacks);
        n.text = self->file.intern(python_frames::why_off());
        n.time = r.time;
        self->file.add(n, n.time);
    }
    self->file.flush();
}
void finish() {
    if (!on || ::getpid() != self->owner) return;
    if (self->file.is_locked_in()) return;  // nor may a flush of CUPTI's open anything
    self->cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (!on.exchange(false)) return;
    or_give_up(add_end);
}
void in_child() { on = false; }

// ---- the beginning

std::uint64_t process_start() {
    char text[1024] = {};
    int const fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    auto const n = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    auto const* at = n > 0 ? std::strrchr(text, ')') : nullptr;
    if (at == nullptr) return 0;
    for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return 0;
    auto const ticks = std::strtoull(at + 1, nullptr, 10);
    auto const per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    auto const since_boot = ticks * (1'000'000'000u / per_second);
    return clock_ns(CLOCK_MONOTONIC) - (clock_ns(CLOCK_BOOTTIME) - since_boot);
}

std::string command_line() {
    char text[4096] = {};
    int const fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "?";
    auto const n = ::read(fd, text, sizeof text);
    ::close(fd);
    for (long i = 0; i < n; ++i)
        if (text[i] == '\0') text[i] = ' ';
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "?";
}

void add_note(format::note_kind what, std::string const& text) {
    format::note_record r;
    r.what = static_cast<std::uint32_t>(what);
    r.text = self->file.intern(text);
    r.time = now_ns();
    self->file.add(r, r.time);
}

CUptiResult subscribe(std::string& other) {
    if (self->cupti.subscribe_v2 == nullptr) return self->cupti.subscribe(&self->subscriber, on_callback, nullptr);
    char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1] = {};
    CUpti_SubscriberParams p{};
    p.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    p.subscriberName = "kiln audit";
    p.oldSubscriberName = name;
    p.oldSubscriberSize = sizeof name - 1;
    auto const status = self->cupti.subscribe_v2(&self->subscriber, on_callback, nullptr, &p);
    other = name;
    return status;
}

void enable_kinds() {
    for (auto const kind :
         {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM,
          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
          CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD,
          CUPTI_ACTIVITY_KIND_JIT, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}) {
        if (auto const status = self->cupti.enable(kind); status != CUPTI_SUCCESS)
            add_note(format::note_kind::kind_refused, std::to_string(kind) + ": " + self->cupti.say(status));
    }
    if (self->cupti.all_waits != nullptr) self->cupti.all_waits(0);
    bool const one_by_one = self->cupti.enable_driver_call != nullptr && self->cupti.enable_runtime_call != nullptr;
    if (self->level < 2 && one_by_one) return;
    self->cupti.enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    self->cupti.enable(CUPTI_ACTIVITY_KIND_DRIVER);
}

// Calls are chosen by their names: ids differ between versions.
void enable_calls() {
    for (CUpti_CallbackId id = 1; id < most_calls; ++id) {
        for (auto const domain : {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
            char const* name = nullptr;
            if (self->cupti.callback_name(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
            auto const what = audit::class_of(name);
            if (what == call_class::other) continue;
            auto const which = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 0u : 1u;
            self->classes[which][id] = what;
            self->is_async[which][id] = std::strstr(name, "Async") != nullptr;
            auto* const enable = which == 0 ? self->cupti.enable_runtime_call : self->cupti.enable_driver_call;
            if (self->level == 1 && enable != nullptr) enable(id, 1);
            self->comes_with_launches[which][id] = audit::comes_with_launches(name);
            if (self->comes_with_launches[which][id]) self->launch_calls.emplace_back(domain, id);
            bool const is_watched =
                what != call_class::stream && what != call_class::event && what != call_class::context;
            if (is_watched) self->cupti.enable_callback(1, self->subscriber, domain, id);
        }
    }
}

// Threads of ours and of CUPTI's begin with the mask of who makes them. They take none of the program's signals: one that all its own
// threads have blocked, to wait for it, would be delivered to ours, and end the program.
class without_signals {
public:
    without_signals() {
        ::sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~without_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    without_signals(without_signals const&) = delete;
    without_signals& operator=(without_signals const&) = delete;

private:
    ::sigset_t before_{};
};

// cuInit is no point where a thread may be cancelled.
class without_cancellation {
public:
    without_cancellation() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~without_cancellation() { ::pthread_setcancelstate(before_, nullptr); }
    without_cancellation(without_cancellation const&) = delete;
    without_cancellation& operator=(without_cancellation const&) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

// Where there is no memory to begin with, that something is missing.
void leave_mark(char const* directory) {
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/p%d.0.kilnrec.full", directory, static_cast<int>(::getpid()));
    int const fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) ::close(fd);
}

bool begin(char const* directory) {
    auto const begun = now_ns();
    auto* const fresh = new (std::nothrow) recorder;
    if (fresh == nullptr || !fresh->ring.has_room()) return leave_mark(directory), false;
    self = fresh;
    self->owner = ::getpid();
    if (auto const* const level = std::getenv("KILN_AUDIT_LEVEL"))
        self->level = static_cast<unsigned>(std::atoi(level));
    if (auto const* const key = std::getenv("KILN_AUDIT_KEY")) self->key = std::strtoull(key, nullptr, 10);
    if (!self->file.make(directory, "p", static_cast<unsigned>(self->owner))) return false;
    std::string where, other;
    bool const found = self->cupti.load(where);
    auto const status = found ? subscribe(other) : CUPTI_SUCCESS;
    format::process_record r;
    r.pid = static_cast<std::uint32_t>(self->owner);
    r.parent = static_cast<std::uint32_t>(::getppid());
    r.started = process_start();
    r.begun = begun;
    r.level = self->level;
    if (found) self->cupti.get_version(&r.cupti);
    auto const lock = self->file.lock();
    r.program = self->file.intern(command_line());
    r.library = self->file.intern(where);
    bool const works = found && status == CUPTI_SUCCESS;
    if (!found) add_note(format::note_kind::not_recording, where);
    else if (!works)
        add_note(other.empty() ? format::note_kind::not_recording : format::note_kind::other_profiler,
                 other.empty() ? self->cupti.say(status) : other);
    if (works && self->level > 0) {
        self->cupti.register_clock(now_ns);
        if (self->cupti.thread_ids != nullptr) self->cupti.thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
        self->cupti.register_callbacks(give_buffer, take_buffer);
        enable_kinds();
        enable_calls();
    }
    if (works)
        self->cupti.enable_callback(1, self->subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    r.set_up = now_ns() - begun;
    self->file.add(r, begun);
    self->file.flush();
    return works;
}

// ---- what libkiln calls

void push_id(std::uint64_t id) {
    if (on && self->cupti.push_external != nullptr)
        self->cupti.push_external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}
void pop_id() {
    std::uint64_t id = 0;
    if (on && self->cupti.pop_external != nullptr)
        self->cupti.pop_external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}
void add_dispatch(std::uint64_t id, char const* text) {
    format::dispatch_record r;
    r.id = id;
    r.time = now_ns();
    r.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    auto const lock = self->file.lock();
    r.text = self->file.intern(text);
    self->file.add(r, r.time);
}
void add_event(std::uint64_t id, char const* text) {
    if (!on || text == nullptr) return;
    or_give_up([&] { add_dispatch(id, text); });
}

}  // namespace

}  // namespace kiln::recorder

extern "C" {

// Called by the driver, once. What it gives back must be 1, whatever happened: the program goes on.
__attribute__((visibility("default"))) int InitializeInjection(void) {
    using namespace kiln::recorder;
    auto const* const directory = std::getenv("KILN_AUDIT_DIR");
    if (directory == nullptr || *directory == '\0' || ::getauxval(AT_SECURE) != 0 || self != nullptr) return 1;
    without_signals const threads_begun_here;
    without_cancellation const here;
    if (this_thread() == nullptr) return leave_mark(directory), 1;
    try {
        auto const before = threads_now();
        if (!begin(directory)) return 1;
        for (auto const t : threads_now())
            if (std::ranges::find(before, t) == before.end()) self->helpers.push_back(t);
    } catch (std::exception const&) {
        leave_mark(directory);
        return 1;
    }
    ::pthread_atfork(nullptr, nullptr, in_child);
    std::atexit(finish);
    on = true;
    ::pthread_t thread{};
    if (::pthread_create(&thread, nullptr, serve, nullptr) == 0) ::pthread_detach(thread);
    return 1;
}

struct kiln_recorder_table {
    std::uint32_t version;
    void (*push)(std::uint64_t id);
    void (*pop)();
    void (*event)(std::uint64_t id, char const* text);
};

__attribute__((visibility("default"))) kiln_recorder_table const* kiln_recorder_v1(void) {
    using namespace kiln::recorder;
    static kiln_recorder_table const table{1, push_id, pop_id, add_event};
    return on ? &table : nullptr;
}
}
