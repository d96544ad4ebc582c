// SPDX-License-Identifier: Apache-2.0
//
// Primitives before they are needed, also with types and operators that do not ship: what handles' make() takes, as something that
// can be demanded, planned for, and made for other architectures. Looks at nothing and compiles nothing; what cannot be right shows in
// the status of the demand.
//
//     kiln::op const cap{"a + b > 100 ? 100 : a + b"};
//     kiln::demand({kiln::prims::wanted_scan(kiln::prims::scan_form::inclusive, kiln::prims::type_of(kiln::scalar::i32), cap)});
#pragma once

#include <kiln/demand.hpp>
#include <kiln/prims/untyped.hpp>

namespace KILN_PUBLIC kiln {
namespace prims {

[[nodiscard]] want wanted_scan(scan_form form, element_type type, op const& by);
[[nodiscard]] want wanted_reduce(element_type type, op const& by);
[[nodiscard]] want wanted_segmented_reduce(element_type type, op const& by);
// Without an operator a mask decides.
[[nodiscard]] want wanted_select(select_form form, element_type type, op const* by);
[[nodiscard]] want wanted_bounds(bound_side side, element_type type, op const& by);
// A value type of size 0: keys alone.
[[nodiscard]] want wanted_radix_sort(element_type key, element_type value, sort_order order);
[[nodiscard]] want wanted_merge_sort(element_type key, element_type value, op const& by);
[[nodiscard]] want wanted_unique_by_key(element_type key, element_type value, op const& by);
[[nodiscard]] want wanted_transform(element_type from, element_type to, op const& by);
[[nodiscard]] want wanted_gather(element_type type, element_type index);

}  // namespace prims
}  // namespace kiln
