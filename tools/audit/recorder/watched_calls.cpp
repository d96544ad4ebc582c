// SPDX-License-Identifier: Apache-2.0
#include "watched_calls.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace kiln::recorder {

namespace {

constexpr std::uint64_t least_hashed = 1024;

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

void remember_thread(call_facts& mine) {
    mine.id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    for (auto& t : self->threads) {
        std::uint32_t none = 0;
        if (t.compare_exchange_strong(none, mine.id)) return;
    }
}

void enter(CUpti_CallbackDomain domain, CUpti_CallbackId id, call_class what, CUpti_CallbackData const& call,
           thread_facts& here) {
    auto& mine = here.calls;
    site_sample s;
    s.correlation = call.correlationId;
    s.thread = mine.id;
    s.time = now_ns();
    s.stack = this_stack(self->file, here);
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

void leave(call_class what, bool waits, call_facts& mine) {
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

}  // namespace

void watch_launches(watch how) {
    for (auto const& [domain, id] : self->launch_calls)
        self->cupti.enable_callback(how == watch::on ? 1 : 0, self->subscriber, domain, id);
}

void on_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, CUpti_CallbackData const& call) {
    auto* const here = this_thread();
    if (id >= most_calls || here == nullptr) return;
    auto& mine = here->calls;
    auto const which = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 0u : 1u;
    auto const what = self->classes[which][id];
    if (mine.id == 0) remember_thread(mine);
    if (self->comes_with_launches[which][id]) {  // watched now and then, so that one end of a call may be missing
        if (call.callbackSite != CUPTI_API_ENTER || mine.depth > 0 || mine.last_launch == call.correlationId) return;
        mine.last_launch = call.correlationId;
        enter(domain, id, what, call, *here);
        if (self->launches.fetch_add(1, std::memory_order_relaxed) == launches_watched_at_first)
            watch_launches(watch::off);
        return;
    }
    if (call.callbackSite == CUPTI_API_ENTER) {
        if (mine.depth++ == 0) enter(domain, id, what, call, *here);
        return;
    }
    if (mine.depth > 0) --mine.depth;
    if (mine.depth == 0)
        leave(what, what == call_class::wait || (what == call_class::copy && !self->is_async[which][id]), mine);
}

}  // namespace kiln::recorder
