// SPDX-License-Identifier: Apache-2.0
#include "spatial/choose.hpp"

#include "spatial/operations.hpp"
#include "spatial/row_choice.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

template <class T>
result<void> check_place(geometries const& from, buffer<T> const& with) {
    if (with.empty() || from.empty() || on_device(with.where()) == on_device(from.where())) return {};
    return fail(errc::invalid_argument, "geometries: what rows are chosen by must be where the geometries are");
}

result<void> check_numbers(geometries const& from, buffer<std::int32_t> const& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (auto const row = rows.data()[i]; row < 0 || static_cast<std::size_t>(row) >= from.rows())
            return fail(errc::invalid_argument, "gather: number {} is row {}, of {} rows", i, row, from.rows());
    return {};
}

}  // namespace

result<geometries> memory_of(geometries const& of) {
    if (!of.chosen()) return of;
    return of.kind() == family::mixed ? geometries::make(of.mixed()) : geometries::make(of.parts());
}

result<geometries> rows_of(queue& on, geometries const& from, buffer<std::int32_t> const& rows) {
    if (!from.chosen()) return from.view(rows);
    KILN_TRY(auto const memory, memory_of(from));
    KILN_TRY(auto through, on.room<std::int32_t>(rows.size()));
    KILN_CHECK(on.launch(rows_through_view{rows.data(), from.chosen()->data(), through.data()}, rows.size()));
    return memory.view(through);
}

result<geometries> rows_kept(queue& on, geometries const& from, buffer<std::uint8_t> const& keep) {
    auto const n = from.rows();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_kept{keep.data(), raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto chosen, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(list_kept{raw(place), from.chosen() ? from.chosen()->data() : nullptr, chosen.data()}, n));
    KILN_TRY(auto const memory, memory_of(from));
    return memory.view(chosen);
}

result<geometries> gather(stream_ref on, geometries const& from, buffer<std::int32_t> const& rows) {
    KILN_CHECK(check_place(from, rows));
    if (!on_device(from.where())) {
        KILN_CHECK(check_numbers(from, rows));
        return from.view(rows);
    }
    KILN_TRY(auto const call, runtime::operation_call::begin(choose_operation, facts_of(from)));
    device_queue there{on, from.device()};
    return rows_of(there, from, rows);
}

result<geometries> filter_sync(stream_ref on, geometries const& from, buffer<std::uint8_t> const& keep) {
    if (keep.size() != from.rows())
        return fail(errc::invalid_argument, "filter: {} flags of {} rows", keep.size(), from.rows());
    KILN_CHECK(check_place(from, keep));
    if (!on_device(from.where())) {
        host_queue here;
        return rows_kept(here, from, keep);
    }
    KILN_TRY(auto const call, runtime::operation_call::begin(choose_operation, facts_of(from)));
    device_queue there{on, from.device()};
    return rows_kept(there, from, keep);
}

}  // namespace kiln::spatial
