// SPDX-License-Identifier: Apache-2.0
// From source text to a launched kernel on a real GPU.
#include "compile/engine_fixture.hpp"

#include "engine/engine_state.hpp"

#include <kiln/device.hpp>

#include <atomic>
#include <numeric>
#include <thread>

namespace kiln {

class engine_device : public testing_support::engine_fixture {
protected:
    void SetUp() override {
        if (auto const all = devices(); !all) GTEST_SKIP() << all.error().message();
    }
    static unit saxpy() {
        return {.name = "saxpy",
                .source =
                    "extern \"C\" __global__ void saxpy(int n, float a, float const* x, float* y) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = a * x[i] + y[i];\n}\n",
                .kernels = {"saxpy"}};
    }
    using saxpy_signature = void(int, float, float const*, float*);

    static void check(ready_unit const& unit) {
        auto const launch = unit.kernel<saxpy_signature>("saxpy").value();
        auto const s = stream::make().value();
        int const n = 100'003;
        std::vector<float> x(n), y(n, 1.0f);
        std::iota(x.begin(), x.end(), 0.0f);
        auto dx = device_memory::make(n * sizeof(float)).value();
        auto dy = device_memory::make(n * sizeof(float)).value();
        dx.upload_sync(s, x).value();
        dy.upload_sync(s, y).value();
        launch(s, {{(n + 255) / 256}, {256}}, n, 2.0f, dx.as<float>(), dy.as<float>()).value();
        dy.download_sync(s, y).value();
        for (int i = 0; i < n; ++i) ASSERT_EQ(y[static_cast<std::size_t>(i)], 2.0f * static_cast<float>(i) + 1.0f) << i;
    }
};

TEST_F(engine_device, source_to_launch) {
    auto e = make_engine();
    auto const unit = e->get_sync(saxpy()).value();
    EXPECT_EQ(unit.from(), provenance::compiled);
    check(unit);
    EXPECT_EQ(count(event_kind::loaded), 1u);
    EXPECT_EQ(e->get_sync(saxpy()).value().device(), 0);
    EXPECT_EQ(count(event_kind::loaded), 1u) << "already loaded";
}

TEST_F(engine_device, the_next_process_finds_it_on_disk) {
    {
        auto e = make_engine();
        (void)e->get_sync(saxpy()).value();
        e->flush_sync();
    }
    auto e = make_engine({{"KILN_JIT", "forbid"}});
    auto const unit = e->get_sync(saxpy()).value();
    EXPECT_EQ(unit.from(), provenance::disk);
    check(unit);
}

TEST_F(engine_device, resource_numbers_are_what_the_driver_says) {
    unit const u{.name = "resources",
                 .source =
                     "extern \"C\" __global__ void shared(float* x) { __shared__ float s[256]; s[threadIdx.x] = "
                     "x[threadIdx.x]; __syncthreads(); "
                     "x[threadIdx.x] = s[255 - threadIdx.x]; }\n"
                     "extern \"C\" __global__ void local(int* x, int n) { int a[500]; for (int i = 0; i < n; ++i) a[(i "
                     "* 7) % 500] = x[i]; int t = 0; "
                     "for (int i = 0; i < n; ++i) t += a[(i * 13 + n) % 500]; x[0] = t; }",
                 .kernels = {"shared", "local"}};
    auto e = make_engine();
    auto const ready = e->get_sync(u).value();
    for (auto const& k : ready.kernels()) {
        auto const said = ready.kernel(k.name).value().resources();
        EXPECT_EQ(k.registers, said.registers) << k.name;
        EXPECT_EQ(k.shared_bytes, said.static_shared_bytes) << k.name;
        EXPECT_EQ(k.local_bytes, said.local_bytes) << k.name;
    }
}

TEST_F(engine_device, a_thousand_threads_one_compile_one_load_or_few) {
    auto e = make_engine();
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 1000; ++i) threads.emplace_back([&] { good += e->get_sync(saxpy()) ? 1 : 0; });
    for (auto& t : threads) t.join();
    EXPECT_EQ(good, 1000);
    EXPECT_EQ(e->status().compiled, 1u);
}

