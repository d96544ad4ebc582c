// SPDX-License-Identifier: Apache-2.0
// Little-endian, length-prefixed reading and writing: the only way Kiln puts structure into bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::base {

using bytes = std::vector<std::byte>;
using byte_span = std::span<std::byte const>;

[[nodiscard]] inline byte_span as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<std::byte const*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view as_text(byte_span data) noexcept {
    return {reinterpret_cast<char const*>(data.data()), data.size()};
}

class byte_writer {
public:
    void put_u8(std::uint8_t v) { put_little(v, 1); }
    void put_u16(std::uint16_t v) { put_little(v, 2); }
    void put_u32(std::uint32_t v) { put_little(v, 4); }
    void put_u64(std::uint64_t v) { put_little(v, 8); }
    void put_f64(double v);
    void put_raw(byte_span data) { out_.insert(out_.end(), data.begin(), data.end()); }
    // u32 length, then the bytes.
    void put_blob(byte_span data);
    void put_text(std::string_view text) { put_blob(as_bytes(text)); }

    [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
    [[nodiscard]] byte_span view() const noexcept { return out_; }
    [[nodiscard]] bytes take() && { return std::move(out_); }

private:
    void put_little(std::uint64_t v, int count);
    bytes out_;
};

// Reads what byte_writer wrote. Running past the end, or a length larger than what is left, makes the
// reader bad; every later read gives zero or empty. Check ok() once at the end: no read over-runs.
class byte_reader {
public:
    explicit byte_reader(byte_span data) noexcept : rest_{data} {}

    std::uint8_t get_u8() noexcept { return static_cast<std::uint8_t>(get_little(1)); }
    std::uint16_t get_u16() noexcept { return static_cast<std::uint16_t>(get_little(2)); }
    std::uint32_t get_u32() noexcept { return static_cast<std::uint32_t>(get_little(4)); }
    std::uint64_t get_u64() noexcept { return get_little(8); }
    double get_f64() noexcept;
    // Views into the reader's input.
    byte_span get_raw(std::size_t count) noexcept;
    byte_span get_blob() noexcept { return get_raw(get_u32()); }
    std::string get_text() { return std::string{as_text(get_blob())}; }
    // A count of items that take at least `least` bytes each: bad if they cannot all be there.
    std::uint32_t get_count(std::size_t least) noexcept;

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] bool done() const noexcept { return ok_ && rest_.empty(); }
    [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
    void spoil() noexcept {
        ok_ = false;
        rest_ = {};
    }

private:
    std::uint64_t get_little(int count) noexcept;
    byte_span rest_;
    bool ok_ = true;
};

}  // namespace kiln::base
