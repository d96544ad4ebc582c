// SPDX-License-Identifier: Apache-2.0
// The primitives as far as a machine without a GPU can tell: what ships, what links, what is refused.
#include "compile/engine_fixture.hpp"

#include "engine/engine_state.hpp"
#include "prims/catalogue.hpp"
#include "prims/prim_info.hpp"
#include "prims/routes.hpp"
#include "prims/shipped.hpp"

#include "base/embedded_file.hpp"

#include <gmock/gmock.h>
#include <kiln/prims/sum.hpp>

#include <atomic>
#include <set>
#include <thread>

namespace kiln::embedded {
std::span<file const> prims_products() noexcept;
}

namespace kiln::prims {

namespace {

using testing::HasSubstr;

class prims_compile : public testing_support::engine_fixture {
protected:
    result<made_artifact> get(engine& with, request const& what, prim_route route = prim_route::automatic) {
        return obtain(with, what, sm90(), closeness::exact, route, {});
    }
    static request scan_by(op const& by, scalar kind = scalar::i32) {
        return scan_request(scan_form::exclusive, type_of(kind), by);
    }

    // A toolkit that is nothing but these libraries.
    std::string libraries_alone(std::vector<std::string_view> const& which = {"libnvrtc", "libnvJitLink"}) {
        auto const from = std::filesystem::path{KILN_TEST_CUDA_PATH};
        auto const to = std::filesystem::path{path("bare")} / "lib64";
        base::make_directories(to).value();
        for (auto const* folder : {"lib64", "lib"}) {
            std::error_code none;
            for (auto const& file : std::filesystem::directory_iterator{from / folder, none}) {
                auto const name = file.path().filename().native();
                if (std::ranges::any_of(which, [&](std::string_view w) { return name.starts_with(w); })) {
                    std::filesystem::create_symlink(std::filesystem::canonical(file.path()), to / name, none);
                }
            }
        }
        return path("bare");
    }

    static void check_image(request const& what, artifact const& a) {
        for (auto const& kernel : what.kernels)
            EXPECT_NE(a.find_kernel(kernel), nullptr) << what.name << ": " << kernel;
        auto const* const constants = a.find_constant(info_name);
        ASSERT_NE(constants, nullptr) << what.name;
        EXPECT_TRUE(decode_info(constants->bytes)) << what.name;
    }
};

std::string_view embedded_cubins() { return embedded::find_file(embedded::prims_products(), "prims.kiln"); }
bool has_products() { return !embedded_cubins().empty(); }

// Known from what is in the bundle.
std::set<std::string> shipped_archs(engine& e, request const& r) {
    std::set<std::string> out;
    for (auto const& l : e.internals().store->list(family_of(r, part::whole))) out.insert(l.what.about.target);
    return out;
}

}  // namespace

// Builds that are to be ready sooner make what ships for one architecture: cmake -DKILN_ONLY_ARCHS=90.
constexpr bool ships_for_all = std::string_view{KILN_TEST_ONLY_ARCHS}.empty();

TEST_F(prims_compile, every_named_specialisation_ships_for_seven_architectures) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    if (!ships_for_all) GTEST_SKIP() << "built with KILN_ONLY_ARCHS=" KILN_TEST_ONLY_ARCHS;
    EXPECT_LE(embedded_cubins().size(), std::size_t{3} << 20);
    auto const e = make_engine({{"KILN_JIT", "forbid"}});
    EXPECT_EQ(named_requests().size(), 23U);
    auto const archs = shipped_archs(*e, named_requests().front().what);
    EXPECT_EQ(archs.size(), 7U);
    for (auto const& r : named_requests()) {
        EXPECT_EQ(shipped_archs(*e, r.what), archs) << r.about.name;
        for (auto const& a : archs) {
            auto const found =
                obtain(*e, r.what, target::parse(a).value(), closeness::exact, prim_route::automatic, {});
            ASSERT_TRUE(found) << r.about.name << " for " << a << ": " << found.error().what();
            EXPECT_EQ(found->got.from, provenance::bundle);
            check_image(r.what, *found->got.what);
        }
    }
    EXPECT_EQ(e->status().compiled, 0U);
}

