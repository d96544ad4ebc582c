// SPDX-License-Identifier: Apache-2.0
#include "compile/precompiled_headers.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {
namespace {

base::digest prefix(int n) { return base::sha256_of(std::to_string(n)); }

precompiled_header of(std::uint64_t bytes) {
    precompiled_header out;
    out.bytes = bytes;
    return out;
}

TEST(precompiled_headers, the_least_recently_used_go_when_the_bound_is_reached) {
    precompiled_headers kept{100};
    kept.keep(prefix(1), of(40));
    kept.keep(prefix(2), of(40));
    EXPECT_NE(kept.find(prefix(1)), nullptr);
    kept.keep(prefix(3), of(40));
    EXPECT_EQ(kept.find(prefix(2)), nullptr);
    EXPECT_NE(kept.find(prefix(1)), nullptr);
    EXPECT_NE(kept.find(prefix(3)), nullptr);
    EXPECT_EQ(kept.bytes(), 80u);
    kept.keep(prefix(3), of(10));
    EXPECT_EQ(kept.bytes(), 50u) << "made anew, not twice";
    kept.keep(prefix(4), of(100));
    EXPECT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept.bytes(), 100u);
}

TEST(precompiled_headers, one_larger_than_the_bound_is_refused_and_drives_nobody_out) {
    precompiled_headers kept{100};
    kept.keep(prefix(1), of(90));
    kept.keep(prefix(2), of(101));
    EXPECT_NE(kept.find(prefix(1)), nullptr);
    EXPECT_EQ(kept.find(prefix(2)), nullptr);
    EXPECT_FALSE(kept.is_worth_making(prefix(2), precompiled_headers::headers::of_toolkit));
}

TEST(precompiled_headers, of_small_headers_none_are_made) {
    using enum precompiled_headers::headers;
    precompiled_headers kept{100};
    EXPECT_TRUE(kept.is_worth_making(prefix(1), of_toolkit));
    EXPECT_FALSE(kept.is_worth_making(prefix(1), of_others));
    kept.took(prefix(1), 40);
    EXPECT_FALSE(kept.is_worth_making(prefix(1), of_others));
    kept.took(prefix(1), 900);
    EXPECT_TRUE(kept.is_worth_making(prefix(1), of_others));
    kept.refuse(prefix(1));
    EXPECT_FALSE(kept.is_worth_making(prefix(1), of_others));
    EXPECT_FALSE(kept.is_worth_making(prefix(1), of_toolkit));
}

TEST(precompiled_headers, a_compiler_is_asked_once_and_believed) {
    static int asked;
    static std::size_t heap;
    asked = 0;
    cuda::nvrtc_api old, able, unwilling;
    able.get_pch_create_status = [](nvrtcProgram) { return NVRTC_SUCCESS; };
    able.set_pch_heap_size = [](std::size_t size) { return ++asked, heap = size, NVRTC_SUCCESS; };
    unwilling = able;
    unwilling.set_pch_heap_size = [](std::size_t) { return NVRTC_ERROR_OUT_OF_MEMORY; };
    precompiled_headers kept{100};
    EXPECT_FALSE(kept.works_with(old));
    EXPECT_FALSE(kept.works_with(unwilling));
    EXPECT_TRUE(kept.works_with(able));
    EXPECT_TRUE(kept.works_with(able));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(heap, 100u);
    precompiled_headers none{0};
    EXPECT_FALSE(none.works_with(able));
    EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace kiln::compile
