// SPDX-License-Identifier: Apache-2.0
// kiln.Array: memory of Kiln's own, for callers whose arrays are on the host, for libraries whose arrays cannot be written to, and
// for results that stay where they were made. Other libraries take it by DLPack, __cuda_array_interface__ or
// __array_interface__, without a copy. Work on one that lies on a device is ordered on the default stream.
#pragma once

#include "checks.hpp"
#include "gil.hpp"
#include "streams.hpp"

#include <kiln/runtime/buffer.hpp>
#include <kiln/scalar.hpp>

#include <vector>

namespace kiln::python {

struct device_array {
    storage memory;
    std::vector<std::int64_t> shape;
    dlpack::data_type type;
    bool read_only = false;  // to others

    [[nodiscard]] bool on_device() const noexcept { return memory.where() == residency::device || memory.where() == residency::managed; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t n = type.bits / 8U;
        for (auto const extent : shape) n *= static_cast<std::size_t>(extent);
        return n;
    }
};

template <class T>
[[nodiscard]] device_array array_of(buffer<T> const& from) {
    if constexpr (std::is_enum_v<T>) return {from.raw(), {static_cast<std::int64_t>(from.size())}, type_of(kiln::scalar_of<std::underlying_type_t<T>>())};
    else return {from.raw(), {static_cast<std::int64_t>(from.size())}, type_of(kiln::scalar_of<T>())};
}

// Another library's array, contiguous and of T, as a buffer that keeps it for as long as it is used. What is queued on the default stream
// from now on comes after what that library has queued. errc::invalid_argument for items of another type.
template <class T>
[[nodiscard]] buffer<T> borrowed(nanobind::handle object, char const* argument) {
    array const from{object, argument};
    want_contiguous(from);
    auto const type = from.type() == dlpack::data_type{dlpack::boolean, 8, 1} ? type_of(scalar::u8) : from.type();
    if (type != type_of(kiln::scalar_of<T>()))
        throw error{errc::invalid_argument, std::string{argument} + " is " + from.describe() + "; it must be of " + name_of(type_of(kiln::scalar_of<T>()))};
    auto const where = from.on_device() ? residency::device : residency::host;
    return buffer<T>::borrow(static_cast<T*>(from.data()), from.items(), where, std::max(from.device(), 0), kept_until_ran(from));
}

}  // namespace kiln::python
