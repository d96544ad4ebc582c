// SPDX-License-Identifier: Apache-2.0
#include "prims/catalogue.hpp"

#include <algorithm>

namespace kiln::prims {

namespace {

class builder {
public:
    void add(std::string_view kind, std::vector<scalar> types, std::string_view by, request what) {
        kiln::spec about{.name = what.name,
                         .kind = std::string{kind},
                         .types = {},
                         .by = std::string{by},
                         .kernels = what.kernels,
                         .pack = "prims"};
        for (auto const t : types) about.types.emplace_back(kiln::name_of(t));
        all_.push_back({std::move(about), std::move(what)});
    }
    [[nodiscard]] std::vector<named_request> take() && { return std::move(all_); }

private:
    std::vector<named_request> all_;
};

std::vector<named_request> build() {
    builder out;
    for (auto const t : {scalar::i32, scalar::i64}) {
        out.add("exclusive_scan", {t}, "plus", scan_request(scan_form::exclusive, type_of(t), plus));
    }
    for (auto const t : {scalar::i32, scalar::i64}) {
        out.add("inclusive_scan", {t}, "plus", scan_request(scan_form::inclusive, type_of(t), plus));
    }
    for (auto const t : {scalar::i32, scalar::i64})
        out.add("select", {t}, "", select_request(select_form::indices, type_of(t), nullptr));
    for (auto const t : {scalar::f64, scalar::i32}) out.add("reduce", {t}, "plus", reduce_request(type_of(t), plus));
    for (auto const& by : {plus, kiln::min, kiln::max}) {
        op const named = by;
        out.add("segmented_reduce", {scalar::f64}, named.name(), segmented_reduce_request(type_of(scalar::f64), by));
    }
    for (auto const side : {bound_side::lower, bound_side::upper}) {
        for (auto const t : {scalar::i32, scalar::u64}) {
            out.add(side == bound_side::lower ? "lower_bound" : "upper_bound", {t}, "less",
                    bounds_request(side, type_of(t), less));
        }
    }
    auto const i32 = type_of(scalar::i32);
    auto const none = element_type{};  // keys alone
    for (auto const t : {scalar::i32, scalar::u64}) {
        out.add("radix_sort", {t}, "",
                radix_sort_request(type_of(t), none, sort_order::ascending, item_range::ordinary));
        out.add("radix_sort", {t, scalar::i32}, "",
                radix_sort_request(type_of(t), i32, sort_order::ascending, item_range::ordinary));
    }
    out.add("merge_sort", {scalar::u64}, "less",
            merge_sort_request(type_of(scalar::u64), none, less, item_range::ordinary));
    out.add("merge_sort", {scalar::u64, scalar::i32}, "less",
            merge_sort_request(type_of(scalar::u64), i32, less, item_range::ordinary));
    for (auto const t : {scalar::i32, scalar::u64}) {
        out.add("unique_by_key", {t, scalar::i32}, "equal",
                unique_request(type_of(t), i32, equal, item_range::ordinary));
    }
    return std::move(out).take();
}

}  // namespace

std::vector<named_request> const& named_requests() {
    static auto const all = build();
    return all;
}

request const* find_request(std::string_view name) {
    for (auto const& r : named_requests()) {
        if (r.about.name == name) return &r.what;
    }
    return nullptr;
}

namespace {

// Numbers, and structs by size and alignment.
std::vector<element_type> template_types() {
    std::vector<element_type> out;
    for (auto const kind : {scalar::i32, scalar::u32, scalar::i64, scalar::u64, scalar::f32, scalar::f64})
        out.push_back(type_of(kind));
    struct shape {
        std::size_t size, align;
    };
    for (auto const& s : {shape{8, 4}, shape{12, 4}, shape{16, 4}, shape{16, 8}, shape{24, 8}, shape{32, 8}})
        out.push_back(shape_of(element_type{scalar::record, {}, {}, s.size, s.align}));
    return out;
}

}  // namespace

std::vector<request> template_requests() {
    std::vector<request> out;
    auto const v = type_of(scalar::u32);
    op const any{"true"};  // operators are no part of a template
    for (auto const& t : template_types()) {
        out.push_back(scan_request(scan_form::exclusive, t, any));
        out.push_back(reduce_request(t, any));  // and segmented
        out.push_back(select_request(select_form::items, t, &any));
        out.push_back(bounds_request(bound_side::lower, t, any));
        out.push_back(merge_sort_request(t, v, any, item_range::ordinary));
        out.push_back(unique_request(t, v, any, item_range::ordinary));
    }
    return out;
}

std::vector<request> sort_requests() {
    std::vector<request> out;
    auto const add = [&](scalar key, element_type const& value, sort_order order) {
        auto made = radix_sort_request(type_of(key), value, order, item_range::ordinary);
        auto const family = family_of(made, part::whole);
        bool const named = std::ranges::any_of(
            named_requests(), [&](named_request const& r) { return family_of(r.what, part::whole) == family; });
        if (!named) out.push_back(std::move(made));
    };
    for (auto const key : {scalar::i8, scalar::u8, scalar::i16, scalar::u16, scalar::i32, scalar::u32, scalar::i64,
                           scalar::u64, scalar::f16, scalar::bf16, scalar::f32, scalar::f64}) {
        for (auto const order : {sort_order::ascending, sort_order::descending}) {
            add(key, {}, order);
            add(key, type_of(scalar::u32), order);
        }
        add(key, type_of(scalar::u64), sort_order::ascending);
    }
    return out;
}

}  // namespace kiln::prims
