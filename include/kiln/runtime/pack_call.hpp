// SPDX-License-Identifier: Apache-2.0
//
// What operations are made of: for packs, and for programs that register operations of their own. A call is decided, named
// for what happens inside, and counted; its inputs are brought to where it runs, its results have room there.
#pragma once

#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/operation.hpp>

#include <memory>
#include <mutex>
#include <optional>

namespace KILN_PUBLIC kiln {
namespace runtime {

// One call of an operation: decided, named for what happens inside, and counted.
class operation_call {
public:
    [[nodiscard]] static result<operation_call> begin(operation const& what, call_facts const& facts);
    // Of a chunk, which was decided already.
    operation_call(operation const& what, residency of_input, decision how);
    operation_call(operation_call&& other) noexcept;
    operation_call& operator=(operation_call&&) = delete;
    ~operation_call();

    [[nodiscard]] bool on_gpu() const noexcept { return how_.selected == place::gpu; }
    [[nodiscard]] decision const& how() const noexcept { return how_; }

private:
    decision how_;
    bool entered_ = false;
};

// Made at the first call on a device and kept.
template <class Handle>
class kept_handle {
public:
    template <class Make>
    [[nodiscard]] result<Handle const*> get(int device, Make const& make) const {
        if (device < 0 || device >= most_devices) return error{errc::no_device, "there is no such device"};
        auto& slot = state_->by_device[static_cast<std::size_t>(device)];
        if (auto const* ready = slot.load(std::memory_order_acquire)) return ready;
        std::scoped_lock const lock{state_->mutex};
        if (auto const* ready = slot.load(std::memory_order_acquire)) return ready;
        auto made = make(device);
        if (!made) return std::move(made).error();
        state_->owned.push_back(std::make_unique<Handle>(*std::move(made)));
        slot.store(state_->owned.back().get(), std::memory_order_release);
        return state_->owned.back().get();
    }
    // The same, put to use.
    template <class Make, class Use>
    [[nodiscard]] auto with(int device, Make const& make, Use const& use) const {
        return get(device, make).and_then([&](Handle const* handle) { return use(*handle); });
    }

private:
    static constexpr int most_devices = 16;
    struct state {
        std::mutex mutex;
        std::vector<std::unique_ptr<Handle>> owned;
        std::array<std::atomic<Handle const*>, most_devices> by_device{};
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

// Room for a result, where the call runs.
template <class T, class Like>
[[nodiscard]] result<buffer<T>> room(operation_call const& call, stream_ref on, std::size_t n,
                                     buffer<Like> const& like) {
    if (!call.on_gpu()) return buffer<T>::on_host(n);
    return buffer<T>::on_device(on, n, like.device());
}
// How many of so many elements the device has room for now, with what an operation needs beside them: all, or what is
// half of its free memory.
[[nodiscard]] result<std::uint64_t> room_for(std::uint64_t elements, std::size_t size, int device);
// A buffer where the call runs: the caller's own if it is there, else a copy this keeps.
template <class T>
class brought {
public:
    brought(operation_call const& call, stream_ref on, buffer<T> const& what) {
        if (call.on_gpu() == on_device(what.where())) {
            here_ = &what;
            return;
        }
        auto moved = call.on_gpu() ? what.to_device(on, what.device()) : what.to_host_sync(on);
        if (moved) here_ = &copy_.emplace(*std::move(moved));
        else why_.emplace(std::move(moved).error());
    }
    brought(brought const&) = delete;
    brought& operator=(brought const&) = delete;

    explicit operator bool() const noexcept { return here_ != nullptr; }
    [[nodiscard]] error const& why() const noexcept { return *why_; }
    buffer<T> const& operator*() const noexcept { return *here_; }
    buffer<T> const* operator->() const noexcept { return here_; }

private:
    buffer<T> const* here_ = nullptr;
    std::optional<buffer<T>> copy_;
    std::optional<error> why_;
};
// The one element of a buffer, wherever it is: on the device, behind a fence.
template <class T>
[[nodiscard]] result<T> value_of_sync(stream_ref on, buffer<T> const& one) {
    if (!on_device(one.where())) return *one.data();
    return fence::make(on, one.device()).and_then([&](fence&& waits) {
        return waits.add(one.data()).and_then([&](std::size_t at) {
            return waits.wait_sync().transform([&] { return waits.template get<T>(at); });
        });
    });
}
// The usual call: `in` is brought to where it runs, room is made there for n results, and fill(call, in, out) does the work.
template <class T, class In, class Fill>
[[nodiscard]] result<buffer<T>> filled(result<operation_call> const& call, stream_ref on, std::size_t n,
                                       buffer<In> const& in, Fill const& fill) {
    return call.and_then([&](operation_call const& decided) -> result<buffer<T>> {
        brought<In> const here{decided, on, in};
        if (!here) return here.why();
        return room<T>(decided, on, n, in).and_then([&](buffer<T>&& out) {
            return fill(decided, *here, out).transform([&] { return std::move(out); });
        });
    });
}
template <class T>
[[nodiscard]] device_span<T> span_of(buffer<T> const& on_device) noexcept {
    return device_span<T>(on_device.data(), on_device.size());
}
[[nodiscard]] error too_small(std::string_view what, std::size_t given, std::size_t needed);
[[nodiscard]] error elsewhere(operation const& what, residency out, place ran);
template <class T>
[[nodiscard]] result<void> check_output(operation_call const& call, operation const& what, buffer<T> const& out,
                                        std::size_t least) {
    if (on_device(out.where()) != call.on_gpu() && out.where() != residency::managed)
        return elsewhere(what, out.where(), call.how().selected);
    if (out.size() < least) return too_small("out", out.size(), least);
    return {};
}

}  // namespace runtime
}  // namespace kiln
