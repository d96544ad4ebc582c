// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include "base/check.hpp"

#include <bit>
#include <limits>

namespace kiln::base {

void byte_writer::put_little(std::uint64_t v, int count) {
    for (int i = 0; i < count; ++i) out_.push_back(static_cast<std::byte>(v >> (8 * i)));
}

void byte_writer::put_f64(double v) { put_u64(std::bit_cast<std::uint64_t>(v)); }

void byte_writer::put_blob(byte_span data) {
    KILN_ASSERT(data.size() <= std::numeric_limits<std::uint32_t>::max());
    put_u32(static_cast<std::uint32_t>(data.size()));
    put_raw(data);
}

byte_span byte_reader::get_raw(std::size_t count) noexcept {
    if (count > rest_.size()) {
        spoil();
        return {};
    }
    auto const front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
}

std::uint64_t byte_reader::get_little(int count) noexcept {
    std::uint64_t v = 0;
    int shift = 0;
    for (auto const b : get_raw(static_cast<std::size_t>(count))) {
        v |= std::to_integer<std::uint64_t>(b) << shift;
        shift += 8;
    }
    return v;
}

double byte_reader::get_f64() noexcept { return std::bit_cast<double>(get_u64()); }

std::uint32_t byte_reader::get_count(std::size_t least) noexcept {
    auto const count = get_u32();
    if (least != 0 && count > rest_.size() / least) {
        spoil();
        return 0;
    }
    return count;
}

}  // namespace kiln::base
