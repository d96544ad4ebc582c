// SPDX-License-Identifier: Apache-2.0
#include "prims/request.hpp"

#include "prims/catalogue.hpp"
#include "prims/operator_text.hpp"
#include "prims/pack.hpp"

#include <kiln/prims/run.hpp>
#include <kiln/prims/sum.hpp>

#include <gmock/gmock.h>

#include <set>

namespace kiln::prims {

namespace {

using testing::HasSubstr;
using testing::Not;

TEST(catalogue, holds_the_eighteen_of_the_plan_and_what_operations_launch_by_name) {
    std::vector<std::string> names;
    for (auto const& s : catalogue()) names.push_back(s.name);
    EXPECT_THAT(
        names, testing::UnorderedElementsAre(
                   "exclusive_scan_i32", "exclusive_scan_i64", "select_i32", "select_i64", "reduce_sum_f64",
                   "reduce_sum_i32", "segmented_reduce_sum_f64", "segmented_reduce_min_f64", "segmented_reduce_max_f64",
                   "lower_bound_i32", "lower_bound_u64", "upper_bound_i32", "upper_bound_u64", "radix_sort_i32_i32",
                   "radix_sort_u64_i32", "merge_sort_u64_i32", "unique_by_key_i32_i32", "unique_by_key_u64_i32",
                   "inclusive_scan_i32", "inclusive_scan_i64", "radix_sort_i32", "radix_sort_u64", "merge_sort_u64"));
    auto const* const sort = find_spec("radix_sort_u64_i32");
    ASSERT_NE(sort, nullptr);
    EXPECT_THAT(sort->types, testing::ElementsAre("u64", "i32"));
    EXPECT_EQ(find_spec("nothing"), nullptr);
}

TEST(request, the_key_follows_what_matters_and_nothing_else) {
    auto const i32 = type_of(scalar::i32);
    auto const key = [](request const& r) { return family_of(r, part::whole); };
    EXPECT_EQ(key(scan_request(scan_form::exclusive, i32, op{"a + s"}.with(1))),
              key(scan_request(scan_form::exclusive, i32, op{"a + s"}.with(2))));
    EXPECT_NE(key(scan_request(scan_form::exclusive, i32, op{"a + s"}.with(1))),
              key(scan_request(scan_form::exclusive, i32, op{"a + s"}.with(1.0))));
    EXPECT_NE(key(scan_request(scan_form::exclusive, i32, plus)), key(scan_request(scan_form::inclusive, i32, plus)));
    EXPECT_NE(key(scan_request(scan_form::exclusive, i32, plus)),
              key(scan_request(scan_form::exclusive, i32, kiln::max)));
    EXPECT_EQ(family_of(scan_request(scan_form::exclusive, i32, plus), part::skeleton),
              family_of(scan_request(scan_form::inclusive, i32, kiln::max), part::skeleton));
}

TEST(request, values_that_are_only_moved_share_kernels_by_size) {
    auto const key = [](element_type v) {
        return family_of(
            radix_sort_request(type_of(scalar::u32), std::move(v), sort_order::ascending, item_range::ordinary),
            part::whole);
    };
    EXPECT_EQ(key(type_of(scalar::i32)), key(type_of(scalar::f32)));
    EXPECT_NE(key(type_of(scalar::i32)), key(type_of(scalar::f64)));
    EXPECT_NE(key(type_of(scalar::i32)), key({}));
}

TEST(request, structs_of_one_size_and_alignment_share_a_template) {
    element_type const tally{scalar::record, "tally", "struct tally { double total; int count, most; };", 16, 8};
    element_type const span{scalar::record, "span", "struct span { long long from, to; };", 16, 8};
    element_type const four{scalar::record, "four", "struct four { float x, y, z, w; };", 16, 4};
    auto const skeleton = [](element_type const& t, std::string text) {
        return family_of(scan_request(scan_form::exclusive, t, op{std::move(text)}), part::skeleton);
    };
    EXPECT_EQ(skeleton(tally, "a"), skeleton(span, "b"));
    EXPECT_NE(skeleton(tally, "a"), skeleton(four, "a"));
    EXPECT_EQ(skeleton(tally, "a"), skeleton(tally, "__half2float(__float2half(1)) > 0 ? a : b"));
    EXPECT_NE(family_of(scan_request(scan_form::exclusive, tally, op{"a"}), part::whole),
              family_of(scan_request(scan_form::exclusive, span, op{"a"}), part::whole));
    auto const of_numbers = scan_request(scan_form::exclusive, type_of(scalar::i32), op{"a"});
    EXPECT_EQ(shape_of(of_numbers).value, of_numbers.value);
    EXPECT_EQ(shape_of(shape_of(tally)), shape_of(tally));
}

TEST(request, radix_sorts_that_ship_are_told_once) {
    std::set<base::digest> families;
    for (auto const& r : named_requests()) families.insert(family_of(r.what, part::whole));
    auto const named = families.size();
    auto const sorts = sort_requests();
    for (auto const& r : sorts) families.insert(family_of(r, part::whole));
    EXPECT_EQ(families.size(), named + sorts.size());
    EXPECT_EQ(sorts.size(), 12 * 5 - 4U) << "but the four that have names";
}

TEST(request, sizes_beyond_the_limits_are_refused) {
    element_type const big{scalar::record, "big", "struct big { char c[33]; };", 33, 1};
    EXPECT_EQ(check(scan_request(scan_form::exclusive, big, op{"a"})).error().code(), errc::invalid_argument);
    element_type const point{scalar::record, "point", "struct point { float x, y; };", 8, 4};
    EXPECT_TRUE(check(scan_request(scan_form::exclusive, point, op{"a"})));
    EXPECT_THAT(check(scan_request(scan_form::exclusive, point, plus)).error().message(), HasSubstr("kiln::op"));
    EXPECT_THAT(check(radix_sort_request(point, {}, sort_order::ascending, item_range::ordinary)).error().message(),
                HasSubstr("merge_sort"));
}

TEST(request, alignments_that_no_type_has_are_refused) {
    for (std::size_t const align : {0, 3, 8, 16}) {
        element_type const odd{scalar::record, "odd", "struct odd { float x, y, z; };", 12, align};
        auto const r = scan_request(scan_form::exclusive, odd, op{"a"});
        EXPECT_THAT(check(r).error().message(), HasSubstr("divides the size")) << align;
        (void)family_of(r, part::skeleton);  // asked for before a request is checked
    }
}

TEST(request, names_of_kilns_own_are_refused_and_its_types_are_not) {
    auto const check_text = [](std::string text) {
        return check(scan_request(scan_form::exclusive, type_of(scalar::i32), op{std::move(text)}));
    };
    EXPECT_THAT(check_text("kiln_operator(a, b, 0)").error().message(), HasSubstr("'kiln_operator'"));
    EXPECT_THAT(check_text("a + kiln_i").error().message(), HasSubstr("'kiln_i'"));
    EXPECT_TRUE(check_text("kiln_value(kiln_i64(a) * kiln_u8(b))"));
    EXPECT_TRUE(check_text("my_kiln_name + a"));
}

TEST(operator_text, keeps_the_users_lines_and_names_their_place) {
    auto const text =
        operator_text(scan_request(scan_form::exclusive, type_of(scalar::i32), op{"a +\nb // sum"}), linkage::external);
    EXPECT_THAT(text, HasSubstr("#line 1 \"operator\"\na +\nb // sum\n"));
    EXPECT_THAT(
        text,
        HasSubstr(
            "extern \"C\" __device__ kiln_value kiln_operator(kiln_value a, kiln_value b, void const* kiln_captured)"));
    EXPECT_THAT(text, Not(HasSubstr("auto const& s")));
}

TEST(operator_text, fits_the_algorithm) {
    auto const i32 = type_of(scalar::i32);
    op const positive{"a > s"};
    auto const condition = positive.with(1.5);
    auto const select = operator_text(select_request(select_form::items, i32, &condition), linkage::local);
    EXPECT_THAT(select, HasSubstr("bool kiln_operator(kiln_value a, void const* kiln_captured)"));
    EXPECT_THAT(select, HasSubstr("auto const& s = *static_cast<kiln_f64 const*>(kiln_captured);"));
    auto const transform = operator_text(transform_request(i32, type_of(scalar::f32), op{"a * 0.5f"}), linkage::local);
    EXPECT_THAT(transform, HasSubstr("kiln_mapped kiln_operator(kiln_value a, void const*"));
}

TEST(half, rounds_to_nearest_even_both_ways) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        f16 const h{static_cast<std::uint16_t>(bits)};
        bool const nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
        if (!nan) {
            ASSERT_EQ(to_f16(to_float(h)).bits, h.bits) << bits;
        }
        bf16 const b{static_cast<std::uint16_t>(bits)};
        bool const bnan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
        if (!bnan) {
            ASSERT_EQ(to_bf16(to_float(b)).bits, b.bits) << bits;
        }
    }
    EXPECT_EQ(to_f16(65519.0F).bits, 0x7bff);
    EXPECT_EQ(to_f16(65520.0F).bits, 0x7c00);
    EXPECT_EQ(to_f16(1.0F + 0.00048828125F).bits, 0x3c00);  // a tie goes to the even one
    EXPECT_EQ(to_bf16(1.00390625F).bits, 0x3f80);
}

