// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.hpp"
#include "cuda/driver_api.hpp"
#include "device/device_fixture.hpp"
#include "device/ptx.hpp"

#include <algorithm>
#include <thread>

namespace kiln::device_tests {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using add_signature = void(unsigned*, unsigned, unsigned);

constexpr unsigned count = 1000;
constexpr launch_shape shape{.grid = (count + 255) / 256, .block = 256};

class launch : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (IsSkipped()) return;
        stream_.emplace(stream::make().value());
        memory_.emplace(device_memory::make(count * sizeof(unsigned)).value());
        memory_->fill(*stream_, 0).value();
        add_.emplace(load_kernel(kernels_image(), "add_value").value().typed<add_signature>().value());
    }
    [[nodiscard]] std::vector<unsigned> data() const {
        std::vector<unsigned> out(count);
        memory_->download_sync(*stream_, out).value();
        return out;
    }

    std::optional<stream> stream_;
    std::optional<device_memory> memory_;
    std::optional<kernel<add_signature>> add_;
};

TEST_F(launch, adds) {
    (*add_)(*stream_, shape, memory_->as<unsigned>(), 5, count).value();
    EXPECT_THAT(data(), Each(5U));
}

TEST_F(launch, a_thousand_times) {
    for (int i = 0; i < 1000; ++i) (*add_)(*stream_, shape, memory_->as<unsigned>(), 1, count).value();
    EXPECT_THAT(data(), Each(1000U));
}

TEST_F(launch, on_the_default_stream) {
    stream_->wait_sync().value();
    (*add_)(nullptr, shape, memory_->as<unsigned>(), 3, count).value();
    std::vector<unsigned> out(count);
    memory_->download_sync(nullptr, out).value();
    EXPECT_THAT(out, Each(3U));
}

TEST_F(launch, from_a_thread_that_never_saw_cuda) {
    std::thread{[&] {
        auto const first = (*add_)(*stream_, shape, memory_->as<unsigned>(), 1, count);
        EXPECT_TRUE(first) << first.error().message();
        auto const second = (*add_)(nullptr, {}, memory_->as<unsigned>(), 0, 0);
        EXPECT_TRUE(second) << second.error().message();
    }}.join();
    EXPECT_THAT(data(), Each(1U));
}

TEST_F(launch, from_many_threads_at_once) {
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 50; ++i) {
                    auto const done = (*add_)(*stream_, shape, memory_->as<unsigned>(), 1, count);
                    EXPECT_TRUE(done) << done.error().message();
                }
            });
        }
    }
    EXPECT_THAT(data(), Each(400U));
}

TEST_F(launch, a_handle_outlives_everything_it_came_from) {
    auto const copy = *add_;
    add_.reset();
    copy(*stream_, shape, memory_->as<unsigned>(), 2, count).value();
    EXPECT_THAT(data(), Each(2U));
}

TEST_F(launch, tells_its_resources) {
    EXPECT_EQ(add_->name(), "add_value");
    EXPECT_EQ(add_->device(), 0);
    EXPECT_GT(add_->resources().registers, 0);
    EXPECT_GE(add_->resources().max_threads, 256);
    EXPECT_GT(add_->blocks_per_multiprocessor(256).value(), 0);
}

TEST_F(launch, a_wrong_signature_is_refused_where_the_driver_can_tell) {
    auto const add = load_kernel(kernels_image(), "add_value").value();
    if (info_.driver_version < 12040) GTEST_SKIP() << "the driver cannot tell parameters";
    EXPECT_FALSE((add.typed<void(unsigned*, unsigned)>()));
    EXPECT_FALSE((add.typed<void(unsigned*, unsigned, unsigned, int)>()));
    EXPECT_FALSE((add.typed<void(unsigned*, double, unsigned)>()));
    EXPECT_TRUE(load_kernel(kernels_image(), "nothing").value().typed<void()>());
}

TEST_F(launch, too_many_threads_name_the_limit) {
    auto const done = (*add_)(*stream_, {.grid = 1, .block = 4096}, memory_->as<unsigned>(), 1, count);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), errc::driver);
    EXPECT_THAT(done.error().message(), AllOf(HasSubstr("'add_value'"), HasSubstr("4096")));
    EXPECT_THAT(data(), Each(0U)) << "the context survives";
}

TEST_F(launch, much_shared_memory_needs_to_be_allowed) {
    constexpr unsigned bytes = 60 << 10;
    auto const last = load_kernel(kernels_image(), "shared_last").value().typed<void(unsigned*, unsigned)>().value();
    launch_shape const wide{.grid = 1, .block = 1, .shared_bytes = bytes};
    auto const refused = last(*stream_, wide, memory_->as<unsigned>(), bytes);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("allow_shared(61440)"));
    last.allow_shared(bytes).value();
    last(*stream_, wide, memory_->as<unsigned>(), bytes).value();
    EXPECT_EQ(data().front(), bytes);
    EXPECT_FALSE(last.allow_shared(std::size_t{64} << 20)) << "no GPU has so much";
}

// The entries of graphs are no part of Kiln's table.
template <class Function>
Function driver_symbol(char const* name) {
    return reinterpret_cast<Function>(cuda::load_driver().value()->library.symbol(name));
}

TEST_F(launch, is_captured_into_a_graph) {
    auto const begin = driver_symbol<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
    auto const end = driver_symbol<CUresult (*)(CUstream, CUgraph*)>("cuStreamEndCapture");
    auto const instantiate =
        driver_symbol<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags");
    auto const run = driver_symbol<CUresult (*)(CUgraphExec, CUstream)>("cuGraphLaunch");
    auto const destroy = driver_symbol<CUresult (*)(CUgraph)>("cuGraphDestroy");
    auto const destroy_exec = driver_symbol<CUresult (*)(CUgraphExec)>("cuGraphExecDestroy");
    ASSERT_TRUE(begin != nullptr && end != nullptr && instantiate != nullptr && run != nullptr);
    auto const context = cuda::context::of(0).value();
    auto const scope = cuda::current_context::enter(*context).value();  // for the graph: launches do without
    stream_->wait_sync().value();

    ASSERT_EQ(begin(stream_->get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) (*add_)(*stream_, shape, memory_->as<unsigned>(), 1, count).value();
    CUgraph graph = nullptr;
    ASSERT_EQ(end(stream_->get(), &graph), CUDA_SUCCESS);
    EXPECT_THAT(data(), Each(0U)) << "captured, not run";

    CUgraphExec executable = nullptr;
    ASSERT_EQ(instantiate(&executable, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(run(executable, stream_->get()), CUDA_SUCCESS);
    EXPECT_THAT(data(), Each(6U));
    destroy_exec(executable);
    destroy(graph);
}

}  // namespace
}  // namespace kiln::device_tests
