// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/wkb.hpp>

#include "base/check.hpp"
#include "spatial/rows.hpp"
#include "spatial/text_rows.hpp"

#include <bit>
#include <limits>

namespace kiln::spatial {

namespace {

constexpr std::uint32_t ewkb_z = 0x80000000U, ewkb_m = 0x40000000U, ewkb_srid = 0x20000000U;

// The kind of a multi's members.
constexpr family member_of(family kind) noexcept { return static_cast<family>(static_cast<int>(kind) - 3); }
constexpr bool is_multi(family kind) noexcept { return kind >= family::multipoint; }

class reader {
public:
    reader(std::span<std::uint8_t const> bytes, std::size_t row, geometry_builder& to)
        : bytes_{bytes}, row_{row}, to_{to} {}

    result<void> read() {
        KILN_TRY(auto const kind, header());
        to_.begin(kind);
        if (is_multi(kind)) {
            KILN_TRY(auto const members, count(5));
            for (std::uint32_t i = 0; i < members; ++i) {
                KILN_TRY(auto const member, header());
                if (member != member_of(kind))
                    return fail(errc::corrupt, "WKB, row {}, byte {}: a {} inside a {}", row_, at_, name_of(member),
                                name_of(kind));
                if (kind == family::multilinestring) to_.begin_line();
                if (kind == family::multipolygon) to_.begin_polygon();
                KILN_CHECK(body(member, empty_point::refused));
            }
        } else {
            KILN_CHECK(body(kind, empty_point::taken));
        }
        to_.end();
        if (at_ != bytes_.size())
            return fail(errc::corrupt, "WKB, row {}: {} bytes follow the geometry", row_, bytes_.size() - at_);
        return {};
    }

private:
    enum class empty_point : std::uint8_t { taken, refused };

    result<void> body(family kind, empty_point empty) {
        if (kind == family::point) {
            KILN_CHECK(need(16));
            double const x = f64(), y = f64();
            if (x == x || y == y) to_.vertex(x, y);
            else if (empty == empty_point::refused)
                return fail(errc::unsupported, "WKB, row {}: an empty point inside a multipoint", row_);
            return {};
        }
        if (kind == family::linestring) return vertices();
        KILN_TRY(auto const rings, count(4));
        for (std::uint32_t i = 0; i < rings; ++i) {
            to_.begin_ring();
            KILN_CHECK(vertices());
        }
        return {};
    }
    result<void> vertices() {
        KILN_TRY(auto const n, count(16));
        for (std::uint32_t i = 0; i < n; ++i) {
            double const x = f64();
            to_.vertex(x, f64());
        }
        return {};
    }

    result<family> header() {
        KILN_CHECK(need(5));
        auto const order = bytes_[at_++];
        if (order > 1) return fail(errc::corrupt, "WKB, row {}, byte {}: byte order {}", row_, at_ - 1, order);
        swapped_ = (order == 1) != (std::endian::native == std::endian::little);
        auto const type = u32();
        auto const iso = (type & 0x1fffffffU) / 1000;
        if ((type & (ewkb_z | ewkb_m)) != 0 || (iso >= 1 && iso <= 3))
            return fail(errc::unsupported, "WKB, row {}: Z or M coordinates; only x and y are taken", row_);
        if ((type & ewkb_srid) != 0) {
            KILN_CHECK(need(4));
            at_ += 4;
        }
        auto const kind = type & 0x1fffffffU;
        if (kind < 1 || kind > single_families)
            return fail(errc::unsupported, "WKB, row {}: type {} is none of the six families of simple features", row_,
                        kind);
        return static_cast<family>(kind);
    }

    // A count whose members take at least `each` bytes.
    result<std::uint32_t> count(std::size_t each) {
        KILN_CHECK(need(4));
        auto const n = u32();
        if (n > (bytes_.size() - at_) / each)
            return fail(errc::corrupt, "WKB, row {}, byte {}: {} members do not fit into the {} bytes left", row_,
                        at_ - 4, n, bytes_.size() - at_);
        return n;
    }
    result<void> need(std::size_t n) const {
        if (bytes_.size() - at_ < n)
            return fail(errc::corrupt, "WKB, row {}, byte {}: the row ends within a geometry", row_, at_);
        return {};
    }
    template <class T>
    T take() {
        T out;
        std::memcpy(&out, bytes_.data() + at_, sizeof(T));
        at_ += sizeof(T);
        return out;
    }
    std::uint32_t u32() {
        auto const v = take<std::uint32_t>();
        return swapped_ ? __builtin_bswap32(v) : v;
    }
    double f64() {
        auto const v = take<std::uint64_t>();
        return std::bit_cast<double>(swapped_ ? __builtin_bswap64(v) : v);
    }

