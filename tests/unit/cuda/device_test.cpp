// SPDX-License-Identifier: Apache-2.0
#include "unit/cuda/fake_driver_test.hpp"

namespace kiln::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class device_test : public fake_driver_test {
protected:
    device_test() { static_cast<void>(driver_.take()); }
    std::shared_ptr<driver_api const> api_ = table();
    std::shared_ptr<context const> where_ = context_on(api_);
};

TEST_F(device_test, a_stream_keeps_its_context_alive_and_goes_first) {
    auto made = kiln::stream::make(std::move(where_));
    ASSERT_TRUE(made) << made.error().message();
    {
        auto const s = *std::move(made);
        EXPECT_EQ(s.device(), 0);
        EXPECT_EQ(stream_ref{s}.get(), s.get());
        static_cast<void>(driver_.take());
    }
    EXPECT_THAT(driver_.take(), ElementsAre("stream_destroy", "release 0"));
    EXPECT_THAT(fake::stack, IsEmpty()) << "a destructor left a context current";
}

TEST_F(device_test, a_moved_from_stream_releases_nothing) {
    auto first = kiln::stream::make(where_).value();
    auto second = kiln::stream::make(where_).value();
    static_cast<void>(driver_.take());
    second = std::move(first);
    EXPECT_THAT(driver_.take(), ElementsAre("stream_destroy"));
}

TEST_F(device_test, a_stream_that_is_busy_is_not_an_error) {
    auto const s = kiln::stream::make(where_).value();
    EXPECT_TRUE(s.idle().value());
    driver_.failing["stream_query"] = CUDA_ERROR_NOT_READY;
    EXPECT_FALSE(s.idle().value());
    driver_.failing["stream_query"] = CUDA_ERROR_LAUNCH_FAILED;
    EXPECT_FALSE(s.idle());
}

TEST_F(device_test, null_is_the_default_stream) {
    EXPECT_EQ(stream_ref{}.get(), nullptr);
    EXPECT_EQ(stream_ref{nullptr}.get(), nullptr);
}

TEST_F(device_test, events_record_query_and_time) {
    {
        auto begin = device_event::make(where_).value();
        auto end = device_event::make(where_, event_timing::off).value();
        EXPECT_TRUE(begin.record(fake::handle<CUstream>(9)));
        EXPECT_TRUE(begin.reached().value());
        driver_.failing["event_query"] = CUDA_ERROR_NOT_READY;
        EXPECT_FALSE(end.reached().value());
        EXPECT_TRUE(end.wait_sync());
        EXPECT_DOUBLE_EQ(elapsed_ms(begin, end).value(), 1.5);
    }
    EXPECT_THAT(driver_.take(),
                ElementsAre("event_create 0", "event_create 2", "event_record 9", "event_query", "event_query",
                            "event_synchronize", "event_elapsed_time", "event_destroy", "event_destroy"));
}

TEST_F(device_test, memory_copies_in_the_order_of_the_stream_and_waits_for_it) {
    static_cast<void>(driver_.take());
    {
        auto memory = device_memory::make(16, where_).value();
        std::vector<int> data(4);
        EXPECT_TRUE(memory.upload_sync(fake::handle<CUstream>(9), data));
        EXPECT_TRUE(memory.fill({}, 0));
        EXPECT_TRUE(memory.download_sync(fake::handle<CUstream>(9), data));
    }
    EXPECT_THAT(driver_.take(), ElementsAre("mem_alloc 16", "htod 16 on 9", "stream_synchronize", "memset",
                                            "dtoh 16 on 9", "stream_synchronize", "mem_free"));
}

TEST_F(device_test, memory_refuses_more_than_it_holds) {
    auto memory = device_memory::make(4, where_).value();
    std::vector<int> two(2);
    static_cast<void>(driver_.take());
    EXPECT_EQ(memory.upload_sync({}, two).error().code(), errc::invalid_argument);
    EXPECT_EQ(memory.download_sync({}, two).error().code(), errc::invalid_argument);
    EXPECT_THAT(driver_.take(), IsEmpty());
}

TEST_F(device_test, memory_that_is_not_there_names_size_and_device) {
    driver_.failing["mem_alloc"] = CUDA_ERROR_OUT_OF_MEMORY;
    auto const none = device_memory::make(1U << 20, where_);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), errc::out_of_memory);
    EXPECT_THAT(none.error().message(), HasSubstr("1048576 bytes on device 0"));
}

TEST_F(device_test, after_exit_handles_die_quietly) {
    {
        auto const s = kiln::stream::make(where_).value();
        auto const e = device_event::make(where_).value();
        auto const m = device_memory::make(4, where_).value();
        where_.reset();
        static_cast<void>(driver_.take());
        api_->state->exiting = true;
    }
    EXPECT_THAT(driver_.take(), IsEmpty());
    EXPECT_EQ(api_->state->unreleased, 4U) << "stream, event, memory and the context";
}

}  // namespace
}  // namespace kiln::cuda
