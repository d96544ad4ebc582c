// SPDX-License-Identifier: Apache-2.0
#include "runtime/signals.hpp"

#include "unit/cuda/fake_driver_test.hpp"

namespace kiln::runtime {

namespace {

// Numbers of streams are never used again, not by the next test either.
unsigned long long first_number = 1000;
bool capturing = false;

class signals_test : public cuda::fake_driver_test {
protected:
    signals_test() {
        first_number += 100;
        capturing = false;
    }
    static cuda::driver_api api() {
        auto t = cuda::fake::table();
        t.stream_get_id = [](CUstream s, unsigned long long* out) {
            return *out = first_number + reinterpret_cast<std::uintptr_t>(s), CUDA_SUCCESS;
        };
        t.stream_get_capture_info = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t* id) {
            *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
            if (capturing) *id = 5;
            return CUDA_SUCCESS;
        };
        return t;
    }
    static stream_ref stream(int number) { return {cuda::fake::handle<CUstream>(number)}; }
    std::vector<std::string> allocations() {
        auto calls = driver_.take();
        std::erase_if(calls, [](auto const& c) { return c != "memset" && !c.starts_with("mem_alloc"); });
        return calls;
    }
};

}  // namespace

TEST_F(signals_test, belong_to_a_stream_and_are_zeroed_once) {
    auto const where = context_on(table(api()));
    auto* const one = signals_of(*where, stream(1));
    ASSERT_NE(one, nullptr);
    EXPECT_THAT(allocations(), testing::Contains("memset").Times(1));
    EXPECT_EQ(signals_of(*where, stream(1)), one);
    EXPECT_THAT(allocations(), testing::IsEmpty());
    auto* const two = signals_of(*where, stream(2));
    EXPECT_GE(std::abs(two - one), std::ptrdiff_t{signal_words});
    EXPECT_THAT(allocations(), testing::Contains("memset").Times(1));
    EXPECT_EQ(signals_of(*where, stream(1)), one);
    EXPECT_EQ(signals_of(*where, stream(2)), two);
}

TEST_F(signals_test, are_not_for_captures) {
    auto const where = context_on(table(api()));
    EXPECT_NE(signals_of(*where, stream(1)), nullptr);
    capturing = true;
    EXPECT_EQ(signals_of(*where, stream(1)), nullptr);
    EXPECT_EQ(signals_of(*where, stream(2)), nullptr);
    capturing = false;
    EXPECT_NE(signals_of(*where, stream(1)), nullptr);
}

TEST_F(signals_test, are_done_without_where_streams_cannot_be_told_apart) {
    auto old = api();
    old.stream_get_id = nullptr;
    EXPECT_EQ(signals_of(*context_on(table(old)), stream(1)), nullptr);
}

TEST_F(signals_test, are_done_without_where_they_cannot_be_zeroed) {
    auto const where = context_on(table(api()));
    driver_.failing["memset"] = CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_EQ(signals_of(*where, stream(1)), nullptr);
    driver_.failing.clear();
    EXPECT_NE(signals_of(*where, stream(1)), nullptr);
}

}  // namespace kiln::runtime