TEST_F(prims_compile, a_newer_device_of_a_generation_gets_its_elders_cubin) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    if (!ships_for_all) GTEST_SKIP() << "built with KILN_ONLY_ARCHS=" KILN_TEST_ONLY_ARCHS;
    auto const e = make_engine({{"KILN_JIT", "forbid"}});
    auto const found = obtain(*e, scan_by(plus), {arch::of_device(8, 7), artifact_kind::cubin}, closeness::near,
                              prim_route::automatic, {});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->got.what->target.arch.name(), "sm_86");
}

// 65,536 registers by 384 threads: what three blocks of a multiprocessor may take. With two, floats were sorted at nine tenths
// of the speed.
TEST_F(prims_compile, three_blocks_sweep_keys_without_values) {
    auto const e = make_engine();
    for (auto const kind : {scalar::f32, scalar::u32, scalar::f64}) {
        auto const made = get(*e, radix_sort_request(type_of(kind), {}, sort_order::ascending, item_range::ordinary),
                              prim_route::full);
        ASSERT_TRUE(made) << made.error().what() << made.error().log();
        auto const* const sweep = made->got.what->find_kernel("kiln_radix_sweep");
        ASSERT_NE(sweep, nullptr);
        EXPECT_LE(sweep->registers, 56) << kiln::name_of(kind);
        EXPECT_LE(sweep->local_bytes, kind == scalar::f64 ? 96 : 0) << kiln::name_of(kind);
    }
}

TEST_F(prims_compile, a_new_operator_is_linked_once_and_then_found) {
    auto const what = scan_by(op{"a * b + s"}.with(3));
    {
        auto const e = make_engine();
        auto const made = get(*e, what);
        ASSERT_TRUE(made) << made.error().what() << made.error().log();
        check_image(what, *made->got.what);
        EXPECT_EQ(count(event_kind::fell_back), 0U);
        auto const* const kernel = made->got.what->find_kernel("kiln_scan_exclusive");
        EXPECT_LE(kernel->registers, 72);
        EXPECT_EQ(kernel->local_bytes, 0);
        EXPECT_LT(made->got.what->image.size(), 60'000U);
        e->flush_sync();
    }
    auto const e = make_engine();
    // Another value of the same type is the same program.
    auto const again = get(*e, scan_by(op{"a * b + s"}.with(4)));
    ASSERT_TRUE(again);
    EXPECT_EQ(e->status().compiled, 0U);
    EXPECT_EQ(e->status().from_disk, 1U);
    EXPECT_EQ(e->status().requests, 1U);
}

// A linker of another CUDA is not given templates that it cannot read: it would fail each time, and only then another way be taken.
TEST_F(prims_compile, templates_are_those_of_the_linkers_cuda) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    if (!std::string_view{KILN_TEST_CUDA12_PATH}.empty()) GTEST_SKIP() << "templates for CUDA 12 ship with this build";
    auto const toolkit = std::filesystem::path{libraries_alone({"libnvrtc"})};
    auto const linker = make_engine()->internals().nvjitlink().value().path;
    std::filesystem::create_symlink(linker, toolkit / "lib64/libnvJitLink.so.12");
    auto const e = make_engine({{"KILN_CUDA_PATH", toolkit}});
    ASSERT_EQ(linker_major(*e), 12);
    auto const made = get(*e, scan_by(op{"a < b ? a : b + 12"}), prim_route::linked);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    ASSERT_EQ(count(event_kind::fell_back, "prims-template"), 1U);
    for (auto const& happened : events_.recent()) {
        if (happened.kind == event_kind::fell_back) {
            EXPECT_THAT(std::string{happened.detail.view()}, HasSubstr("CUDA 12"));
        }
    }
    // Made once, found by the next operator.
    ASSERT_TRUE(get(*e, scan_by(op{"a < b ? a : b + 13"}), prim_route::linked));
    EXPECT_EQ(count(event_kind::fell_back), 1U);
}

