// SPDX-License-Identifier: Apache-2.0
#include "store/packed_bundle.hpp"

#include <algorithm>
#include <zstd.h>

namespace kiln::store {

namespace {

constexpr std::array frame_magic{std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd}};
constexpr int level = 19;
constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
// No bundle of ours comes near it: what claims to is not worth the memory.
constexpr std::uint64_t largest_ratio = 1000;

class owned_source final : public byte_source {
public:
    explicit owned_source(base::bytes data) : data_{std::move(data)} {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return data_.size(); }
    [[nodiscard]] result<base::bytes> read(std::uint64_t offset, std::size_t count) const override {
        if (offset > data_.size() || data_.size() - offset < count)
            return fail(errc::corrupt, "bundle is truncated at byte {}", data_.size());
        auto const from = data_.begin() + static_cast<std::ptrdiff_t>(offset);
        return base::bytes(from, from + static_cast<std::ptrdiff_t>(count));
    }

private:
    base::bytes data_;
};

}  // namespace

result<base::bytes> pack_bundle(base::byte_span bundle) {
    if (bundle.size() > most_bytes)
        return fail(errc::invalid_argument,
                    "a bundle of {} MiB is not packed as a whole, it would be unpacked at every start ({} MiB at most)",
                    bundle.size() >> 20, most_bytes >> 20);
    base::bytes out(ZSTD_compressBound(bundle.size()));
    auto const size = ZSTD_compress(out.data(), out.size(), bundle.data(), bundle.size(), level);
    if (ZSTD_isError(size) != 0) return fail(errc::internal, "zstd: {}", ZSTD_getErrorName(size));
    out.resize(size);
    return out;
}

bool is_packed(base::byte_span head) noexcept {
    return head.size() >= frame_magic.size() && std::ranges::equal(head.first(frame_magic.size()), frame_magic);
}

result<std::unique_ptr<byte_source>> unpack_bundle(byte_source const& source) {
    auto const size = source.size();
    if (size > most_bytes) return fail(errc::corrupt, "packed bundle: {} bytes are too many", size);
    KILN_TRY(auto const packed, source.read(0, static_cast<std::size_t>(size)));
    auto const raw = ZSTD_getFrameContentSize(packed.data(), packed.size());
    if (raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == ZSTD_CONTENTSIZE_ERROR || raw > most_bytes ||
        raw / largest_ratio > size)
        return fail(errc::corrupt, "packed bundle: damaged, or too large");
    base::bytes out(static_cast<std::size_t>(raw));
    auto const made = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
    if (ZSTD_isError(made) != 0 || made != out.size()) return fail(errc::corrupt, "packed bundle: damaged");
    return std::unique_ptr<byte_source>{std::make_unique<owned_source>(std::move(out))};
}

}  // namespace kiln::store
