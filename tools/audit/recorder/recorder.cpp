// SPDX-License-Identifier: Apache-2.0
//
// libkiln-recorder.so: the driver loads it inside cuInit (CUDA_INJECTION64_PATH), and from then on the process writes down what
// its GPU does and who asked for it. Observes only. An error in the beginning leaves a note and lets the program run; there are no signal
// handlers, nothing of CUPTI's is called while the process ends but one flush, and after a fork the child is left alone.
//
//   KILN_AUDIT_DIR     where the recording goes; without it nothing is recorded
//   KILN_AUDIT_LEVEL   0: subscribed only; 1: what rules need (default); 2: every call
//   KILN_AUDIT_CUPTI   a libcupti to use where the program has none mapped
//   KILN_AUDIT_KEY     of the hashes of contents, a number new in every run
#include "activity.hpp"
#include "audit/call_class.hpp"
#include "call_sites.hpp"
#include "python_frames.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace kiln::recorder {

namespace {

using audit::call_class;

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr unsigned launches_watched_at_first = 2000;
constexpr std::uint64_t least_hashed = 1024;
constexpr std::size_t most_calls = 2048;
constexpr std::size_t most_threads = 64;

enum class watch : int { off, on };

std::uint64_t clock_ns(::clockid_t which) {
    ::timespec t{};
    ::clock_gettime(which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}
std::uint64_t CUPTIAPI now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// All of it lives as long as the process: nothing here is destroyed while other threads may still call.
struct recorder {
    cupti_calls cupti;
    recording_file file;
    site_ring ring;
    activity_counts counts;
    CUpti_SubscriberHandle subscriber = nullptr;
    std::array<std::array<call_class, most_calls>, 2> classes{};  // runtime, driver
    std::array<std::array<bool, most_calls>, 2> is_async{};
    std::vector<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> launch_calls;
    std::atomic<unsigned> launches{0};
    std::array<std::atomic<std::uint32_t>, most_threads> threads{};
    std::uint64_t dropped = 0;
    std::uint64_t key = 0;
    unsigned level = 1;
    ::pid_t owner = 0;
};
std::atomic<bool> on{false};
recorder* self = nullptr;

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
    if (on && buffer != nullptr && valid > 0) {
        auto const lock = self->file.lock();
        CUpti_Activity* record = nullptr;
        while (self->cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS)
            add_activity(self->file, self->cupti, record, self->counts);
        std::size_t dropped = 0;
        if (self->cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS) self->dropped += dropped;
        empty_ring();
        self->file.flush();
    }
    if (buffer != nullptr) keep_spare(buffer);
}

// ---- calls

struct transfer {
    void const* host = nullptr;
    std::uint64_t bytes = 0;
    enum class way { other, to_device, to_host } direction = way::other;
};

// Of the copies that frameworks make; others are seen without their pointers.
transfer runtime_transfer(CUpti_CallbackId id, void const* parameters) {
    switch (id) {
        case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020:
        case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020:
        case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000:
        case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000: {
            auto const& p = *static_cast<cudaMemcpy_v3020_params const*>(parameters);  // all four begin alike
            if (p.kind == cudaMemcpyHostToDevice) return {p.src, p.count, transfer::way::to_device};
            if (p.kind == cudaMemcpyDeviceToHost) return {p.dst, p.count, transfer::way::to_host};
            return {nullptr, p.count, transfer::way::other};
        }
        default: return {};
    }
}
transfer driver_transfer(CUpti_CallbackId id, void const* parameters) {
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2:
        case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2: {
            auto const& p = *static_cast<cuMemcpyHtoD_v2_params const*>(parameters);
            return {p.srcHost, p.ByteCount, transfer::way::to_device};
        }
        case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2:
        case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2: {
            auto const& p = *static_cast<cuMemcpyDtoH_v2_params const*>(parameters);
            return {p.dstHost, p.ByteCount, transfer::way::to_host};
        }
        case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
            return {nullptr, static_cast<cuMemAlloc_v2_params const*>(parameters)->bytesize, transfer::way::other};
        default: return {};
    }
}

// 1 cubin, 2 PTX, 3 fat binary; 0: something else.
std::uint64_t image_kind(void const* image) {
    std::uint32_t begin = 0;
    ::iovec here{&begin, sizeof begin}, there{const_cast<void*>(image), sizeof begin};
    if (image == nullptr || ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != sizeof begin) return 0;
    switch (begin) {
        case 0x464c'457fu: return 1;
        case 0xba55'ed50u:
        case 0x4662'43b1u: return 3;
        default: break;
    }
    auto const first = static_cast<char>(begin & 0xffu);
    return first == '/' || first == '.' || first == '\n' || first == ' ' ? 2 : 0;
}
std::uint64_t loaded_image(CUpti_CallbackDomain domain, CUpti_CallbackId id, void const* parameters) {
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return 0;
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
        case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
        case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary:
        case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData:  // all four begin with where it goes and what it is
            return image_kind(static_cast<cuModuleLoadData_params const*>(parameters)->image);
        default: return 0;
    }
}

struct thread_facts {
    std::uint32_t id = 0;
    int depth = 0;  // calls of ours around this one
    std::uint32_t last_launch = 0;
    // What came to the host is looked at when somebody has waited for it.
    std::uint32_t read_correlation = 0;
    void const* read_to = nullptr;
    std::uint64_t read_bytes = 0;
};
thread_local thread_facts mine;

void remember_thread() {
    mine.id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    for (auto& t : self->threads) {
        std::uint32_t none = 0;
        if (t.compare_exchange_strong(none, mine.id)) return;
    }
}