TEST_F(prims_compile, a_new_operator_links_with_what_ships_for_cuda_12) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    if (std::string_view{KILN_TEST_CUDA12_PATH}.empty()) GTEST_SKIP() << "configured without KILN_CUDA12_ROOT";
    auto const e = make_engine({{"KILN_CUDA_PATH", KILN_TEST_CUDA12_PATH}});
    ASSERT_EQ(linker_major(*e), 12);
    auto const what = scan_by(op{"a < b ? a : b + 12"});
    auto const made = get(*e, what);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(what, *made->got.what);
    EXPECT_EQ(count(event_kind::fell_back), 0U);
    EXPECT_EQ(e->status().compiled, 2U) << "the operator and the link";
}

namespace {
element_type tally_type() {
    return {scalar::record, "tally", "struct tally { double total; int count, most; };", 16, 8};
}
op tally_sum() { return op{"tally{a.total + b.total, a.count + b.count, a.most > b.most ? a.most : b.most}"}; }
}  // namespace

// What the template moves as words is the user's struct again when the linker has inlined the operator.
TEST_F(prims_compile, an_operator_of_structs_links_as_if_compiled_whole) {
    auto const e = make_engine();
    auto const sum = scan_request(scan_form::exclusive, tally_type(), tally_sum());
    auto const order =
        merge_sort_request(tally_type(), type_of(scalar::u32), op{"a.count < b.count"}, item_range::ordinary);
    for (auto const& what : {sum, order}) {
        auto const linked = get(*e, what, prim_route::linked);
        ASSERT_TRUE(linked) << linked.error().what() << linked.error().log();
        check_image(what, *linked->got.what);
        auto const whole = get(*e, what, prim_route::full);
        ASSERT_TRUE(whole) << whole.error().what() << whole.error().log();
        for (auto const& name : what.kernels) {
            auto const* const one = linked->got.what->find_kernel(name);
            auto const* const other = whole->got.what->find_kernel(name);
            EXPECT_LE(one->registers, other->registers + 4) << what.name << " " << name;
            EXPECT_EQ(one->local_bytes, other->local_bytes) << what.name << " " << name;
            EXPECT_EQ(one->shared_bytes, other->shared_bytes) << what.name << " " << name;
        }
        EXPECT_EQ(linked->got.what->find_constant(info_name)->bytes, whole->got.what->find_constant(info_name)->bytes);
    }
}

TEST_F(prims_compile, operators_of_structs_and_sorts_of_all_keys_need_no_headers) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    auto const e = make_engine();
    op const chosen{"a.count % 2 == 0"}, order{"a.count < b.count"}, same{"a.count == b.count"};
    auto const v = type_of(scalar::f32);
    for (auto const& what :
         {scan_request(scan_form::inclusive, tally_type(), tally_sum()), reduce_request(tally_type(), tally_sum()),
          segmented_reduce_request(tally_type(), tally_sum()),
          select_request(select_form::items, tally_type(), &chosen),
          bounds_request(bound_side::upper, tally_type(), order),
          merge_sort_request(tally_type(), v, order, item_range::ordinary),
          unique_request(tally_type(), v, same, item_range::ordinary)}) {
        auto const made = get(*e, what);
        ASSERT_TRUE(made) << what.name << ": " << made.error().what() << made.error().log();
        check_image(what, *made->got.what);
    }
    EXPECT_EQ(e->status().compiled, 14U) << "an operator and a link each";
    for (auto const& what : sort_requests()) {
        auto const found = get(*e, what);
        ASSERT_TRUE(found) << what.name << ": " << found.error().what();
        EXPECT_EQ(found->got.from, provenance::bundle) << what.name;
        check_image(what, *found->got.what);
    }
    EXPECT_EQ(e->status().compiled, 14U);
    EXPECT_EQ(count(event_kind::fell_back), 0U);
}

