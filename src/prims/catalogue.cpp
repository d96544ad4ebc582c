// SPDX-License-Identifier: Apache-2.0
#include "prims/catalogue.hpp"

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

std::vector<request> template_requests() {
    std::vector<request> out;
    auto const v = type_of(scalar::u32);
    for (auto const kind : {scalar::i32, scalar::u32, scalar::i64, scalar::u64, scalar::f32, scalar::f64}) {
        auto const t = type_of(kind);
        op const condition{"true"};
        out.push_back(scan_request(scan_form::exclusive, t, plus));
        out.push_back(reduce_request(t, plus));  // and segmented
        out.push_back(select_request(select_form::items, t, &condition));
        out.push_back(bounds_request(bound_side::lower, t, less));
        out.push_back(merge_sort_request(t, v, less, item_range::ordinary));
        out.push_back(unique_request(t, v, equal, item_range::ordinary));
    }
    return out;
}

}  // namespace kiln::prims