TEST(recipe, a_captured_value_is_kept_as_its_type) {
    auto const i32 = type_of(scalar::i32);
    auto const r = scan_request(scan_form::exclusive, i32, op{"a + b > s ? s : a + b"}.with(100));
    auto const kept = recipe_of(r);
    auto const back = request_of(kept).value();
    EXPECT_EQ(back.by->state_type(), r.by->state_type());
    EXPECT_EQ(family_of(back, part::whole), family_of(r, part::whole)) << "the same artifact";
    EXPECT_EQ(recipe_of(back), kept);
    EXPECT_EQ(recipe_of(scan_request(scan_form::exclusive, i32, op{"a + b > s ? s : a + b"}.with(7))), kept)
        << "another value is no other recipe";
    EXPECT_NE(recipe_of(scan_request(scan_form::exclusive, i32, op{"a + b > s ? s : a + b"}.with(7L))), kept);

    auto damaged = kept;
    damaged.body.pop_back();
    EXPECT_EQ(request_of(damaged).error().code(), errc::corrupt);
    auto newer = kept;
    newer.body[0] = std::byte{3};
    EXPECT_EQ(request_of(newer).error().code(), errc::unsupported);
    auto const plain = recipe_of(scan_request(scan_form::exclusive, i32, op{"a * b % 7"}));
    EXPECT_EQ(plain.body[0], std::byte{1}) << "as older versions wrote it";
    EXPECT_EQ(request_of(plain)->by->text(), "a * b % 7");
}

