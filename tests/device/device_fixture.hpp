// SPDX-License-Identifier: Apache-2.0
// Skips, by name, where there is no GPU.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::device_tests {

class on_device : public testing::Test {
protected:
    void SetUp() override {
        auto const all = devices();
        if (!all) GTEST_SKIP() << all.error().message();
        info_ = all->front();
    }
    device_info info_;
};

}  // namespace kiln::device_tests
