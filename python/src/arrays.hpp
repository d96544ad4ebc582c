// SPDX-License-Identifier: Apache-2.0
// Arrays of any library, read where they are: torch by DLPack's exchange functions, CuPy by its attributes, Numba and others by
// __cuda_array_interface__ where it tells a stream (from version 3 on), JAX, older torch and the rest by __dlpack__, host arrays by the
// buffer protocol. How a type is read is found out once. Nothing is copied, converted or waited for.
#pragma once

#include "dlpack.hpp"
#include "item_types.hpp"

#include <nanobind/nanobind.h>

#include <kiln/device.hpp>

#include <array>
#include <optional>
#include <string>

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
        return (api_ != nullptr && api_ == other.api_) || (library_ != library::unknown && library_ == other.library_);
    }
    // Whether its library may give the memory to others as soon as nobody holds the array, whatever is still to run on it.
    [[nodiscard]] bool must_be_held() const noexcept { return on_device() && library_ == library::unknown && lent_.is_valid(); }
    // The memory stays where it is for as long as somebody holds this: the object, and what it has lent, which need not be its own.
    [[nodiscard]] nb::object keeper() const;

    // "int32[1000] on cuda:0"
    [[nodiscard]] std::string describe() const;

private:
    enum class library : std::uint8_t { unknown, cupy, torch };  // that tells its stream when it is asked for

    array(char const* argument, nb::handle object) noexcept : object_{object}, argument_{argument} {}
    void release() noexcept;
    template <class Extent>
    void set_shape(std::int64_t dimensions, Extent extent);
    template <class Bytes>
    void set_strides(Bytes bytes);
    void want_memory() const;
    void set_device(std::int64_t ordinal);
    void take(dlpack::tensor const& from);
    template <class Managed>
    void keep(Managed* lent);
    void take_own();
    void take_exchange(dlpack::exchange_api const& api);
    void refuse_gradient() const;
    void take_torch();
    template <class Ask>
    nb::object answer_to(char const* question, Ask ask) const;
    void take_dlpack(int stream);
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
    library library_ = library::unknown;         // which does likewise
    nb::object lent_;  // by DLPack: gives the memory back when nobody holds it any more
    Py_buffer buffer_{};
};

// "[1000, 3]"
[[nodiscard]] std::string shape_text(array const& a);

}  // namespace kiln::python
