// SPDX-License-Identifier: Apache-2.0
#include "spatial/remade.hpp"

#include "spatial/choose.hpp"
#include "spatial/kept_layer.hpp"
#include "spatial/row_choice.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

std::uint32_t dimension_bit(family kind) noexcept { return 1U << dimension_of(kind); }

// A mixed array while its rows go from one child to another.
class remaking {
public:
    remaking(queue& on, geometries const& of) : on_{on}, of_{of}, g_{memory_rows_of(of)} {}

    result<void> begin() {
        KILN_TRY(to_.type, on_.room<std::int8_t>(of_.rows()));
        KILN_TRY(to_.child_row, on_.room<std::int32_t>(of_.rows()));
        return on_.launch(write_sources{g_, types(), to_.child_row.data()}, of_.rows());
    }
    result<void> take(row_maker const& by) {
        auto const rows = of_.rows();
        gone_ |= by.dimensions;
        KILN_TRY(auto place, on_.room<std::int64_t>(rows + 1));
        KILN_CHECK(on_.launch(count_of_dimensions{g_, by.dimensions, raw(place)}, rows));
        KILN_TRY(auto const total, on_.total_sync(place));
        if (total == 0) return {};
        KILN_TRY(auto chosen, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
        KILN_CHECK(on_.launch(list_kept{raw(place), g_.chosen, chosen.data()}, rows));
        KILN_TRY(auto const memory, memory_of(of_));
        KILN_TRY(auto const own, memory.view(std::move(chosen)));
        KILN_TRY(auto const made, by.make(on_, own));
        KILN_ASSERT(made.rows() == own.rows() && made.kind() != family::mixed && !made.chosen());
        auto parts = made.parts();
        parts.validity.reset();  // null rows were not among them
        auto const number = static_cast<signed char>(parts.kind);
        KILN_TRY(auto child, geometries::make(std::move(parts)));
        to_.children.push_back(std::move(child));
        return on_.launch(write_new_sources{g_, raw(place), number, types(), to_.child_row.data()}, rows);
    }
    result<geometries> finish() {
        if (to_.children.empty()) return of_;  // a view of rows that all stay
        for (auto const& child : of_.mixed().children)
            if ((dimension_bit(child.kind()) & gone_) == 0) to_.children.push_back(child);
        if (g_.validity != nullptr) {
            auto const bytes = (of_.rows() + 7) / 8;
            KILN_TRY(to_.validity, on_.room<std::uint8_t>(bytes));
            KILN_CHECK(on_.launch(write_validity{g_, to_.validity->data()}, bytes));
        }
        return geometries::make(std::move(to_));
    }

private:
    [[nodiscard]] signed char* types() const { return reinterpret_cast<signed char*>(to_.type.data()); }

    queue& on_;
    geometries const& of_;
    geometry_rows g_;
    mixed_parts to_;
    std::uint32_t gone_ = 0;
};

}  // namespace

std::uint32_t dimensions_in(geometries const& of) noexcept {
    if (of.kind() != family::mixed) return dimension_bit(of.kind());
    std::uint32_t out = 0;
    for (auto const& child : of.mixed().children)
        if (!child.empty()) out |= dimension_bit(child.kind());
    return out == 0 ? of_areas : out;
}

result<geometries> remade_rows(queue& on, geometries const& of, std::span<row_maker const> makers) {
    auto const there = dimensions_in(of);
    for (auto const& by : makers)
        if ((there & ~by.dimensions) == 0) return by.make(on, of);
    if (of.kind() != family::mixed) return of;
    remaking out{on, of};
    KILN_CHECK(out.begin());
    for (auto const& by : makers)
        if ((there & by.dimensions) != 0) KILN_CHECK(out.take(by));
    return out.finish();
}

}  // namespace kiln::spatial
