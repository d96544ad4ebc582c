// SPDX-License-Identifier: Apache-2.0
//
// One specialisation as a value: algorithm, types, operator. From here to the texts that are compiled, and to the name
// and the digest it is kept under. Knows nothing of engines, files or devices.
#pragma once

#include "base/check.hpp"
#include "base/digest.hpp"

#include <kiln/prims/untyped.hpp>
#include <kiln/unit.hpp>

#include <optional>

namespace kiln::prims {

enum class algorithm {
    scan,
    reduce,
    segmented_reduce,
    select,
    bounds,
    radix_sort,
    merge_sort,
    unique,
    transform,
    gather
};
// "scan", ...: also the name of its device text.
[[nodiscard]] std::string_view name_of(algorithm what) noexcept;

struct request {
    algorithm what = algorithm::scan;
    std::string name;  // "exclusive_scan_i32": for people, not part of the key
    element_type value;
    element_type mapped = {};  // values beside keys, results, indices; size 0: none
    std::vector<std::string> defines = {};
    std::vector<std::string> kernels = {};  // entry points, in the order the host side knows them by
    std::optional<op> by = {};
};

// The requests behind the handles. Types that are only moved are reduced to their size, so that they share kernels.
[[nodiscard]] request scan_request(scan_form form, element_type type, op const& by);
[[nodiscard]] request reduce_request(element_type type, op const& by);
[[nodiscard]] request segmented_reduce_request(element_type type, op const& by);
[[nodiscard]] request select_request(select_form form, element_type type, op const* by);
[[nodiscard]] request bounds_request(bound_side side, element_type type, op const& by);
[[nodiscard]] request radix_sort_request(element_type key, element_type value, sort_order order, item_range items);
[[nodiscard]] request merge_sort_request(element_type key, element_type value, op const& by, item_range items);
[[nodiscard]] request unique_request(element_type key, element_type value, op const& by, item_range items);
[[nodiscard]] request transform_request(element_type from, element_type to, op const& by);
[[nodiscard]] request gather_request(element_type type, element_type index);

// errc::invalid_argument for what cannot be right, before any compiler sees it: sizes, empty or huge text, names.
[[nodiscard]] result<void> check(request const& r);

// A struct as its template knows it: words of its alignment. All structs of one size and alignment share a template; only the
// operator looks inside.
[[nodiscard]] element_type shape_of(element_type const& type);
// The request a template is made for: structs reduced to their shape where an operator takes them, and any operator for all.
[[nodiscard]] request shape_of(request what);

enum class part {
    whole,     // with the operator inside
    skeleton,  // the operator left out, to be linked
};

enum class header_source {
    pinned,   // CCCL as carried by the library
    machine,  // CCCL of this machine's toolkit
    plain,    // the same without the trimmed front end
};

// The unit to compile. The operator's own unit is apart: a few lines that need no header.
[[nodiscard]] unit device_unit(request const& r, part which, header_source from);
[[nodiscard]] unit operator_unit(request const& r);
// Names of all kernels in the device text, whichever are used.
[[nodiscard]] std::vector<std::string> all_kernels(algorithm what);

// What it is, whoever compiles it for whatever target.
[[nodiscard]] base::digest family_of(request const& r, part which);

// The exported constant of every primitive.
inline constexpr std::string_view info_name = "kiln_prim_info";

}  // namespace kiln::prims
