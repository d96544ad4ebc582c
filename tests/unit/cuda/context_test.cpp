// SPDX-License-Identifier: Apache-2.0
#include "unit/cuda/fake_driver_test.hpp"

namespace kiln::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class context_test : public fake_driver_test {};

TEST_F(context_test, devices_are_described) {
    auto const all = list_devices(*table());
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 2U);
    auto const& second = (*all)[1];
    EXPECT_EQ(second.ordinal, 1);
    EXPECT_EQ(second.name, "Fake GPU");
    EXPECT_EQ(second.target(), "sm_80");
    EXPECT_EQ(second.multiprocessors, 132);
    EXPECT_EQ(second.memory_bytes, std::uint64_t{1} << 30);
    EXPECT_EQ(second.driver_version, 13000);
    EXPECT_EQ(second.uuid_text(), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
}

TEST_F(context_test, no_gpu_is_an_error_with_a_remedy) {
    driver_.device_count = 0;
    auto const none = list_devices(*table());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), errc::no_device);
    EXPECT_THAT(none.error().message(), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST_F(context_test, is_retained_once_and_released_once) {
    {
        auto const where = context_on(table(), 1);
        auto const same = where;
        EXPECT_EQ(where->device(), 1);
        EXPECT_THAT(driver_.take(), ElementsAre("device_get_count", "retain 1"));
    }
    EXPECT_THAT(driver_.take(), ElementsAre("release 1"));
}

TEST_F(context_test, a_device_that_does_not_exist) {
    for (int const ordinal : {-1, 2}) {
        auto const where = context::make(table(), ordinal);
        ASSERT_FALSE(where);
        EXPECT_EQ(where.error().code(), errc::no_device);
        EXPECT_THAT(where.error().message(), HasSubstr("the driver sees 2"));
    }
}

TEST_F(context_test, a_context_that_cannot_be_had_is_not_released) {
    driver_.failing["retain"] = CUDA_ERROR_OUT_OF_MEMORY;
    auto const where = context::make(table(), 0);
    ASSERT_FALSE(where);
    EXPECT_EQ(where.error().code(), errc::out_of_memory);
    EXPECT_THAT(driver_.take(), ElementsAre("device_get_count", "retain 0"));
}

TEST_F(context_test, a_scope_puts_back_what_was_current) {
    auto const where = context_on(table());
    auto const mine = fake::handle<CUcontext>(55);
    fake::stack.push_back(mine);
    {
        auto const scope = current_context::enter(*where);
        EXPECT_EQ(fake::stack.back(), where->get());
    }
    EXPECT_THAT(fake::stack, ElementsAre(mine));
}

TEST_F(context_test, after_exit_nothing_is_called_and_everything_is_counted) {
    auto const api = table();
    auto where = context_on(api);
    static_cast<void>(driver_.take());
    api->state->exiting = true;
    where.reset();
    EXPECT_THAT(driver_.take(), ElementsAre());
    EXPECT_EQ(api->state->unreleased, 1U);
}

TEST_F(context_test, a_driver_that_is_gone_is_not_called_again) {
    auto const api = table();
    auto first = context_on(api, 0);
    auto second = context_on(api, 1);
    static_cast<void>(driver_.take());
    driver_.failing["release"] = CUDA_ERROR_DEINITIALIZED;
    first.reset();
    second.reset();
    EXPECT_THAT(driver_.take(), ElementsAre("release 0"));
    EXPECT_EQ(api->state->unreleased, 2U);
}

}  // namespace
}  // namespace kiln::cuda
