// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include "gil.hpp"

#include <nanobind/stl/string.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace kiln::python {

// The stream with this address. errc::invalid_argument for what is none.
CUstream_st* stream_at(nb::handle address, char const* argument) {
    auto* const at = PyLong_Check(address.ptr()) ? PyLong_AsVoidPtr(address.ptr()) : nullptr;
    bool const is_address = PyLong_Check(address.ptr()) && PyErr_Occurred() == nullptr;
    PyErr_Clear();
    if (!is_address) throw error{errc::invalid_argument, std::string{argument} + ": " + nb::cast<std::string>(nb::repr(address)) + " is no stream's address"};
    return static_cast<CUstream_st*>(at);
}

namespace {

std::atomic<bool> gpu_used{false};
std::atomic<bool> forked_after_use{false};

// Objects of torch, CuPy and cuda.core say which device their stream is of.
void want_stream_of(nb::handle asked, int device) {
    if (PyLong_Check(asked.ptr()) || !nb::hasattr(asked, "device")) return;
    nb::object const where = asked.attr("device");
    for (auto const* const name : {"index", "device_id", "id"}) {
        if (!nb::hasattr(where, name)) continue;
        nb::object const ordinal = where.attr(name);
        if (PyLong_Check(ordinal.ptr()) && nb::cast<int>(ordinal) != device)
            throw error{errc::invalid_argument, "stream is of cuda:" + std::to_string(nb::cast<int>(ordinal)) + ", the arrays are on cuda:" +
                                                    std::to_string(device) + ": pass a stream of their device"};
        return;
    }
}

}  // namespace

void note_gpu_use() noexcept {
    if (gpu_used.exchange(true, std::memory_order_relaxed)) return;
    ::pthread_atfork(nullptr, nullptr, [] { forked_after_use.store(true, std::memory_order_relaxed); });
}

CUstream_st* stream_of(nb::handle asked) {
    if (PyLong_Check(asked.ptr())) return stream_at(asked, "stream");
    if (nb::hasattr(asked, "__cuda_stream__")) {
        nb::object const given = asked.attr("__cuda_stream__")();
        return stream_at(nb::object{given[1]}, "stream");
    }
    for (auto const* const name : {"cuda_stream", "ptr", "handle"}) {  // torch's, CuPy's, others'
        if (!nb::hasattr(asked, name)) continue;
        nb::object const value = asked.attr(name);
        if (PyLong_Check(value.ptr())) return stream_at(value, "stream");
    }
    throw nb::type_error("stream must be an int or an object with __cuda_stream__");
}

namespace {

// Arrays that somebody's memory pool would give to others too soon, and what must have run before.
struct held_arrays {
    device_event ran;
    std::vector<std::shared_ptr<void const>> arrays;
};
struct all_held {
    std::mutex mutex;
    std::list<held_arrays> waiting;
    std::atomic<std::size_t> count{0};
};
all_held& held() {
    static auto& all = *new all_held;  // outlives the interpreter
    return all;
}

// Lets go what has run. By whoever calls next: nobody waits for it.
void let_go() {
    auto& all = held();
    if (all.count.load(std::memory_order_relaxed) == 0) return;
    std::list<held_arrays> gone;  // ends after the mutex is free
    std::lock_guard const lock{all.mutex};
    for (auto at = all.waiting.begin(); at != all.waiting.end();) {
        auto const ran = at->ran.reached();
        auto const next = std::next(at);
        if (!ran || *ran) gone.splice(gone.end(), all.waiting, at);
        at = next;
    }
    all.count.store(all.waiting.size(), std::memory_order_relaxed);
}

void hold(device_event ran, std::vector<std::shared_ptr<void const>> arrays) {
    auto& all = held();
    std::lock_guard const lock{all.mutex};
    all.waiting.push_back({std::move(ran), std::move(arrays)});
    all.count.store(all.waiting.size(), std::memory_order_relaxed);
}

// For callers whose arrays say nothing of a stream.
stream_ref own_stream(int device) {
    static std::mutex mutex;
    static auto& made = *new std::map<int, stream>;  // outlives the interpreter: the driver may be gone by then
    std::lock_guard const lock{mutex};
    auto at = made.find(device);
    if (at == made.end()) at = made.emplace(device, stream::make(device).value()).first;
    return at->second;
}

// null and 1 both mean the legacy default stream.
bool same_stream(CUstream_st* a, CUstream_st* b) {
    auto const plain = [](CUstream_st* s) { return s == nullptr ? reinterpret_cast<CUstream_st*>(1) : s; };
    return plain(a) == plain(b);
}

}  // namespace

