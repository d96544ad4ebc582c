// SPDX-License-Identifier: Apache-2.0
// A process-wide runtime as it was: mode, determinism, strictness and the answer about the GPU are put back.
#pragma once

#include "runtime/calibration.hpp"
#include "runtime/execution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kiln/event.hpp>
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

class runtime_test : public testing::Test {
protected:
    runtime_test() { no_gpu(); }
    ~runtime_test() override {
        set_execution_mode({});
        set_determinism({});
        set_strict({});
        set_gpu_probe({});
    }

    void no_gpu() {
        set_gpu_probe([this]() -> result<device_info> {
            ++probes_;
            return fail(errc::no_device, "no CUDA driver was found; install one");
        });
    }
    void one_gpu() {
        set_gpu_probe([this]() -> result<device_info> {
            ++probes_;
            return device_info{.ordinal = 0, .name = "Pretended GPU", .major = 9, .minor = 0};
        });
    }
    [[nodiscard]] static event last_of(event_kind kind) {
        auto const all = event_log::process().recent();
        for (auto at = all.rbegin(); at != all.rend(); ++at)
            if (at->kind == kind) return *at;
        return {};
    }

    int probes_ = 0;
};

}  // namespace kiln::runtime
