// SPDX-License-Identifier: Apache-2.0
// Memory tiers on a pretended device of 1000 bytes whose frees count once the device was waited for.
#include "runtime/device_pool.hpp"

#include "unit/cuda/fake_driver_test.hpp"

#include <kiln/activity.hpp>
#include <kiln/event.hpp>

namespace kiln::runtime {

using testing::HasSubstr;

namespace {

struct pretended_memory {
    std::size_t capacity = 1000, used = 0, queued_free = 0, kept = 0;
    std::map<CUdeviceptr, std::size_t> alive;
    CUdeviceptr next = 4096;
    int trims = 0;

    CUresult take(CUdeviceptr* out, std::size_t bytes) {
        if (used + kept + queued_free + bytes > capacity) {
            // A pool gives what it keeps to its own allocations.
            if (used + queued_free + bytes > capacity) return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *out = next += 4096;
        alive[*out] = bytes;
        used += bytes;
        return CUDA_SUCCESS;
    }
    void give(CUdeviceptr at) {
        used -= alive.at(at);
        queued_free += alive.at(at);
        alive.erase(at);
    }
};
pretended_memory* memory = nullptr;

}  // namespace

class device_pool_test : public cuda::fake_driver_test {
protected:
    device_pool_test() { memory = &memory_; }
    ~device_pool_test() override { memory = nullptr; }

    static cuda::driver_api api() {
        auto t = cuda::fake::table();
        t.mem_pool_create = [](CUmemoryPool* out, CUmemPoolProps const*) {
            return *out = cuda::fake::handle<CUmemoryPool>(55), cuda::fake::current->note("pool_create");
        };
        t.mem_pool_destroy = [](CUmemoryPool) { return cuda::fake::current->note("pool_destroy"); };
        t.mem_pool_set_attribute = [](CUmemoryPool, CUmemPool_attribute which, void* value) {
            return cuda::fake::current->note("pool_set " + std::to_string(which) + " " +
                                             std::to_string(*static_cast<cuuint64_t*>(value)));
        };
        t.mem_pool_get_attribute = [](CUmemoryPool, CUmemPool_attribute, void* out) {
            return *static_cast<cuuint64_t*>(out) = memory->used + memory->queued_free, CUDA_SUCCESS;
        };
        t.mem_pool_trim_to = [](CUmemoryPool, std::size_t) { return ++memory->trims, CUDA_SUCCESS; };
        t.mem_alloc_from_pool_async = [](CUdeviceptr* out, std::size_t n, CUmemoryPool, CUstream) {
            return memory->take(out, n);
        };
        t.mem_free_async = [](CUdeviceptr at, CUstream) { return memory->give(at), CUDA_SUCCESS; };
        t.mem_alloc = [](CUdeviceptr* out, std::size_t n) { return memory->take(out, n); };
        t.mem_alloc_managed = [](CUdeviceptr* out, std::size_t n, unsigned) {
            return cuda::fake::current->note("managed " + std::to_string(n)), memory->take(out, n);
        };
        t.mem_free = [](CUdeviceptr at) { return memory->give(at), CUDA_SUCCESS; };
        t.ctx_synchronize = []() { return memory->queued_free = 0, cuda::fake::current->note("ctx_synchronize"); };
        t.mem_get_info = [](std::size_t* free, std::size_t* total) {
            return *free = memory->capacity - memory->used - memory->queued_free, *total = memory->capacity,
                   CUDA_SUCCESS;
        };
        return t;
    }
    [[nodiscard]] std::unique_ptr<device_pool> pool(memory_tier tier, std::uint64_t limit = 0) const {
        return std::make_unique<device_pool>(context_on(table(api())), pool_settings{tier, limit});
    }
    static stream_ref stream() { return {cuda::fake::handle<CUstream>(7)}; }

