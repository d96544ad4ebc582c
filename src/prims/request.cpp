// SPDX-License-Identifier: Apache-2.0
#include "prims/request.hpp"

#include "prims/operator_text.hpp"

#include <array>

namespace kiln::prims {

namespace {

// Values that are moved and never looked at: the type is only a size and an alignment.
element_type moved(element_type const& type) {
    if (type.size == 0) return {};
    if (type.align >= type.size || type.kind != scalar::record) {
        switch (type.size) {
            case 1: return type_of(scalar::u8);
            case 2: return type_of(scalar::u16);
            case 4: return type_of(scalar::u32);
            case 8: return type_of(scalar::u64);
            default: break;
        }
    }
    element_type out{scalar::record, "kiln_moved", {}, type.size, type.align};
    out.definition =
        fmt::format("struct alignas({}) kiln_moved {{ unsigned char bytes[{}]; }};", type.align, type.size);
    return out;
}

std::string moved_label(element_type const& type) {
    return type.kind != scalar::record ? std::string{kiln::name_of(type.kind)} : fmt::format("{}bytes", type.size);
}

// A built-in operator by its name, any other by a part of its digest.
std::string label_of(op const& by) {
    if (by.kind() == op::form::builtin) return by.name() == "plus" ? "sum" : by.name();
    return "op" + operator_digest(by).hex().substr(0, 8);
}

bool is_builtin(op const& by, std::string_view name) { return by.kind() == op::form::builtin && by.name() == name; }

std::string suffix_unless(op const& by, std::string_view usual) {
    return is_builtin(by, usual) ? std::string{} : "_" + label_of(by);
}

void add_range(request& r, item_range items) {
    if (items == item_range::ordinary) return;
    r.defines.emplace_back("KILN_PRIM_WIDE");
    r.name += "_wide";
}

}  // namespace

element_type shape_of(element_type const& type) {
    std::string_view const word = type.align >= 8   ? "kiln_u64"
                                  : type.align >= 4 ? "kiln_u32"
                                  : type.align >= 2 ? "kiln_u16"
                                                    : "kiln_u8";
    auto const width = std::clamp<std::size_t>(type.align, 1, 8);  // of no alignment, too: check() refuses it by name
    element_type out{scalar::record, "kiln_shape", {}, type.size, type.align};
    out.definition =
        fmt::format("struct alignas({}) kiln_shape {{ {} words[{}]; }};", type.align, word, type.size / width);
    return out;
}

request shape_of(request what) {
    bool const is_looked_at = what.by && what.value.kind == scalar::record && what.what != algorithm::transform;
    if (is_looked_at) what.value = shape_of(what.value);
    if (what.by) what.by = op{"true"};
    return what;
}

std::string_view name_of(algorithm what) noexcept {
    constexpr std::array<std::string_view, 10> names{"scan",      "reduce",     "segmented_reduce", "select",
                                                     "bounds",    "radix_sort", "merge_sort",       "unique",
                                                     "transform", "gather"};
    return names[static_cast<std::size_t>(what)];
}

std::vector<std::string> all_kernels(algorithm what) {
    switch (what) {
        case algorithm::scan: return {"kiln_scan_init", "kiln_scan_exclusive", "kiln_scan_inclusive"};
        case algorithm::reduce: return {"kiln_reduce_partial", "kiln_reduce_last"};
        case algorithm::segmented_reduce:
            return {"kiln_segmented_reduce_block", "kiln_segmented_reduce_8", "kiln_segmented_reduce_32"};
        case algorithm::select: return {"kiln_select_init", "kiln_select"};
        case algorithm::bounds:
            return {"kiln_lower_bound", "kiln_lower_bound_many", "kiln_upper_bound", "kiln_upper_bound_many",
                    "kiln_bound_sample"};
        case algorithm::radix_sort:
            return {"kiln_radix_histogram", "kiln_radix_sums", "kiln_radix_sweep", "kiln_radix_small"};
        case algorithm::merge_sort:
            return {"kiln_merge_sort_tiles", "kiln_merge_sort_partition", "kiln_merge_sort_merge"};
        case algorithm::unique: return {"kiln_unique_init", "kiln_unique"};
        case algorithm::transform: return {"kiln_transform"};
        case algorithm::gather: return {"kiln_gather"};
    }
    return {};
}

request scan_request(scan_form form, element_type type, op const& by) {
    bool const exclusive = form == scan_form::exclusive;
    request r{.what = algorithm::scan, .name = {}, .value = std::move(type)};
    r.name =
        fmt::format("{}_scan_{}{}", exclusive ? "exclusive" : "inclusive", r.value.label(), suffix_unless(by, "plus"));
    r.kernels = {"kiln_scan_init", exclusive ? "kiln_scan_exclusive" : "kiln_scan_inclusive"};
    r.by = by;
    return r;
}

request reduce_request(element_type type, op const& by) {
    request r{.what = algorithm::reduce,
              .name = fmt::format("reduce_{}_{}", label_of(by), type.label()),
              .value = std::move(type)};
    r.kernels = all_kernels(r.what);
    r.by = by;
    return r;
}

request segmented_reduce_request(element_type type, op const& by) {
    request r{.what = algorithm::segmented_reduce,
              .name = fmt::format("segmented_reduce_{}_{}", label_of(by), type.label()),
              .value = std::move(type)};
    r.kernels = all_kernels(r.what);
    r.by = by;
    return r;
}

request select_request(select_form form, element_type type, op const* by) {
    request r{.what = algorithm::select, .name = {}, .value = type};
    r.kernels = all_kernels(r.what);
    bool const indices = form == select_form::indices;
    if (indices || by == nullptr) r.value = moved(type);
    if (indices) r.defines.emplace_back("KILN_SELECT_INDICES");
    if (by != nullptr) {
        r.defines.emplace_back("KILN_SELECT_IF");
        r.by = *by;
    }
    r.name = fmt::format("select{}_{}{}", by != nullptr ? "_if" : "", indices ? "" : "items_", moved_label(type));
    if (by != nullptr) r.name += "_" + label_of(*by);
    return r;
}

request bounds_request(bound_side side, element_type type, op const& by) {
    bool const lower = side == bound_side::lower;
    request r{.what = algorithm::bounds, .name = {}, .value = std::move(type)};
    r.name = fmt::format("{}_bound_{}{}", lower ? "lower" : "upper", r.value.label(), suffix_unless(by, "less"));
    std::string const kernel = lower ? "kiln_lower_bound" : "kiln_upper_bound";
    r.kernels = {kernel, kernel + "_many", "kiln_bound_sample"};
    r.by = by;
    return r;
}

request radix_sort_request(element_type key, element_type value, sort_order order, item_range items) {
    request r{.what = algorithm::radix_sort, .name = "radix_sort_" + key.label(), .value = key, .mapped = moved(value)};
    r.kernels = all_kernels(r.what);
    if (value.size != 0) {
        r.name += "_" + moved_label(value);
        r.defines.emplace_back("KILN_SORT_PAIRS");
    }
    if (order == sort_order::descending) {
        r.name += "_descending";
        r.defines.emplace_back("KILN_SORT_DESCENDING");
    }
    add_range(r, items);
    return r;
}

request merge_sort_request(element_type key, element_type value, op const& by, item_range items) {
    request r{.what = algorithm::merge_sort, .name = "merge_sort_" + key.label(), .value = key, .mapped = moved(value)};
    r.kernels = all_kernels(r.what);
    r.by = by;
    if (value.size != 0) {
        r.name += "_" + moved_label(value);
        r.defines.emplace_back("KILN_SORT_PAIRS");
    }
    r.name += suffix_unless(by, "less");
    add_range(r, items);
    return r;
}

request unique_request(element_type key, element_type value, op const& by, item_range items) {
    request r{.what = algorithm::unique, .name = {}, .value = key, .mapped = moved(value)};
    r.name = fmt::format("unique_by_key_{}_{}{}", key.label(), moved_label(value), suffix_unless(by, "equal"));
    r.kernels = all_kernels(r.what);
    r.by = by;
    add_range(r, items);
    return r;
}

request transform_request(element_type from, element_type to, op const& by) {
    request r{.what = algorithm::transform, .name = {}, .value = from, .mapped = to};
    r.name = fmt::format("transform_{}_{}_{}", from.label(), to.label(), label_of(by));
    r.kernels = all_kernels(r.what);
    r.by = by;
    return r;
}

request gather_request(element_type type, element_type index) {
    request r{.what = algorithm::gather, .name = {}, .value = moved(type), .mapped = moved(index)};
    r.name = fmt::format("gather_{}_{}", moved_label(type), index.label());
    r.kernels = all_kernels(r.what);
    return r;
}

}  // namespace kiln::prims