void watch_launches(watch how) {
    for (auto const& [domain, id] : self->launch_calls)
        self->cupti.enable_callback(how == watch::on ? 1 : 0, self->subscriber, domain, id);
}

void enter(CUpti_CallbackDomain domain, CUpti_CallbackId id, call_class what, CUpti_CallbackData const& call) {
    site_sample s;
    s.correlation = call.correlationId;
    s.thread = mine.id;
    s.time = now_ns();
    s.stack = this_stack(self->file);
    if (what == call_class::copy || what == call_class::allocate) {
        auto const moved = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_transfer(id, call.functionParams)
                                                                 : driver_transfer(id, call.functionParams);
        s.pointer = reinterpret_cast<std::uintptr_t>(moved.host);
        s.bytes = moved.bytes;
        if (moved.host != nullptr && moved.bytes >= least_hashed && moved.direction == transfer::way::to_device)
            s.hash = content_hash(moved.host, moved.bytes, self->key);
        if (moved.direction == transfer::way::to_host && moved.bytes >= least_hashed) {
            mine.read_correlation = call.correlationId;
            mine.read_to = moved.host;
            mine.read_bytes = moved.bytes;
        }
    }
    if (what == call_class::load) s.bytes = loaded_image(domain, id, call.functionParams);
    if (what == call_class::wait) s.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    self->ring.put(s);
}

void leave(call_class what, bool waits) {
    if (waits && mine.read_to != nullptr) {
        site_sample s;
        s.correlation = mine.read_correlation;
        s.thread = mine.id;
        s.time = now_ns();
        s.pointer = reinterpret_cast<std::uintptr_t>(mine.read_to);
        s.bytes = mine.read_bytes;
        s.hash = content_hash(mine.read_to, mine.read_bytes, self->key);
        mine.read_to = nullptr;
        self->ring.put(s);
    }
    if (what != call_class::wait) return;
    site_sample s;
    s.thread = mine.id;
    s.time = now_ns();
    s.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    self->ring.put(s);
}

void on_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, CUpti_CallbackData const& call) {
    if (id >= most_calls) return;
    auto const which = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 0u : 1u;
    auto const what = self->classes[which][id];
    if (mine.id == 0) remember_thread();
    if (what == call_class::launch) {  // watched now and then, so that one end of a call may be missing
        if (call.callbackSite != CUPTI_API_ENTER || mine.depth > 0 || mine.last_launch == call.correlationId) return;
        mine.last_launch = call.correlationId;
        enter(domain, id, what, call);
        if (self->launches.fetch_add(1, std::memory_order_relaxed) == launches_watched_at_first)
            watch_launches(watch::off);
        return;
    }
    if (call.callbackSite == CUPTI_API_ENTER) {
        if (mine.depth++ == 0) enter(domain, id, what, call);
        return;
    }
    if (mine.depth > 0) --mine.depth;
    if (mine.depth == 0)
        leave(what, what == call_class::wait || (what == call_class::copy && !self->is_async[which][id]));
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, void const* data) {
    if (!on) return;
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

// ---- the service thread

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

// What a killed process leaves is at most a second old. A callback costs every launch, so launches are looked at for 20 ms of
// each second once there were many.
void* serve(void*) {
    ::timespec const tick{0, 100'000'000}, look{0, 20'000'000};
    for (unsigned n = 1;; ++n) {
        ::nanosleep(&tick, nullptr);
        if (!on) return nullptr;
        {
            auto const lock = self->file.lock();
            empty_ring();
            add_cpu_times();
        }
        if (n % 10 != 0) continue;
        self->cupti.flush_all(0);
        {
            auto const lock = self->file.lock();
            self->file.flush();
        }
        if (self->level == 0 || self->launches < launches_watched_at_first) continue;
        watch_launches(watch::on);
        ::nanosleep(&look, nullptr);
        watch_launches(watch::off);
    }
}

void finish() {
    if (!on || ::getpid() != self->owner) return;
    self->cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    on = false;
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
            if (what == call_class::launch) self->launch_calls.emplace_back(domain, id);
            bool const is_watched =
                what != call_class::stream && what != call_class::event && what != call_class::context;
            if (is_watched) self->cupti.enable_callback(1, self->subscriber, domain, id);
        }
    }
}

bool begin(char const* directory) {
    auto const begun = now_ns();
    self = new recorder;
    self->owner = ::getpid();
    if (auto const* const level = std::getenv("KILN_AUDIT_LEVEL"))
        self->level = static_cast<unsigned>(std::atoi(level));
    if (auto const* const key = std::getenv("KILN_AUDIT_KEY")) self->key = std::strtoull(key, nullptr, 10);
    if (!self->file.open(directory, "p", static_cast<unsigned>(self->owner))) return false;
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
void add_event(std::uint64_t id, char const* text) {
    if (!on || text == nullptr) return;
    format::dispatch_record r;
    r.id = id;
    r.time = now_ns();
    r.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    auto const lock = self->file.lock();
    r.text = self->file.intern(text);
    self->file.add(r, r.time);
}

}  // namespace

}  // namespace kiln::recorder

extern "C" {

// Called by the driver, once. What it gives back must be 1, whatever happened: the program goes on.
__attribute__((visibility("default"))) int InitializeInjection(void) {
    using namespace kiln::recorder;
    auto const* const directory = std::getenv("KILN_AUDIT_DIR");
    if (directory == nullptr || *directory == '\0' || ::getauxval(AT_SECURE) != 0 || self != nullptr) return 1;
    if (!begin(directory)) return 1;
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
