// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.hpp"
#include "device/device_fixture.hpp"
#include "device/ptx.hpp"

#include <cstdlib>
#include <numeric>
#include <thread>

namespace kiln::device_tests {
namespace {

using testing::MatchesRegex;

class devices_test : public on_device {};

TEST_F(devices_test, are_described) {
    EXPECT_FALSE(info_.name.empty());
    EXPECT_THAT(info_.target(), MatchesRegex("sm_[0-9]{2,3}"));
    EXPECT_THAT(info_.uuid_text(), MatchesRegex("GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
    EXPECT_GT(info_.memory_bytes, std::uint64_t{1} << 30);
    EXPECT_GT(info_.multiprocessors, 0);
    EXPECT_GE(info_.driver_version, 12000);
    EXPECT_EQ(device(0).value().uuid, info_.uuid);
    EXPECT_EQ(device(999).error().code(), errc::no_device);
}

TEST_F(devices_test, one_context_per_device_and_it_is_the_runtimes) {
    auto const first = cuda::context::of(0).value();
    EXPECT_EQ(cuda::context::of(0).value(), first);
    EXPECT_EQ(cuda::context::make(cuda::start_driver().value(), 0).value()->get(), first->get());
}

TEST_F(devices_test, every_gpu_works_by_its_number) {
    for (auto const& each : devices().value()) {
        auto const s = stream::make(each.ordinal).value();
        auto const nothing = load_kernel(kernels_image(), "nothing", each.ordinal).value().typed<void()>().value();
        EXPECT_EQ(s.device(), each.ordinal);
        EXPECT_EQ(nothing.device(), each.ordinal);
        auto const done = nothing(s, {});
        EXPECT_TRUE(done) << done.error().message();
        EXPECT_TRUE(s.wait_sync());
    }
}

TEST_F(devices_test, the_threads_context_is_left_alone) {
    auto const api = cuda::start_driver().value();
    std::thread{[&] {
        auto memory = device_memory::make(16).value();
        memory.fill(nullptr, 1).value();
        CUcontext current = nullptr;
        EXPECT_EQ(api->ctx_get_current(&current), CUDA_SUCCESS);
        EXPECT_EQ(current, nullptr);
    }}.join();
}

class stream_test : public on_device {};

TEST_F(stream_test, runs_dry) {
    auto const s = stream::make().value();
    EXPECT_TRUE(s.idle().value());
    EXPECT_TRUE(s.wait_sync());
    EXPECT_NE(s.get(), nullptr);
}

TEST_F(stream_test, memory_comes_back_as_it_went) {
    auto const s = stream::make().value();
    std::vector<unsigned> there(100000);
    std::iota(there.begin(), there.end(), 7U);
    auto memory = device_memory::make(there.size() * sizeof(unsigned)).value();
    memory.upload_sync(s, there).value();
    std::vector<unsigned> back(there.size());
    memory.download_sync(s, back).value();
    EXPECT_EQ(there, back);
}

TEST_F(stream_test, more_memory_than_there_is) {
    auto const none = device_memory::make(std::size_t{1} << 50);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), errc::out_of_memory);
    EXPECT_TRUE(device_memory::make(0)) << "nothing is not too much";
}

TEST_F(stream_test, events_time_the_device) {
    auto const s = stream::make().value();
    auto memory = device_memory::make(std::size_t{64} << 20).value();
    auto begin = device_event::make().value();
    auto end = device_event::make().value();
    begin.record(s).value();
    for (int i = 0; i < 20; ++i) memory.fill(s, static_cast<std::uint8_t>(i)).value();
    end.record(s).value();
    end.wait_sync().value();
    EXPECT_TRUE(end.reached().value());
    auto const ms = elapsed_ms(begin, end).value();
    EXPECT_GT(ms, 0.0);
    EXPECT_LT(ms, 10000.0);
}

TEST_F(stream_test, events_without_timing_cannot_be_subtracted) {
    auto const s = stream::make().value();
    auto begin = device_event::make(0, event_timing::off).value();
    auto end = device_event::make(0, event_timing::off).value();
    begin.record(s).value();
    end.record(s).value();
    end.wait_sync().value();
    EXPECT_FALSE(elapsed_ms(begin, end));
}

// Handles that die with the process: one made before the driver was started, one after.
struct held {
    std::optional<stream> on;
    std::optional<untyped_kernel> run;
    std::optional<device_memory> memory;
    void fill() {
        on.emplace(stream::make().value());
        run.emplace(load_kernel(kernels_image(), "nothing").value());
        memory.emplace(device_memory::make(64).value());
    }
};
held& early = *[] {
    static held instance;
    return &instance;
}();

class exit_test : public on_device {};

TEST_F(exit_test, statics_outlive_the_driver_without_harm) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            early.fill();
            static held late;
            late.fill();
            std::exit(0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kiln::device_tests
