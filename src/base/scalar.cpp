// SPDX-License-Identifier: Apache-2.0
#include <kiln/ops.hpp>

namespace kiln {

std::string_view name_of(scalar kind) noexcept {
    static constexpr std::string_view names[] = {"i8",  "u8",  "i16",  "u16", "i32", "u32",   "i64",
                                                 "u64", "f16", "bf16", "f32", "f64", "record"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace kiln
