// SPDX-License-Identifier: Apache-2.0
// The primitives as far as a machine without a GPU can tell: what ships, what links, what is refused.
#include "compile/engine_fixture.hpp"

#include "prims/catalogue.hpp"
#include "prims/prim_info.hpp"
#include "prims/products.hpp"
#include "prims/routes.hpp"
#include "prims/shipped.hpp"

#include <gmock/gmock.h>

namespace kiln::prims {

namespace {

using testing::HasSubstr;

class prims_compile : public testing_support::engine_fixture {
protected:
    result<found_image> get(engine& with, request const& what, prim_route route = prim_route::automatic) {
        return obtain(with, what, sm90(), closeness::exact, route, {});
    }
    static request scan_by(op const& by, scalar kind = scalar::i32) {
        return scan_request(scan_form::exclusive, type_of(kind), by);
    }

    // A toolkit that is nothing but the two compiler libraries.
    std::string libraries_alone() {
        auto const from = std::filesystem::path{KILN_TEST_CUDA_PATH};
        auto const to = std::filesystem::path{path("bare")} / "lib64";
        base::make_directories(to).value();
        for (auto const* folder : {"lib64", "lib"}) {
            std::error_code none;
            for (auto const& file : std::filesystem::directory_iterator{from / folder, none}) {
                auto const name = file.path().filename().native();
                if (name.starts_with("libnvrtc") || name.starts_with("libnvJitLink")) {
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

bool has_products() { return !embedded_cubins().empty(); }

}  // namespace

TEST_F(prims_compile, every_named_specialisation_ships_for_seven_architectures) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    EXPECT_LE(embedded_cubins().size(), std::size_t{3} << 20);
    auto const e = make_engine({{"KILN_JIT", "forbid"}});
    EXPECT_EQ(named_requests().size(), 18U);
    for (auto const& r : named_requests()) {
        for (auto const a : shipped_archs()) {
            auto const found =
                obtain(*e, r.what, {a, artifact_kind::cubin}, closeness::exact, prim_route::automatic, {});
            ASSERT_TRUE(found) << r.about.name << " for " << a.name() << ": " << found.error().what();
            EXPECT_EQ(found->got.from, provenance::bundle);
            check_image(r.what, *found->got.what);
        }
    }
    EXPECT_EQ(e->status().compiled, 0U);
}

TEST_F(prims_compile, a_newer_device_of_a_generation_gets_its_elders_cubin) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    auto const e = make_engine({{"KILN_JIT", "forbid"}});
    auto const found = obtain(*e, scan_by(plus), {arch::of_device(8, 7), artifact_kind::cubin}, closeness::near,
                              prim_route::automatic, {});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->got.what->target.arch.name(), "sm_86");
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
}

TEST_F(prims_compile, nothing_but_the_compiler_libraries_is_needed) {
    if (!has_products()) GTEST_SKIP() << "built with KILN_PRIMS_PRODUCTS=OFF";
    auto const e = make_engine({{"KILN_CUDA_PATH", libraries_alone()}});
    for (auto const kind : {scalar::i32, scalar::u32, scalar::i64, scalar::u64, scalar::f32, scalar::f64}) {
        auto const what = scan_by(op{"a < b ? b : a + 1"}, kind);
        auto const made = get(*e, what);
        ASSERT_TRUE(made) << what.name << ": " << made.error().what() << made.error().log();
        check_image(what, *made->got.what);
    }
    // Other types are compiled in full from the headers the library carries.
    auto const half = scan_by(kiln::max, scalar::f16);
    auto const made = get(*e, half);
    ASSERT_TRUE(made) << made.error().what() << made.error().log();
    check_image(half, *made->got.what);
    EXPECT_EQ(count(event_kind::fell_back), 0U);
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
         errc::compile_failed, "kiln_operator"},
        {"wrong arity", op::function("f", "__device__ int f(int a) { return a; }"), errc::compile_failed,
         "too many arguments"},
        {"a name of Kiln's", op::function("kiln_f", "__device__ int kiln_f(int a, int b) { return a; }"),
         errc::invalid_argument, "kiln_"},
        {"no name", op::function("f g", "int x;"), errc::invalid_argument, "no name of a function"},
        {"empty", op{" \n"}, errc::invalid_argument, "empty"},
        {"huge", op{std::string(100 << 10, '1')}, errc::invalid_argument, "65536"},
        {"not on floats", op::builtin("bit_and"), errc::invalid_argument, "bit_and"},
        {"no IR", op::ltoir("f", {}), errc::invalid_argument, "empty"},
        {"bad IR", op::ltoir("f", std::vector<std::byte>(100, std::byte{7})), errc::link_failed, "f"},
    };
    for (auto const& bad : all) {
        SCOPED_TRACE(bad.what);
        auto const made =
            get(*e, scan_by(bad.by, std::string_view{bad.what} == "not on floats" ? scalar::f32 : scalar::i32));
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code(), bad.code) << made.error().what();
        EXPECT_THAT(std::string{made.error().what()} + made.error().log(), HasSubstr(bad.words));
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

}  // namespace kiln::prims