    pretended_memory memory_;
};

TEST_F(device_pool_test, tier_a_is_a_pool_that_keeps_what_was_freed) {
    auto const p = pool(memory_tier::pool);
    EXPECT_EQ(name_of(p->tier()), "pool");
    EXPECT_THAT(driver_.take(), testing::Contains(HasSubstr("18446744073709551615"))) << "the release threshold";
    auto* const a = p->allocate(stream(), 100).value();
    EXPECT_EQ(p->status().in_use, 100u);
    p->deallocate(stream(), a, 100);
    auto const after = p->status();
    EXPECT_EQ(after.in_use, 0u);
    EXPECT_EQ(after.peak, 100u);
    EXPECT_EQ(after.allocations, 1u);
}

TEST_F(device_pool_test, sleeps_until_somebody_has_something_of_it) {
    auto const drivers = pool(memory_tier::pool);
    EXPECT_TRUE(drivers->is_asleep());
    auto* const first = drivers->allocate(stream(), 100).value();
    EXPECT_FALSE(drivers->is_asleep());
    drivers->deallocate(stream(), first, 100);
    EXPECT_FALSE(drivers->is_asleep());
    EXPECT_FALSE(pool(memory_tier::pool, 1 << 20)->is_asleep()) << "what is limited is counted";
}

TEST_F(device_pool_test, an_empty_allocation_is_one) {
    auto const p = pool(memory_tier::pool);
    auto* const a = p->allocate(stream(), 0).value();
    EXPECT_NE(a, nullptr);
    p->deallocate(stream(), a, 0);
    EXPECT_EQ(p->status().in_use, 0u);
}

TEST_F(device_pool_test, tier_a_out_of_memory_is_a_clear_error_and_life_goes_on) {
    auto const p = pool(memory_tier::pool);
    auto const refused = p->allocate(stream(), 2000);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::out_of_memory);
    EXPECT_THAT(refused.error().message(), HasSubstr("KILN_GPU_OOM_SAFETY=1"));
    EXPECT_EQ(p->status().in_use, 0u);
    EXPECT_EQ(memory_.trims, 0);
    EXPECT_TRUE(p->allocate(stream(), 100));
}

TEST_F(device_pool_test, the_limit_holds_and_the_error_names_it) {
    auto const p = pool(memory_tier::pool, 300);
    auto* const a = p->allocate(stream(), 200).value();
    EXPECT_THAT(p->allocate(stream(), 101).error().message(), HasSubstr("KILN_GPU_POOL_LIMIT"));
    EXPECT_TRUE(p->allocate(stream(), 100));
    p->deallocate(stream(), a, 200);
    EXPECT_TRUE(p->allocate(stream(), 200));
}

TEST_F(device_pool_test, tier_b_waits_trims_releases_caches_and_tries_again) {
    auto const p = pool(memory_tier::pool_safe);
    auto* const a = p->allocate(stream(), 900).value();
    p->deallocate(stream(), a, 900);  // freed on the stream, but the stream has not run
    static int released;
    released = 0;
    auto const told = device_pool::on_pressure([](int) { ++released; });
    auto const got = p->allocate(stream(), 500);
    EXPECT_TRUE(got);
    EXPECT_EQ(memory_.trims, 1);
    EXPECT_EQ(released, 1);
    EXPECT_EQ(p->status().retries, 1u);
    EXPECT_EQ(p->status().recovered, 1u);
}

TEST_F(device_pool_test, tier_b_gives_up_after_three_rounds) {
    auto const p = pool(memory_tier::pool_safe);
    auto const refused = p->allocate(stream(), 2000);
    EXPECT_EQ(refused.error().code(), errc::out_of_memory);
    EXPECT_EQ(memory_.trims, 3);
    EXPECT_EQ(p->status().retries, 3u);
    EXPECT_EQ(p->status().recovered, 0u);
}

TEST_F(device_pool_test, tier_c_takes_managed_memory_and_ignores_the_limit) {
    auto const p = pool(memory_tier::managed, 10);
    EXPECT_EQ(name_of(p->tier()), "managed");
    auto* const a = p->allocate(stream(), 100).value();
    EXPECT_THAT(driver_.take(), testing::Contains("managed 100"));
    p->deallocate(stream(), a, 100);
    EXPECT_TRUE(memory_.alive.empty());
}

TEST_F(device_pool_test, a_driver_without_pools_is_fallen_back_from_visibly) {
    driver_.failing["pool_create"] = CUDA_ERROR_NOT_SUPPORTED;
    auto const before = event_log::process().count(event_kind::fell_back);
    auto const p = pool(memory_tier::pool);
    EXPECT_EQ(name_of(p->tier()), "none");
    EXPECT_THAT(p->status().note, HasSubstr("cuMemPoolCreate"));
    EXPECT_EQ(event_log::process().count(event_kind::fell_back), before + 1);
    auto* const a = p->allocate(stream(), 100).value();
    p->deallocate(stream(), a, 100);
    EXPECT_TRUE(memory_.alive.empty());
}

TEST_F(device_pool_test, the_nth_allocation_can_be_made_to_fail) {
    auto const p = pool(memory_tier::pool);
    p->fail_at(3);
    EXPECT_TRUE(p->allocate(stream(), 1));
    EXPECT_TRUE(p->allocate(stream(), 1));
    EXPECT_EQ(p->allocate(stream(), 1).error().code(), errc::out_of_memory);
    EXPECT_TRUE(p->allocate(stream(), 1));
    auto const safe = pool(memory_tier::pool_safe);
    safe->fail_at(1, 2);
    EXPECT_TRUE(safe->allocate(stream(), 1));
    EXPECT_EQ(safe->status().retries, 2u);
}

TEST_F(device_pool_test, admission_says_what_would_fit) {
    auto const p = pool(memory_tier::pool, 600);
    auto* const a = p->allocate(stream(), 200).value();
    auto const yes = p->admit(400).value();
    EXPECT_TRUE(yes.admitted);
    auto const no = p->admit(500).value();
    EXPECT_FALSE(no.admitted);
    EXPECT_EQ(no.fits, 400u);
    p->deallocate(stream(), a, 200);
}

TEST_F(device_pool_test, a_program_s_own_allocator_is_used) {
    static std::vector<std::string> calls;
    calls.clear();
    device_pool p{context_on(table(api())),
                  user_allocator{.allocate = [](CUstream_st*, std::size_t n, std::size_t alignment) -> void* {
                                     calls.push_back("take " + std::to_string(n) + " " + std::to_string(alignment));
                                     return n > 500 ? nullptr : reinterpret_cast<void*>(0x10000);
                                 },
                                 .deallocate = [](CUstream_st*, void*, std::size_t n,
                                                  std::size_t) { calls.push_back("give " + std::to_string(n)); }}};
    auto* const a = p.allocate(stream(), 64).value();
    p.deallocate(stream(), a, 64);
    EXPECT_EQ(p.allocate(stream(), 501).error().code(), errc::out_of_memory);
    EXPECT_THAT(calls, testing::ElementsAre("take 64 256", "give 64", "take 501 256"));
    EXPECT_EQ(name_of(p.tier()), "user");
}

TEST_F(device_pool_test, a_device_that_is_lost_is_an_error_of_the_driver) {
    auto t = api();
    t.mem_alloc_from_pool_async = [](CUdeviceptr*, std::size_t, CUmemoryPool, CUstream) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    device_pool p{context_on(table(std::move(t))), pool_settings{}};
    EXPECT_EQ(p.allocate(stream(), 1).error().code(), errc::driver);
    EXPECT_EQ(p.status().in_use, 0u);
}

}  // namespace kiln::runtime
