// SPDX-License-Identifier: Apache-2.0
//
// Arrays of geometries, one per row, in GeoArrow's layout: x and y of all vertices apart, int32 offsets around them, one
// validity bit per row. A row is a point, linestring, polygon, or several of one of these; a mixed array holds one child array
// per family. A null row is not an empty one, in every operation. Arrays are on the host or on a device, as buffers are
// (<kiln/runtime/buffer.hpp>): copies share memory, nothing moves by itself. Making one looks at sizes only; what is in it is
// checked by validate() (<kiln/spatial/validate.hpp>), which operations ask once of an array on the host; of one made on a device, only relations ask. Memory is not written to once an
// array is made of it: what was found out about rows is kept with the array and its copies, and not found out again.
//
//     namespace spatial = kiln::spatial;
//     auto const zones  = spatial::from_wkt(lines_of_a_file).value();                 // <kiln/spatial/wkt.hpp>
//     auto const places = spatial::geometries::points(xs, ys).value();
//     auto const there  = places.to_device(stream).value();
#pragma once

#include <kiln/runtime/buffer.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Numbered as in WKB. A mixed array is GeoArrow's dense union.
enum class family : std::uint8_t {
    point = 1,
    linestring,
    polygon,
    multipoint,
    multilinestring,
    multipolygon,
    mixed,
};
inline constexpr std::size_t single_families = 6;
[[nodiscard]] std::string_view name_of(family kind) noexcept;  // "multipolygon"
// How many levels of offsets lie between a row and its vertices: 0 for points, 3 for multipolygons.
[[nodiscard]] constexpr std::size_t levels_of(family kind) noexcept {
    switch (kind) {
        case family::linestring:
        case family::multipoint: return 1;
        case family::polygon:
        case family::multilinestring: return 2;
        case family::multipolygon: return 3;
        default: return 0;
    }
}
// 0 points, 1 lines, 2 areas; of one row of a mixed array, ask its child.
[[nodiscard]] constexpr int dimension_of(family kind) noexcept {
    return kind == family::mixed ? -1 : (static_cast<int>(kind) - 1) % 3;
}

// One family. Offsets go from the outside in: those of a multipolygon count polygons, then rings, then vertices. Each has one
// more element than what it divides, begins at 0 and never goes back. An empty point is one whose x and y are NaN.
struct geometry_parts {
    family kind = family::point;
    buffer<double> x, y;
    std::array<buffer<std::int32_t>, 3> offsets = {};
    std::optional<buffer<std::uint8_t>> validity = {};  // Arrow's bits: least significant first, 0 is null
};

class geometries;
struct row_facts;

// Rows of several families: row i is row `child_row[i]` of the child of family `type[i]`, which holds every row of its family.
// Null rows are marked here, never in a child.
struct mixed_parts {
    buffer<std::int8_t> type;  // a family's number
    buffer<std::int32_t> child_row;
    std::vector<geometries> children;  // at most one of each family, none of them mixed
    std::optional<buffer<std::uint8_t>> validity = {};
};

class geometries {
public:
    geometries() = default;  // no rows, of points

    // errc::invalid_argument where numbers of elements do not fit together or memory is in several places.
    [[nodiscard]] static result<geometries> make(geometry_parts parts);
    [[nodiscard]] static result<geometries> make(mixed_parts parts);
    [[nodiscard]] static result<geometries> points(buffer<double> x, buffer<double> y,
                                                   std::optional<buffer<std::uint8_t>> validity = {});

    [[nodiscard]] family kind() const noexcept { return kind_; }
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] bool empty() const noexcept { return rows_ == 0; }
    // Of the memory, all children together; rows that a view repeats count once.
    [[nodiscard]] std::size_t vertices() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] residency where() const noexcept { return where_; }
    [[nodiscard]] int device() const noexcept { return device_; }

    // The memory, without the view over it. Of single families, and of mixed arrays.
    [[nodiscard]] geometry_parts const& parts() const noexcept;
    [[nodiscard]] mixed_parts const& mixed() const noexcept;

    // Rows in another order, left out or repeated, without copying a vertex: row i is row `chosen[i]` of this array. Views of
    // views are one view. The numbers are not looked at here; they must be below rows().
    [[nodiscard]] result<geometries> view(buffer<std::int32_t> chosen) const;
    // Of a view: which row of the memory each row is.
    [[nodiscard]] std::optional<buffer<std::int32_t>> const& chosen() const noexcept { return chosen_; }
    // The same rows without a view: copied. Host only.
    [[nodiscard]] result<geometries> compact() const;

    // On the host only.
    [[nodiscard]] bool is_null(std::size_t row) const noexcept;
    [[nodiscard]] bool is_empty(std::size_t row) const noexcept;  // null rows are not empty
    [[nodiscard]] family kind_of(std::size_t row) const noexcept;

    // Queued; the same array where it is there already.
    [[nodiscard]] result<geometries> to_device(stream_ref on, int device = 0) const;
    [[nodiscard]] result<geometries> to_host_sync(stream_ref on) const;

private:
    friend struct row_facts;
    [[nodiscard]] std::size_t memory_row(std::size_t row) const noexcept;
    template <class Move>
    [[nodiscard]] result<geometries> moved(Move move) const;

    family kind_ = family::point;
    residency where_ = residency::host;
    int device_ = 0;
    std::size_t rows_ = 0;
    std::shared_ptr<geometry_parts const> parts_;
    std::shared_ptr<mixed_parts const> mixed_;
    std::optional<buffer<std::int32_t>> chosen_;
    std::shared_ptr<row_facts> facts_;
};

// Puts an array together row by row, on the host. Its family is that of the rows; of several, mixed; `fallback` where there
// is none. The calls of a polygon with a hole:
//
//     b.begin(family::polygon), b.begin_ring(), b.vertex(0, 0), ..., b.begin_ring(), ..., b.end();
class geometry_builder {
public:
    geometry_builder();
    geometry_builder(geometry_builder&&) noexcept;
    ~geometry_builder();

    void null();
    void begin(family kind);
    void begin_polygon();  // of a multipolygon
    void begin_ring();     // of a polygon
    void begin_line();     // of a multilinestring
    void vertex(double x, double y);
    void end();

    [[nodiscard]] std::size_t rows() const noexcept;
    // errc::invalid_argument with row and reason where calls came in no order that makes rows; errc::unsupported beyond 2^31 - 1 of
    // anything. The builder is empty afterwards.
    [[nodiscard]] result<geometries> finish(family fallback = family::point);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace spatial
}  // namespace kiln
