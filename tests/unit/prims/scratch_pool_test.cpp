// SPDX-License-Identifier: Apache-2.0
#include "prims/scratch_pool.hpp"

#include "unit/cuda/fake_driver_test.hpp"

#include <set>
#include <thread>

namespace kiln::prims {

namespace {

using testing::HasSubstr;

// A driver that hands out addresses, knows which streams capture, and counts what is alive.
struct fake_memory {
    std::mutex mutex;
    std::set<CUdeviceptr> alive;
    CUdeviceptr next = 1 << 20;
    int allocations = 0;
    std::map<CUstream, cuuint64_t> capturing;
};
fake_memory* memory = nullptr;

CUresult allocate(CUdeviceptr* out, std::size_t n) {
    std::scoped_lock const lock{memory->mutex};
    *out = memory->next;
    memory->next += (n + 4095) / 4096 * 4096;
    memory->alive.insert(*out);
    ++memory->allocations;
    return CUDA_SUCCESS;
}
CUresult free(CUdeviceptr at) {
    std::scoped_lock const lock{memory->mutex};
    return memory->alive.erase(at) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

class scratch : public cuda::fake_driver_test {
protected:
    scratch() {
        memory = &memory_;
        auto api = cuda::fake::table();
        api.mem_alloc = allocate;
        api.mem_free = free;
        api.mem_alloc_async = [](CUdeviceptr* out, std::size_t n, CUstream) { return allocate(out, n); };
        api.mem_free_async = [](CUdeviceptr at, CUstream) { return free(at); };
        api.stream_get_id = [](CUstream s, unsigned long long* id) {
            return *id = reinterpret_cast<std::uintptr_t>(s), CUDA_SUCCESS;
        };
        api.stream_get_capture_info = [](CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id) {
            auto const at = memory->capturing.find(s);
            *status = at == memory->capturing.end() ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
            *id = at == memory->capturing.end() ? 0 : at->second;
            return CUDA_SUCCESS;
        };
        pool_.emplace(context_on(table(std::move(api))));
    }
    ~scratch() override { pool_.reset(); }

    static stream_ref stream(std::uintptr_t number) { return {cuda::fake::handle<CUstream>(number)}; }
    std::byte* take(std::uintptr_t number, std::size_t bytes) {
        return pool_->acquire(stream(number), bytes, {}).value().get();
    }

    fake_memory memory_;
    std::optional<scratch_pool> pool_;
};

}  // namespace

TEST_F(scratch, is_kept_and_grows_to_the_largest_call) {
    auto* const first = take(1, 1000);
    EXPECT_EQ(take(1, 10), first);
    EXPECT_EQ(take(1, 60'000), first);  // within what the least block holds
    EXPECT_EQ(memory_.allocations, 1);
    take(1, 1 << 20);
    EXPECT_EQ(memory_.allocations, 2);
    EXPECT_EQ(memory_.alive.size(), 2U);  // the small first one cannot be freed behind the work that uses it
    take(1, 4 << 20);
    EXPECT_EQ(memory_.allocations, 3);
    EXPECT_EQ(memory_.alive.size(), 2U);  // the second was
    for (int i = 0; i < 100; ++i) take(1, 1 << 20);
    EXPECT_EQ(memory_.allocations, 3);
}

TEST_F(scratch, of_a_first_call_does_not_wake_the_drivers_pool) {
    static int ordered;
    ordered = 0;
    auto api = cuda::fake::table();
    api.mem_alloc = allocate;
    api.mem_free = free;
    api.mem_alloc_async = [](CUdeviceptr* out, std::size_t n, CUstream) { return ++ordered, allocate(out, n); };
    api.mem_free_async = [](CUdeviceptr at, CUstream) { return free(at); };
    scratch_pool pool{context_on(table(std::move(api)))};
    EXPECT_TRUE(pool.acquire(stream(1), 1000, {}));
    EXPECT_TRUE(pool.acquire(stream(2), 9'000'000, {})) << "as for a sort of a million pairs";
    EXPECT_EQ(ordered, 0);
    EXPECT_TRUE(pool.acquire(stream(3), 40'000'000, {}));
    EXPECT_EQ(ordered, 1);
}

TEST_F(scratch, is_never_shared_by_two_streams) {
    auto const* const one = take(1, 1000);
    EXPECT_NE(take(2, 1000), one);
    EXPECT_EQ(take(1, 1000), one);
}

TEST_F(scratch, is_not_touched_when_none_is_needed_or_the_caller_has_some) {
    EXPECT_EQ(take(1, 0), nullptr);
    alignas(256) static std::byte own[512];
    EXPECT_EQ(pool_->acquire(stream(1), 512, {own, 512}).value().get(), own);
    EXPECT_EQ(pool_->acquire(stream(1), 513, {own, 512}).error().code(), errc::invalid_argument);
    EXPECT_THAT(pool_->acquire(stream(1), 16, {own + 1, 511}).error().message(), HasSubstr("aligned"));
    EXPECT_EQ(memory_.allocations, 0);
}

TEST_F(scratch, of_a_capture_was_reserved_for_it_and_stays_its_own) {
    auto* const eager = take(1, 1000);
    memory_.capturing[stream(1).get()] = 42;
    auto const refused = pool_->acquire(stream(1), 1000, {});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("reserve()"));
    EXPECT_FALSE(pool_->reserve(stream(1), 1000));  // too late
    memory_.capturing.clear();

    EXPECT_TRUE(pool_->reserve(stream(1), 5000));
    EXPECT_TRUE(pool_->reserve(stream(1), 1000));
    memory_.capturing[stream(1).get()] = 43;
    auto const before = memory_.allocations;
    auto* const captured = take(1, 5000);
    EXPECT_NE(captured, eager);
    EXPECT_EQ(take(1, 100), captured);  // the calls of one capture follow each other
    EXPECT_FALSE(pool_->acquire(stream(1), 6000, {}));
    EXPECT_EQ(memory_.allocations, before);

    // The next capture needs a reservation of its own, and what the first one used is kept for its graphs.
    memory_.capturing[stream(1).get()] = 44;
    EXPECT_FALSE(pool_->acquire(stream(1), 100, {}));
    memory_.capturing.clear();
    EXPECT_EQ(take(1, 1000), eager);
    EXPECT_TRUE(pool_->reserve(stream(1), 5000));
    memory_.capturing[stream(1).get()] = 45;
    EXPECT_NE(take(1, 5000), captured);
    EXPECT_TRUE(memory_.alive.contains(reinterpret_cast<CUdeviceptr>(captured)));
}

TEST_F(scratch, is_all_given_back_by_trimming) {
    take(1, 1000);
    take(2, 1000);
    EXPECT_TRUE(pool_->reserve(stream(2), 100));
    EXPECT_GT(pool_->held_bytes(), 0U);
    EXPECT_TRUE(pool_->trim_sync());
    EXPECT_TRUE(memory_.alive.empty());
    EXPECT_EQ(pool_->held_bytes(), 0U);
    take(1, 1000);
    EXPECT_EQ(memory_.alive.size(), 1U);
}

TEST_F(scratch, of_one_stream_is_held_by_one_call_at_a_time) {
    std::atomic<int> inside{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                auto const lease = pool_->acquire(stream(1), 1000, {}).value();
                EXPECT_EQ(inside.fetch_add(1), 0);
                inside.fetch_sub(1);
            }
        });
    }
}

TEST_F(scratch, that_cannot_be_had_is_an_error_and_nothing_else) {
    auto api = cuda::fake::table();
    api.mem_alloc = [](CUdeviceptr*, std::size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
    api.mem_alloc_async = nullptr;
    scratch_pool poor{context_on(table(std::move(api)))};
    EXPECT_EQ(poor.acquire(stream(1), 1000, {}).error().code(), errc::out_of_memory);
}

}  // namespace kiln::prims