TEST_F(engine_device, asked_for_later) {
    auto e = make_engine();
    auto const later = e->get(saxpy());
    check(later.wait_sync().value());
}

TEST_F(engine_device, a_kernel_that_is_not_there_names_those_that_are) {
    auto e = make_engine();
    auto const r = e->get_sync(saxpy()).value().kernel("sxpy");
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("saxpy"), std::string::npos);
}

TEST_F(engine_device, a_wrong_signature_is_refused) {
    auto e = make_engine();
    auto const r = e->get_sync(saxpy()).value().kernel<void(int, float, float const*)>("saxpy");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::invalid_argument);
}

TEST_F(engine_device, a_broken_unit_gives_its_log) {
    auto e = make_engine();
    auto u = saxpy();
    u.source += "}";
    auto const r = e->get_sync(u);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::compile_failed);
    EXPECT_FALSE(r.error().log().empty());
}

// A valid entry in every respect, but for an image the driver will not take.
TEST_F(engine_device, C6_an_entry_the_driver_refuses_is_forgotten_and_made_anew_once) {
    {
        // Made in a cache of its own: where the good entry is, a bad one does not replace it.
        auto e = make_engine({{"KILN_CACHE_DIR", path("elsewhere")}});
        auto const arch = arch::parse(devices().value().front().target()).value();
        auto const order = e->internals().order_for(saxpy(), target::make(arch, artifact_kind::cubin).value()).value();
        auto broken = *e->artifact_sync(saxpy(), order.subject.target).value().what;
        for (auto& k : broken.kernels) k.lowered = "no_such_kernel";
        auto other = make_engine();
        other->internals().store->put(engine_detail::entry_for(order, broken, "test"));
        other->flush_sync();
    }
    auto e = make_engine();
    auto const unit = e->get_sync(saxpy()).value();
    EXPECT_EQ(unit.from(), provenance::compiled);
    EXPECT_EQ(count(event_kind::rejected, "driver"), 1u);
    check(unit);
    e->flush_sync();
    EXPECT_EQ(make_engine({{"KILN_JIT", "forbid"}})->get_sync(saxpy()).value().from(), provenance::disk) << "healed";
}

TEST_F(engine_device, B2_a_bundle_without_this_gpu_is_passed_over_and_ptx_serves_where_there_is_no_compiler) {
    store::bundle_writer ptx;
    {
        auto e = make_engine();
        auto const t = target::parse("compute_75", artifact_kind::ptx).value();
        auto a = *e->artifact_sync(saxpy(), t).value().what;
        ptx.add(*engine_detail::entry_for(e->internals().order_for(saxpy(), t).value(), a, "test")).value();
    }
    ptx.write(path("ptx.kiln")).value();
    auto e = make_engine(
        {{"KILN_CACHE_DIR", path("empty")}, {"KILN_CUDA_PATH", path("none")}, {"KILN_BUNDLES", path("ptx.kiln")}});
    check(e->get_sync(saxpy()).value());
    EXPECT_EQ(count(event_kind::fell_back, "driver-ptx"), 1u);
}

TEST_F(engine_device, handles_outlive_their_engine) {
    auto e = make_engine();
    auto const unit = e->get_sync(saxpy()).value();
    e.reset();
    check(unit);
}

TEST_F(engine_device, a_templated_kernel_by_its_expression) {
    unit const u{.name = "fill",
                 .source = "template <class T> __global__ void fill(T* x, T v) { x[threadIdx.x] = v; }",
                 .kernels = {"fill<double>"}};
    auto e = make_engine();
    auto const fill = e->get_sync(u).value().kernel<void(double*, double)>("fill<double>").value();
    auto const s = stream::make().value();
    auto memory = device_memory::make(64 * sizeof(double)).value();
    fill(s, {{1}, {64}}, memory.as<double>(), 2.5).value();
    std::vector<double> out(64);
    memory.download_sync(s, out).value();
    EXPECT_EQ(out, std::vector<double>(64, 2.5));
}

}  // namespace kiln
