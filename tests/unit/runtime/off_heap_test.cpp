// SPDX-License-Identifier: Apache-2.0
// Events and dispatch do not touch the heap. This program's operator new counts, thread by thread.
#include "runtime_fixture.hpp"

#include <kiln/runtime/pack_call.hpp>

#include <cstdlib>
#include <new>

namespace {
constinit thread_local std::size_t allocations = 0;
}  // namespace

// Not inlined: GCC would see malloc and free where it expects a pair of operators.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace kiln::runtime {
namespace {

constexpr std::array variants{variant{.name = "gpu", .where = place::gpu, .needs = "x"},
                              variant{.name = "cpu", .where = place::cpu}};
constinit operation const scan{"test_off_heap", "tests", {.pairwise = 1000}, variants};

class off_heap_test : public runtime_test {
protected:
    off_heap_test() { one_gpu(); }
    ~off_heap_test() override { scan.forget_measured(); }

    // Of the second call: the first may have something to look up.
    template <class Call>
    static std::size_t allocations_of(Call const& call) {
        call();
        auto const before = allocations;
        call();
        return allocations - before;
    }
};

TEST_F(off_heap_test, the_counter_counts) {
    EXPECT_GT(allocations_of([] { EXPECT_EQ(std::string(100, 'x').size(), 100u); }), 0u);
}

TEST_F(off_heap_test, an_event) {
    EXPECT_EQ(
        allocations_of([] {
            event_log::process().emit({.unit = "u", .detail = "neither short nor long, but a text of some length"});
        }),
        0u);
}

TEST_F(off_heap_test, a_decision_wherever_it_goes) {
    for (auto const where : {residency::host, residency::device}) {
        for (std::uint64_t const items : {std::uint64_t{10}, std::uint64_t{5000}}) {
            call_facts const call{.items = items, .type = scalar::f64, .where = where};
            EXPECT_EQ(allocations_of([&] { EXPECT_TRUE(decide(scan, call)); }), 0u) << items;
            EXPECT_EQ(allocations_of([&] { EXPECT_TRUE(operation_call::begin(scan, call)); }), 0u) << items;
        }
    }
}

TEST_F(off_heap_test, a_long_input_in_chunks) {
    auto const room = [](std::uint64_t items) -> result<std::uint64_t> { return std::min<std::uint64_t>(items, 2000); };
    int ran = 0;
    auto const run = [&](decision const&, std::uint64_t, std::uint64_t) { return ++ran, result<void>{}; };
    EXPECT_EQ(
        allocations_of([&] {
            EXPECT_TRUE(decide_chunks(scan, {.items = 6000, .type = scalar::i32}, {std::ref(room), std::ref(run)}));
        }),
        0u);
    EXPECT_EQ(ran, 6);
}

}  // namespace
}  // namespace kiln::runtime
