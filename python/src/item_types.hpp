// SPDX-License-Identifier: Apache-2.0
// Types of items: as DLPack has them, as array interfaces and the buffer protocol write them, as primitives take them, and by name.
#pragma once

#include "dlpack.hpp"

#include <kiln/scalar.hpp>

#include <cstddef>
#include <string>

namespace kiln::python {

// "int32", "bfloat16"; "complex64" and others that Kiln does not compute with, too.
[[nodiscard]] std::string name_of(dlpack::data_type type);
// errc::unsupported for types no primitive takes. Bool is taken as bytes.
[[nodiscard]] scalar scalar_of(dlpack::data_type type, char const* argument);
[[nodiscard]] dlpack::data_type type_of(scalar kind);

// "<i4", "|u1", "=f8". errc::unsupported for other types, and another byte order.
[[nodiscard]] dlpack::data_type of_interface(std::string const& text, char const* argument);
// The letters of the buffer protocol, with the bytes of an item. Null: bytes.
[[nodiscard]] dlpack::data_type of_buffer(char const* format, std::size_t size, char const* argument);

}  // namespace kiln::python