TEST_F(prims_compile, nothing_but_the_compiler_libraries_is_needed) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    auto const bare = libraries_alone();
    auto const e = make_engine({{"KILN_CUDA_PATH", bare}});
    ASSERT_TRUE(e->internals().tools().toolkit_includes.empty());
    for (auto const& r : named_requests()) {
        auto const found = get(*e, r.what);
        ASSERT_TRUE(found) << r.about.name << ": " << found.error().what();
        EXPECT_EQ(found->got.from, provenance::bundle) << r.about.name;
    }
    EXPECT_EQ(e->status().from_bundle, named_requests().size());
    EXPECT_EQ(e->status().requests, named_requests().size());
    // Every algorithm with a user's operator, on every type templates ship for.
    std::vector<request> all;
    for (auto const kind : {scalar::i32, scalar::u32, scalar::i64, scalar::u64, scalar::f32, scalar::f64}) {
        auto const t = type_of(kind);
        auto const value = type_of(scalar::f32);
        op const sum{"a < b ? b : a + 1"};
        op const condition{"a > 3"};
        op const order{"a + 1 < b + 1"};
        all.push_back(scan_by(sum, kind));
        all.push_back(scan_request(scan_form::inclusive, t, sum));
        all.push_back(reduce_request(t, sum));
        all.push_back(segmented_reduce_request(t, sum));
        all.push_back(select_request(select_form::items, t, &condition));
        all.push_back(bounds_request(bound_side::upper, t, order));
        all.push_back(merge_sort_request(t, value, order, item_range::ordinary));
        all.push_back(unique_request(t, value, op{"a + 1 == b + 1"}, item_range::ordinary));
    }
    {
        std::atomic<std::size_t> next{0};
        auto const work = [&] {
            for (auto i = next++; i < all.size(); i = next++) {
                auto const made = get(*e, all[i]);
                ASSERT_TRUE(made) << all[i].name << ": " << made.error().what() << made.error().log();
                check_image(all[i], *made->got.what);
            }
        };
        std::jthread const other{work};
        work();
    }
    EXPECT_EQ(count(event_kind::fell_back), 0U);
    // Other types are compiled in full from the headers the library carries.
    auto const half = scan_by(kiln::max, scalar::f16);
    auto const made = get(*e, half);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(half, *made->got.what);
    EXPECT_EQ(count(event_kind::fell_back), 0U);
}

TEST_F(prims_compile, a_template_that_does_not_ship_is_made_once_and_said_so) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    target const sm87{arch::of_device(8, 7), artifact_kind::cubin};
    for (auto const* const text : {"a * b + 5", "a * b + 6"}) {
        // The headers the library carries are enough.
        auto const e = make_engine({{"KILN_CUDA_PATH", libraries_alone()}});
        auto const what = bounds_request(bound_side::lower, type_of(scalar::i32), op{std::string{text} + " < 0"});
        auto const made = obtain(*e, what, sm87, closeness::exact, prim_route::automatic, {});
        ASSERT_TRUE(made) << made.error().what() << made.error().log();
        check_image(what, *made->got.what);
        EXPECT_EQ(count(event_kind::fell_back, "prims-template"), 1U);
        e->flush_sync();
    }
}

TEST_F(prims_compile, without_a_linker_the_whole_is_compiled_and_said_so) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    auto const e = make_engine({{"KILN_CUDA_PATH", libraries_alone({"libnvrtc"})}});
    auto const what = bounds_request(bound_side::lower, type_of(scalar::i32), op{"a + 2 < b + 2"});
    auto const made = get(*e, what);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(what, *made->got.what);
    EXPECT_EQ(count(event_kind::fell_back, "prims-linked"), 1U);
}

TEST_F(prims_compile, what_the_trimmed_headers_leave_out_is_compiled_as_plain_cub_and_said_so) {
    auto const e = make_engine();
    // Of a shape for which no template ships: those are linked, and their text meets all headers there are.
    element_type five{
        scalar::record, "five32",
        "#include <cuda/std/span>\nstruct five32 { int v[5]; __device__ int sum() const { int s = 0; for (int x : "
        "cuda::std::span<int const>(v, 5)) s += x; return s; } };",
        20, 4};
    auto const what = bounds_request(bound_side::lower, five, op{"a.sum() < b.sum()"});
    auto const made = get(*e, what);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(what, *made->got.what);
    EXPECT_EQ(count(event_kind::fell_back, "prims-full"), 1U);
}

