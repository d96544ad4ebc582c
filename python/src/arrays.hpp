// SPDX-License-Identifier: Apache-2.0
// Arrays of any library, read where they are: torch by DLPack's exchange functions, CuPy by its attributes, Numba by
// __cuda_array_interface__, JAX and others by __dlpack__, host arrays by the buffer protocol. How a type is read is found out
// once. Nothing is copied, converted or waited for.
#pragma once

#include "dlpack.hpp"

#include <nanobind/nanobind.h>

#include <kiln/device.hpp>
#include <kiln/prims/operators.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::python {

namespace nb = nanobind;

inline constexpr int most_dimensions = 8;

class array {
public:
    // TypeError that names the argument and the ways that were tried where it is no array.
    array(nb::handle object, char const* argument);
    ~array() { release(); }
    array(array&& other) noexcept;
    array(array const&) = delete;
    array& operator=(array const&) = delete;

    [[nodiscard]] void* data() const noexcept { return data_; }
    [[nodiscard]] bool on_device() const noexcept { return device_ >= 0; }
    [[nodiscard]] int device() const noexcept { return device_; }
    [[nodiscard]] int dimensions() const noexcept { return dimensions_; }
    [[nodiscard]] std::int64_t extent(int dimension) const noexcept { return shape_[static_cast<std::size_t>(dimension)]; }
    // In items.
    [[nodiscard]] std::int64_t stride(int dimension) const noexcept { return strides_[static_cast<std::size_t>(dimension)]; }
    [[nodiscard]] std::size_t items() const noexcept;
    [[nodiscard]] dlpack::data_type type() const noexcept { return type_; }
    [[nodiscard]] bool read_only() const noexcept { return read_only_; }
    [[nodiscard]] bool contiguous() const noexcept;
    [[nodiscard]] nb::handle object() const noexcept { return object_; }
    [[nodiscard]] char const* argument() const noexcept { return argument_; }
    // That the array's library works on; nullopt where it says nothing.
    [[nodiscard]] std::optional<CUstream_st*> stream() const;
    [[nodiscard]] bool shares_stream_with(array const& other) const noexcept {
        return (api_ != nullptr && api_ == other.api_) || (of_cupy_ && other.of_cupy_);
    }

    // "int32[1000] on cuda:0"
    [[nodiscard]] std::string describe() const;

private:
    array(char const* argument, nb::handle object) noexcept : object_{object}, argument_{argument} {}
    void release() noexcept;
    template <class Extent>
    void set_shape(std::int64_t dimensions, Extent extent);
    template <class Bytes>
    void set_strides(Bytes bytes);
    void want_memory() const;
    void take(dlpack::tensor const& from);
    void take_own();
    void take_exchange(dlpack::exchange_api const& api);
    void take_dlpack();
    void take_cuda_interface();
    void take_cupy();
    void take_buffer();

    nb::handle object_;
    char const* argument_;
    void* data_ = nullptr;
    int device_ = -1;
    int dimensions_ = 0;
    std::array<std::int64_t, most_dimensions> shape_{};
    std::array<std::int64_t, most_dimensions> strides_{};
    dlpack::data_type type_{};
    bool read_only_ = false;
    std::optional<CUstream_st*> stream_;
    dlpack::exchange_api const* api_ = nullptr;  // that tells the stream when it is asked for
    bool of_cupy_ = false;                       // which does likewise
    dlpack::managed* legacy_ = nullptr;
    dlpack::managed_versioned* versioned_ = nullptr;
    Py_buffer buffer_{};
};

// "int32", "bfloat16"; "complex64" and others that Kiln does not compute with, too.
[[nodiscard]] std::string name_of(dlpack::data_type type);
// errc::unsupported for types no primitive takes. Bool is taken as bytes.
[[nodiscard]] scalar scalar_of(dlpack::data_type type, char const* argument);
[[nodiscard]] dlpack::data_type type_of(scalar kind);

// errc::invalid_argument with shape and strides unless its items are one after the other.
void want_contiguous(array const& a);
void want_writable(array const& a);
// errc::invalid_argument where what is written lies over what is read; `in_place`: the very same memory is allowed.
enum class in_place : std::uint8_t { refused, allowed };
void want_apart(array const& out, std::initializer_list<array const*> inputs, in_place same = in_place::refused);
// errc::invalid_argument where two places of what is written are one in memory.
void want_no_item_twice(array const& out);
// From an array's first byte to its last, gaps and all, so that its strides hold there.
[[nodiscard]] std::span<std::byte> whole_of(array const& of);
// From the first use of a GPU on: a child that is forked later cannot use it.
void note_gpu_use() noexcept;

// The stream of a call: `asked`, else that of the first device array's library, else Kiln's own. Work queued on other
// libraries' streams before this call comes first. errc::invalid_argument with both places where arrays are on two, or the stream
// is of another device; errc::no_device in a child that was forked after the GPU was used.
class call_stream {
public:
    call_stream(nb::handle asked, std::span<array const* const> arrays);
    call_stream(nb::handle asked, std::initializer_list<array const*> arrays) : call_stream{asked, std::span<array const* const>{arrays.begin(), arrays.size()}} {}
    // Makes the other libraries' streams wait for what was queued in between.
    void done();
    [[nodiscard]] stream_ref get() const noexcept { return on_; }
    [[nodiscard]] int device() const noexcept { return device_; }

private:
    int device_ = 0;
    stream_ref on_;
    std::vector<CUstream_st*> others_;
};

// An int, or an object with __cuda_stream__. errc::invalid_argument for a number that is no address.
[[nodiscard]] CUstream_st* stream_of(nb::handle asked);

}  // namespace kiln::python