TEST(operations, every_name_an_operation_needs_is_what_its_kernels_are_called) {
    auto const needs = [](operation const& what, std::size_t variant, scalar type) {
        return needs_of(what.variants()[variant], type).front();
    };
    EXPECT_EQ(needs(sum_operation, 0, scalar::f64),
              reduce_request(kiln::type_of<two_floats>(), sum_of_two_floats()).name);
    EXPECT_EQ(needs(sum_operation, 1, scalar::f64), reduce_request(type_of(scalar::f64), plus).name);
}

// Whoever warms an operation up by its name gets something.
TEST(operations, every_gpu_variant_needs_something_that_has_a_name) {
    for (auto const* const what : operations()) {
        for (auto const& v : what->variants()) {
            if (v.where != place::gpu || v.needs.find("{type}") == v.needs.npos) continue;
            std::vector<std::string> known;
            for (int kind = 0; kind <= static_cast<int>(scalar::record); ++kind) {
                auto const type = static_cast<scalar>(kind);
                for (auto const& name : needs_of(v, type))
                    if (v.types.has(type) && find_request(name) != nullptr) known.push_back(name);
            }
            EXPECT_FALSE(known.empty()) << what->name() << " " << v.name << ": " << v.needs;
        }
    }
    EXPECT_NE(
        find_request(radix_sort_request(type_of(scalar::i32), {}, sort_order::ascending, item_range::ordinary).name),
        nullptr)
        << "run::radix_sort sorts keys alone";
}

TEST(operations, a_term_is_narrowed_only_if_it_is_an_expression_of_a) {
    EXPECT_TRUE(can_narrow(op{"exp(-a * a)"}));
    EXPECT_FALSE(can_narrow(op{"a * s"}.with(2.0)));
    EXPECT_FALSE(can_narrow(op::function("f", "__device__ double f(double a) { return a; }")));
    EXPECT_TRUE(
        check(transform_request(type_of(scalar::f64), kiln::type_of<two_floats>(), in_floats(op{"exp(-a * a)"}))));
}

TEST(operations, reduce_and_sum_run_on_the_cpu_without_a_gpu) {
    scoped_execution_mode const here{execution_mode::cpu};
    auto const in = buffer<double>::copy_of(std::vector<double>{1.5, 2.5, -1});
    EXPECT_EQ(*run::sum<double>{}(nullptr, in)->data(), 3.0);
    EXPECT_EQ(*run::reduce<double>(kiln::max, -5)(nullptr, in)->data(), 2.5);
    EXPECT_EQ(*run::reduce<double>(plus, 10)(nullptr, in.part(1, 0))->data(), 10);
    EXPECT_EQ(*run::reduce<double>(plus, 10)(nullptr, in.part(1, 2))->data(), 11.5);
    auto const refused = run::sum<double>{op{"exp(-a * a)"}, precision_class::metric}(nullptr, in);
    EXPECT_THAT(refused.error().message(), HasSubstr("only a GPU can run"));
}

}  // namespace

}  // namespace kiln::prims
