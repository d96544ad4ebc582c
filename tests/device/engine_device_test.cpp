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

TEST_F(engine_device, an_artifact_from_bytes_is_loaded_as_it_is) {
    auto e = make_engine();
    auto const arch = kiln::device(0).value().target();
    auto const made = e->artifact_sync(saxpy(), target::parse(arch).value()).value();
    auto const kept = artifact::from_bytes(made.what->to_bytes()).value();
    check(e->load_sync(kept).value());

    auto const ptx = e->artifact_sync(saxpy(), target::parse(arch, artifact_kind::ptx).value()).value();
    check(e->load_sync(*ptx.what).value());
    auto const ir = e->artifact_sync(saxpy(), target::parse(arch, artifact_kind::ltoir).value()).value();
    EXPECT_EQ(e->load_sync(*ir.what).error().code(), errc::invalid_argument);
    auto damaged = kept;
    damaged.image.resize(damaged.image.size() / 2);
    EXPECT_EQ(e->load_sync(damaged).error().code(), errc::corrupt);
}

TEST_F(engine_device, standard_headers_compile_and_run) {
    auto e = make_engine();
    unit const u{.name = "standard", .source = R"(
                     #include <array>
                     #include <cassert>
                     #include <cmath>
                     #include <cstdint>
                     #include <limits>
                     #include <tuple>
                     #include <type_traits>
                     #include <utility>
                     static_assert(std::is_same_v<std::uint32_t, unsigned>);
                     extern "C" __global__ void standard(double* out) {
                         std::array<double, 2> const two{1.5, 2.5};
                         auto const [a, b] = std::pair{two[0], two[1]};
                         assert(a < b);
                         out[0] = std::get<1>(std::tuple{a, b, 3}) + std::sqrt(4.0) + std::numeric_limits<std::int8_t>::max();
                     })"};
    auto const ready = e->get_sync(u).value();
    auto const s = stream::make().value();
    auto out = device_memory::make(sizeof(double)).value();
    ready.kernel<void(double*)>("standard").value()(s, {1, 1}, out.as<double>()).value();
    std::vector<double> got(1);
    out.download_sync(s, got).value();
    EXPECT_EQ(got[0], 2.5 + 2 + 127);
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
    base::make_directories(path("none")).value();
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

TEST_F(engine_device, variables_are_written_and_read_by_name) {
    auto e = make_engine();
    unit const filter{.name = "filter",
                      .source =
                          "namespace dsp { __constant__ float taps[4]; template <class T> __device__ T gain = T(2); }\n"
                          "extern \"C\" { __device__ int calls; }\n"
                          "extern \"C\" __global__ void filter(float* y) {\n"
                          "  y[threadIdx.x] = dsp::taps[threadIdx.x] * dsp::gain<float>;\n"
                          "  if (threadIdx.x == 0) ++calls;\n}\n"};
    auto const unit = e->get_sync(filter).value();
    auto const s = stream::make().value();
    auto const taps = unit.variable("dsp::taps").value();
    EXPECT_EQ(taps.size(), 16U);
    taps.write_sync(s, std::array<float, 4>{1, 2, 3, 4}).value();
    unit.variable("&dsp::gain<float>").value().write_sync(s, 10.0f).value();
    auto out = device_memory::make(4 * sizeof(float)).value();
    auto const launch = unit.kernel<void(float*)>("filter").value();
    for (int i = 0; i < 3; ++i) launch(s, {{1}, {4}}, out.as<float>()).value();
    std::vector<float> y(4);
    out.download_sync(s, y).value();
    EXPECT_EQ(y, (std::vector<float>{10, 20, 30, 40}));
    EXPECT_EQ(unit.variable("calls").value().read_sync<int>(s).value(), 3);
    auto const absent = unit.variable("dsp::tapz");
    ASSERT_FALSE(absent.has_value());
    EXPECT_NE(absent.error().message().find("dsp::taps"), std::string::npos) << absent.error().message();
}

TEST_F(engine_device, blocks_of_a_cooperative_launch_wait_for_each_other) {
    auto e = make_engine();
    unit const sum{.name = "grid_sum",
                   .source =
                       "#include <cooperative_groups.h>\n"
                       "extern \"C\" __global__ void grid_sum(int* part, int* total) {\n"
                       "  if (threadIdx.x == 0) part[blockIdx.x] = blockIdx.x + 1;\n"
                       "  cooperative_groups::this_grid().sync();\n"
                       "  if (blockIdx.x == 0 && threadIdx.x == 0) {\n"
                       "    int sum = 0;\n    for (int i = 0; i < gridDim.x; ++i) sum += part[i];\n"
                       "    *total = sum;\n  }\n}\n"};
    auto const unit = e->get_sync(sum).value();
    auto const launch = unit.kernel<void(int*, int*)>("grid_sum").value();
    auto const s = stream::make().value();
    auto const at_once =
        static_cast<unsigned>(launch.blocks_per_multiprocessor(64).value() * kiln::device(0).value().multiprocessors);
    auto part = device_memory::make(at_once * sizeof(int)).value();
    auto total = device_memory::make(sizeof(int)).value();
    launch(s, {.grid = at_once, .block = 64, .kind = grid_kind::cooperative}, part.as<int>(), total.as<int>()).value();
    std::vector<int> out(1);
    total.download_sync(s, out).value();
    EXPECT_EQ(out[0], static_cast<int>(at_once * (at_once + 1) / 2));
    auto const refused =
        launch(s, {.grid = at_once + 1, .block = 64, .kind = grid_kind::cooperative}, part.as<int>(), total.as<int>());
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message().find(std::to_string(at_once) + " blocks"), std::string::npos)
        << refused.error().message();
}

TEST_F(engine_device, launch_extras_and_adopted_kernels) {
    auto e = make_engine();
    auto const unit = e->get_sync(saxpy()).value();
    auto const own = unit.kernel<saxpy_signature>("saxpy").value();
    EXPECT_NE(own.function(), nullptr);
    EXPECT_NE(own.driver_kernel(), nullptr);
    EXPECT_NE(own.driver_library(), nullptr);
    auto const s = stream::make().value();
    auto const begun = device_event::make(0, event_timing::off).value();
    launch_extras const more{.priority = -1, .shared_carveout = 25, .all_begun = begun.get()};
    auto const adopted = adopt_kernel(own.function(), 0, std::make_shared<ready_unit>(unit)).value();
    EXPECT_EQ(adopted.name(), "saxpy");
    auto const again = adopted.typed<saxpy_signature>().value();
    int const n = 1000;
    std::vector<float> x(n, 1.0f), y(n, 1.0f);
    auto dx = device_memory::make(n * sizeof(float)).value();
    auto dy = device_memory::make(n * sizeof(float)).value();
    dx.upload_sync(s, x).value();
    dy.upload_sync(s, y).value();
    own(s, {.grid = 4, .block = 256, .more = &more}, n, 2.0f, dx.as<float>(), dy.as<float>()).value();
    begun.wait_sync().value();
    again(s, {.grid = 4, .block = 256}, n, 3.0f, dx.as<float>(), dy.as<float>()).value();
    dy.download_sync(s, y).value();
    EXPECT_EQ(y, std::vector<float>(n, 6.0f));
}

}  // namespace kiln
