// SPDX-License-Identifier: Apache-2.0
#include <kiln/prims/wants.hpp>

#include "prims/pack.hpp"

namespace kiln::prims {

namespace {

want want_of(request const& r) {
    return want::from_recipe(std::make_shared<engine_detail::recipe const>(recipe_of(r)));
}

}  // namespace

want wanted_scan(scan_form form, element_type type, op const& by) {
    return want_of(scan_request(form, std::move(type), by));
}
want wanted_reduce(element_type type, op const& by) { return want_of(reduce_request(std::move(type), by)); }
want wanted_segmented_reduce(element_type type, op const& by) {
    return want_of(segmented_reduce_request(std::move(type), by));
}
want wanted_select(select_form form, element_type type, op const* by) {
    return want_of(select_request(form, std::move(type), by));
}
want wanted_bounds(bound_side side, element_type type, op const& by) {
    return want_of(bounds_request(side, std::move(type), by));
}
want wanted_radix_sort(element_type key, element_type value, sort_order order) {
    return want_of(radix_sort_request(std::move(key), std::move(value), order, item_range::ordinary));
}
want wanted_merge_sort(element_type key, element_type value, op const& by) {
    return want_of(merge_sort_request(std::move(key), std::move(value), by, item_range::ordinary));
}
want wanted_unique_by_key(element_type key, element_type value, op const& by) {
    return want_of(unique_request(std::move(key), std::move(value), by, item_range::ordinary));
}
want wanted_transform(element_type from, element_type to, op const& by) {
    return want_of(transform_request(std::move(from), std::move(to), by));
}
want wanted_gather(element_type type, element_type index) {
    return want_of(gather_request(std::move(type), std::move(index)));
}

}  // namespace kiln::prims