TEST_F(prims_compile, an_image_without_what_was_asked_for_is_an_error) {
    auto const e = make_engine();
    auto what = bounds_request(bound_side::lower, type_of(scalar::i32), less);
    what.kernels.emplace_back("kiln_no_such_kernel");
    auto const made = get(*e, what, prim_route::linked);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().what(), HasSubstr("kiln_no_such_kernel"));

    auto const skeleton = obtain_template(*e, what, sm90(), header_source::machine, {});
    auto const by = e->artifact_sync(operator_unit(what), {sm90().arch, artifact_kind::ltoir});
    ASSERT_TRUE(skeleton && by);
    link_request link{.name = "no constants", .target = sm90(), .inputs = {skeleton->what, by->what}};
    link.kernels = {"kiln_lower_bound"};
    link.exports = {"kiln_no_such_constant"};
    auto const linked = e->link_sync(link);
    ASSERT_FALSE(linked);
    EXPECT_THAT(linked.error().what(), HasSubstr("kiln_no_such_constant"));
}

TEST_F(prims_compile, plain_cub_of_the_machine_is_the_last_resort) {
    auto const e = make_engine();
    auto const what = bounds_request(bound_side::lower, type_of(scalar::i16), less);
    auto const made = get(*e, what, prim_route::plain);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(what, *made->got.what);
}

namespace {

struct bad_operator {
    char const* what;
    op by;
    errc code;
    char const* words;
};

}  // namespace

TEST_F(prims_compile, a_bad_operator_is_an_error_about_the_operator) {
    auto const e = make_engine();
    bad_operator const all[] = {
        {"unknown name", op{"a + c"}, errc::compile_failed, "\"c\" is undefined"},
        {"type error", op{"a + \"text\"[0] + nullptr"}, errc::compile_failed, "operator(1)"},
        {"missing return", op::function("f", "__device__ int f(int a, int b) { if (a < b) return a; }"),
         errc::compile_failed, "missing return"},
        {"name clash",
         op::function("f",
                      "__device__ int f(int a, int b) { return a; }\n__device__ int kiln_operator(int a, int b, void "
                      "const* s) { return a; }"),
         errc::invalid_argument, "kiln_operator"},
        {"clash with a kernel",
         op::function(
             "f",
             "extern \"C\" __global__ void kiln_scan_exclusive() {}\n__device__ int f(int a, int b) { return a; }"),
         errc::invalid_argument, "kiln_"},
        {"wrong arity", op::function("f", "__device__ int f(int a) { return a; }"), errc::compile_failed,
         "too many arguments"},
        {"a name of Kiln's", op::function("kiln_f", "__device__ int kiln_f(int a, int b) { return a; }"),
         errc::invalid_argument, "kiln_"},
        {"no name", op::function("f g", "int x;"), errc::invalid_argument, "no name of a function"},
        {"empty", op{" \n"}, errc::invalid_argument, "empty"},
        {"huge", op{std::string(100 << 10, '1')}, errc::invalid_argument, "65536"},
        {"huge function",
         op::function("f", "__device__ int f(int a, int b) { return a; } //" + std::string(100 << 10, 'x')),
         errc::invalid_argument, "65536"},
        {"not on floats", op::builtin("bit_and"), errc::invalid_argument, "bit_and"},
        {"no IR", op::ltoir("f", {}), errc::invalid_argument, "empty"},
        {"bad IR", op::ltoir("f", std::vector<std::byte>(100, std::byte{7})), errc::link_failed, "f"},
    };
    for (auto const& bad : all) {
        SCOPED_TRACE(bad.what);
        auto const kind = std::string_view{bad.what} == "not on floats" ? scalar::f32 : scalar::i32;
        auto const made = get(*e, scan_by(bad.by, kind));
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code(), bad.code) << made.error().what();
        EXPECT_THAT(std::string{made.error().what()} + made.error().log(), HasSubstr(bad.words));
        auto const again = get(*make_engine(), scan_by(bad.by, kind));  // nothing of it was kept
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code(), bad.code);
    }
    e->flush_sync();
    EXPECT_EQ(count(event_kind::loaded), 0U);
    for (auto const& seen : events_.recent()) {
        if (seen.kind != event_kind::published) continue;
        // What the bad IR was to be called by is good text; with it, and with a template, nothing is wrong.
        std::string const what{seen.unit.view()};
        EXPECT_TRUE(what == scan_by(all[std::size(all) - 1].by).name + " operator" || what.ends_with("template"))
            << what;
    }
}