    std::span<std::uint8_t const> bytes_;
    std::size_t at_ = 0, row_;
    bool swapped_ = false;
    geometry_builder& to_;
};

class writer {
public:
    void null() {
        validity_.push_back(0);
        close_row();
    }
    void begin(family kind) {
        kind_ = kind;
        validity_.push_back(1);
        header(kind);
        row_count_ = inner_count_ = none;
        if (is_multi(kind) || kind == family::polygon) row_count_ = new_count();
        if (kind == family::linestring) inner_count_ = new_count();
        vertices_ = 0;
    }
    void begin_polygon() {
        add(row_count_);
        header(family::polygon);
        polygon_count_ = new_count();
    }
    void begin_ring() {
        add(kind_ == family::multipolygon ? polygon_count_ : row_count_);
        inner_count_ = new_count();
    }
    void begin_line() {
        add(row_count_);
        header(family::linestring);
        inner_count_ = new_count();
    }
    void vertex(double x, double y) {
        if (kind_ == family::multipoint) add(row_count_), header(family::point);
        else if (inner_count_ != none) add(inner_count_);
        put(x), put(y);
        ++vertices_;
    }
    void end() {
        if (kind_ == family::point && vertices_ == 0) {
            put(std::numeric_limits<double>::quiet_NaN()), put(std::numeric_limits<double>::quiet_NaN());
        }
        close_row();
    }

    result<column<std::uint8_t>> take() {
        if (bytes_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            return fail(errc::unsupported, "to_wkb: {} bytes in one column; 2^31 - 1 at most", bytes_.size());
        std::vector<std::int32_t> const offsets(ends_.begin(), ends_.end());
        std::optional<buffer<std::uint8_t>> validity;
        std::vector<std::uint8_t> bits((validity_.size() + 7) / 8, 0);
        bool any_null = false;
        for (std::size_t i = 0; i < validity_.size(); ++i) {
            bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | validity_[i] << (i % 8));
            any_null |= validity_[i] == 0;
        }
        if (any_null) validity = buffer<std::uint8_t>::copy_of(bits);
        return column<std::uint8_t>::lists(buffer<std::uint8_t>::copy_of(bytes_),
                                           buffer<std::int32_t>::copy_of(offsets), std::move(validity));
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};

    void header(family kind) {
        bytes_.push_back(1);
        put(static_cast<std::uint32_t>(kind));
    }
    std::size_t new_count() {
        auto const at = bytes_.size();
        put(std::uint32_t{0});
        return at;
    }
    void add(std::size_t count_at) {
        for (int i = 0; i < 4; ++i)
            if (++bytes_[count_at + static_cast<std::size_t>(i)] != 0) return;
    }
    template <class T>
    void put(T v) {
        using raw = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
        auto const bits = std::bit_cast<raw>(v);
        for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
    }
    void close_row() { ends_.push_back(static_cast<std::int64_t>(bytes_.size())); }

    std::vector<std::uint8_t> bytes_;
    std::vector<std::int64_t> ends_{0};
    std::vector<std::uint8_t> validity_;
    family kind_ = family::point;
    std::size_t row_count_ = none, polygon_count_ = none, inner_count_ = none, vertices_ = 0;
};

}  // namespace

result<void> read_wkb_row(std::span<std::uint8_t const> bytes, geometry_builder& to) {
    return reader{bytes, to.rows(), to}.read();
}

result<geometries> from_wkb(column<std::uint8_t> const& rows) {
    if (rows.where() == residency::device) return fail(errc::unsupported, "from_wkb: the bytes are on a device");
    if (!rows.offsets()) return fail(errc::invalid_argument, "from_wkb: a column of bytes without offsets");
    geometry_builder to;
    auto const* const at = rows.offsets()->data();
    auto const size = static_cast<std::int64_t>(rows.values().size());
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        if (rows.is_null(i)) {
            to.null();
            continue;
        }
        if (at[i] < 0 || at[i + 1] < at[i] || at[i + 1] > size)
            return fail(errc::corrupt, "WKB, row {}: bytes {} to {} of {}", i, at[i], at[i + 1], size);
        std::span const bytes{rows.values().data() + at[i], static_cast<std::size_t>(at[i + 1] - at[i])};
        KILN_CHECK((reader{bytes, i, to}.read()));
    }
    return to.finish();
}

result<geometries> from_wkb(std::span<std::span<std::uint8_t const> const> rows) {
    geometry_builder to;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].empty()) to.null();
        else KILN_CHECK((reader{rows[i], i, to}.read()));
    }
    return to.finish();
}

result<column<std::uint8_t>> to_wkb(geometries const& from) {
    if (from.where() == residency::device) return fail(errc::unsupported, "to_wkb: the geometries are on a device");
    writer to;
    KILN_CHECK(visit_rows(from, to));
    return to.take();
}

}  // namespace kiln::spatial