void order(int device, stream_ref first, stream_ref then) {
    auto mark = device_event::make(device, event_timing::off).value();
    mark.record(first).value();
    mark.hold(then).value();
}

void wait_sync(int device, stream_ref on) {
    using clock = std::chrono::steady_clock;
    if (waits_are_forbidden != 0) return;
    auto mark = device_event::make(device, event_timing::off);
    if (!mark || !mark->record(on)) return;
    auto const begun = clock::now();
    for (auto looked = begun;;) {
        auto const ran = mark->reached();
        if (!ran || *ran) return;
        auto const now = clock::now();
        if (now - looked > std::chrono::milliseconds{100}) {
            looked = now;
            with_gil const locked;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
        // Late by a sixteenth of what it takes, and by a millisecond at most.
        if (now - begun < std::chrono::microseconds{300}) std::this_thread::yield();
        else std::this_thread::sleep_for(std::min<clock::duration>((now - begun) / 16, std::chrono::milliseconds{1}));
    }
}

call_stream::call_stream(nb::handle asked, std::span<array const* const> arrays) {
    if (forked_after_use.load(std::memory_order_relaxed))
        throw error{errc::no_device, "this process was forked after its parent used the GPU, and cannot use it: start processes with 'spawn' or "
                                     "'forkserver', or fork before the first use"};
    let_go();
    array const* first = nullptr;
    for (auto const* a : arrays) {
        if (a == nullptr) continue;
        if (first == nullptr) first = a;
        if (a->must_be_held()) lasting_.push_back(kept(a->keeper()));
        if (a->device() != first->device())
            throw error{errc::invalid_argument, std::string{first->argument()} + " is " + first->describe() + ", " + a->argument() +
                                                    " is " + a->describe() + ": bring them to one place"};
    }
    if (first != nullptr) device_ = std::max(first->device(), 0);
    bool const named = asked.is_valid() && !asked.is_none();
    auto const own = first != nullptr && !named ? first->stream() : std::nullopt;
    if (named) want_stream_of(asked, device_), on_ = stream_of(asked);
    else if (own) on_ = *own;
    else on_ = own_stream(device_);
    for (auto const* a : arrays) {
        // The first one's stream is the call's; arrays of its library work on the same.
        if (a == nullptr || (own && (a == first || a->shares_stream_with(*first)))) continue;
        auto const theirs = a->stream();
        if (!theirs || same_stream(*theirs, on_.get())) continue;
        auto* const other = *theirs;
        if (std::ranges::find(others_, other) != others_.end()) continue;
        others_.push_back(other);
        order(device_, other, on_);
    }
}

void call_stream::done() {
    for (auto* const other : others_) order(device_, on_, other);
    if (lasting_.empty()) return;
    auto ran = device_event::make(device_, event_timing::off).value();
    ran.record(on_).value();
    hold(std::move(ran), std::move(lasting_));
}

std::shared_ptr<void const> kept_until_ran(array const& from) {
    auto keeper = kept(from.keeper());
    if (!from.on_device()) return keeper;
    let_go();
    auto theirs = from.stream();
    if (theirs && same_stream(*theirs, default_stream.get())) theirs.reset();
    if (theirs) order(from.device(), *theirs, default_stream);
    auto const* const address = keeper.get();
    // By whichever thread is the last one, without the interpreter's lock.
    return {address, [keeper = std::move(keeper), theirs, device = from.device(), must_be_held = from.must_be_held()](void const*) mutable {
        if (ending.load(std::memory_order_relaxed) || (!theirs && !must_be_held)) return;
        auto ran = device_event::make(device, event_timing::off);
        if (!ran || !ran->record(default_stream)) return;
        if (theirs) (void)ran->hold(*theirs);
        if (must_be_held) hold(*std::move(ran), {std::move(keeper)});
    }};
}

}  // namespace kiln::python
