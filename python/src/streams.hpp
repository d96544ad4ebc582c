// SPDX-License-Identifier: Apache-2.0
// Which stream a call goes to, and how it is ordered among the streams of the arrays it was given.
#pragma once

#include "arrays.hpp"

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace kiln::python {

inline constexpr int legacy_default_stream = 1;  // as DLPack and __cuda_array_interface__ have it
inline stream_ref const default_stream{reinterpret_cast<CUstream_st*>(static_cast<std::uintptr_t>(legacy_default_stream))};

// What was queued on `first` before this comes before what is queued on `then` after it.
void order(int device, stream_ref first, stream_ref then);

// Waits until what is queued on `on` has run, without the interpreter's lock, which the caller has not either: KeyboardInterrupt comes out of it, and
// the work goes on. What goes wrong is left to whoever waits for it then. Within kiln.no_sync() it returns at once, for the same reason.
void wait_sync(int device, stream_ref on);
inline thread_local int waits_are_forbidden = 0;  // by so many scopes of this thread

// An array that operations on the default stream read for as long as anybody holds this. What its library has queued comes before what is queued there from
// now on; its memory is nobody else's before what is queued there until the end has run.
[[nodiscard]] std::shared_ptr<void const> kept_until_ran(array const& from);

// From the first use of a GPU on: a child that is forked later cannot use it.
void note_gpu_use() noexcept;

// The stream of a call: `asked`, else that of the first device array's library, else Kiln's own. Work queued on other
// libraries' streams before this call comes first. errc::invalid_argument with both places where arrays are on two, or the stream
// is of another device; errc::no_device in a child that was forked after the GPU was used.
class call_stream {
public:
    call_stream(nb::handle asked, std::span<array const* const> arrays);
    call_stream(nb::handle asked, std::initializer_list<array const*> arrays) : call_stream{asked, std::span<array const* const>{arrays.begin(), arrays.size()}} {}
    // Makes the other libraries' streams wait for what was queued in between, and holds arrays that must not go before it has run.
    void done();
    [[nodiscard]] stream_ref get() const noexcept { return on_; }
    [[nodiscard]] int device() const noexcept { return device_; }

private:
    int device_ = 0;
    stream_ref on_;
    std::vector<CUstream_st*> others_;
    std::vector<std::shared_ptr<void const>> lasting_;
};

// The stream with this address. errc::invalid_argument for what is none.
[[nodiscard]] CUstream_st* stream_at(nb::handle address, char const* argument);

// An int, or an object with __cuda_stream__. errc::invalid_argument for a number that is no address.
[[nodiscard]] CUstream_st* stream_of(nb::handle asked);

}  // namespace kiln::python