TEST_F(prims_compile, users_names_are_their_own) {
    auto const e = make_engine();
    // Names that Kiln's device text uses too.
    element_type const type{.kind = scalar::record,
                            .name = "policy",
                            .definition =
                                "struct policy { int at, count; }; struct tile_agent {}; struct pieces {}; "
                                "struct part {}; struct storage {}; enum side { input, share };\n",
                            .size = 8,
                            .align = 4};
    std::string const helpers =
        "__device__ int threads(policy p) { return p.at; }\n"
        "__device__ int wait_for_previous() { return 0; }\n"
        "template <class T> __device__ T load_tile(T a) { return a; }\n";
    auto const with = [&](std::string const& text) { return op::function("items", helpers + text); };
    auto const sum = with("__device__ policy items(policy a, policy b) { return {threads(a) + b.at, a.count}; }");
    auto const condition = with("__device__ bool items(policy a) { return load_tile(a.at) > wait_for_previous(); }");
    auto const order = with("__device__ bool items(policy a, policy b) { return threads(a) < threads(b); }");
    auto const index = type_of(scalar::i32);
    for (auto const& r :
         {scan_request(scan_form::inclusive, type, sum), reduce_request(type, sum), segmented_reduce_request(type, sum),
          select_request(select_form::items, type, &condition), bounds_request(bound_side::lower, type, order),
          merge_sort_request(type, type, order, item_range::ordinary),
          unique_request(type, index, order, item_range::ordinary), transform_request(type, index, condition),
          gather_request(type, index)}) {
        auto const made = get(*e, r);
        EXPECT_TRUE(made) << r.name << ": " << made.error().what() << made.error().log();
    }
}

TEST_F(prims_compile, a_bad_operator_on_a_rare_type_is_told_as_clearly) {
    auto const e = make_engine();
    auto const made = get(*e, scan_by(op{"a +"}, scalar::i8));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), errc::compile_failed);
    EXPECT_THAT(made.error().what(), HasSubstr("the operator does not compile"));
    EXPECT_EQ(count(event_kind::fell_back), 0U);
}

TEST_F(prims_compile, a_term_computed_in_f32_has_no_f64_but_the_loads_and_the_sum_is_not_simplified_away) {
    auto const e = make_engine();
    auto const two = kiln::type_of<two_floats>();
    auto const ptx = target::parse("compute_90", artifact_kind::ptx).value();
    auto const text_of = [&](request const& r) {
        auto const got = e->artifact_sync(device_unit(r, part::whole, header_source::pinned), ptx).value();
        auto const image = base::as_text(got.what->image);
        return std::string{image};
    };
    auto const narrow = text_of(transform_request(type_of(scalar::f64), two, in_floats(op{"exp(-a * a)"})));
    EXPECT_THAT(narrow, HasSubstr("cvt.rn.f32.f64"));
    EXPECT_THAT(narrow, testing::Not(HasSubstr("fma.rn.f64")));
    EXPECT_THAT(text_of(transform_request(type_of(scalar::f64), type_of(scalar::f64), op{"exp(-a * a)"})),
                HasSubstr("fma.rn.f64"));
    EXPECT_THAT(text_of(reduce_request(two, sum_of_two_floats())), HasSubstr("sub.f32"));
    (void)text_of(transform_request(two, type_of(scalar::f64), op{"kiln_mapped(a.high) + kiln_mapped(a.low)"}));
}

}  // namespace kiln::prims
