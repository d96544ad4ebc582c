// SPDX-License-Identifier: Apache-2.0
//
// Where data lives, and a borrowed run of it on the device. Plain values.
#pragma once

#include <kiln/language.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace KILN_PUBLIC kiln {

enum class residency : std::uint8_t { host, pinned, device, managed };
[[nodiscard]] std::string_view name_of(residency where) noexcept;
// Device and managed memory: kernels may read it.
[[nodiscard]] constexpr bool on_device(residency where) noexcept {
    return where == residency::device || where == residency::managed;
}

// Borrowed device memory.
template <class T>
struct device_span {
    T* data = nullptr;
    std::size_t size = 0;  // elements

    constexpr device_span() = default;
    constexpr device_span(T* first, std::size_t count) noexcept : data{first}, size{count} {}
    // From a span of what is not const; the other way round does not compile.
    template <class U>
        requires(std::is_same_v<U const, T> && !std::is_same_v<U, T>)
    constexpr device_span(device_span<U> const& other) noexcept : data{other.data}, size{other.size} {}
};
using scratch_span = device_span<std::byte>;  // 256-byte aligned; empty: the stream's pool is used

}  // namespace kiln
