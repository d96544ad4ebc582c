// SPDX-License-Identifier: Apache-2.0
#include "spatial_calls.hpp"

#include "base/check.hpp"

namespace kiln::cli::spatial_calls {

namespace {

constexpr std::array cpu_alone{variant{.name = "cpu", .where = place::cpu}};
constinit operation const bounds_call{"spatial_bounds", "spatial", {}, cpu_alone};
constinit operation const join_call{"spatial_join", "spatial", {}, cpu_alone};
constinit operation const nearest_call{"spatial_nearest", "spatial", {}, cpu_alone};
constinit operation const relate_call{"spatial_relate", "spatial", {}, cpu_alone};

template <class Call>
auto decided(operation const& what, std::size_t rows, Call call)
    -> result<answer<std::remove_cvref_t<decltype(*call())>>> {
    KILN_TRY(auto const how, decide(what, {.items = rows, .type = scalar::f64}));
    KILN_TRY(auto data, call());
    return answer<decltype(data)>{std::move(data), how};
}

}  // namespace

answers<std::optional<spatial::bounding_box>> bounds(spatial::geometries const& of) {
    return decided(bounds_call, of.rows(), [&] { return spatial::cpu::bounds(of); });
}
answers<spatial::row_pair> join(spatial::geometries const& left, spatial::geometries const& right,
                                spatial::predicate what) {
    return decided(join_call, left.rows() + right.rows(), [&] { return spatial::cpu::join(left, right, what); });
}
answers<spatial::row_pair> join_within(spatial::geometries const& left, spatial::geometries const& right,
                                       double distance) {
    return decided(join_call, left.rows() + right.rows(),
                   [&] { return spatial::cpu::join_within(left, right, distance); });
}
answers<spatial::near_pair> nearest(spatial::geometries const& left, spatial::geometries const& right,
                                    spatial::nearest_options const& how) {
    return decided(nearest_call, left.rows() + right.rows(), [&] { return spatial::cpu::nearest(left, right, how); });
}
answers<spatial::related_pair> relate_join(spatial::geometries const& left, spatial::geometries const& right) {
    return decided(relate_call, left.rows() + right.rows(), [&] { return spatial::cpu::relate_join(left, right); });
}
answers<std::optional<spatial::matrix>> relate(spatial::geometries const& left, spatial::geometries const& right) {
    return decided(relate_call, left.rows(), [&] { return spatial::cpu::relate(left, right); });
}

}  // namespace kiln::cli::spatial_calls
