// SPDX-License-Identifier: Apache-2.0
// Fixture: a fake driver, its table and a context on device 0.
#pragma once

#include "unit/cuda/fake_driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cuda {

class fake_driver_test : public testing::Test {
protected:
    fake_driver_test() {
        fake::current = &driver_;
        fake::stack.clear();
    }
    ~fake_driver_test() override { fake::current = nullptr; }

    [[nodiscard]] std::shared_ptr<driver_api const> table(driver_api api = fake::table()) const {
        return std::make_shared<driver_api const>(std::move(api));
    }
    [[nodiscard]] static std::shared_ptr<context const> context_on(std::shared_ptr<driver_api const> api,
                                                                   int device = 0) {
        return context::make(std::move(api), device).value();
    }

    fake::driver driver_;
};

}  // namespace kiln::cuda
