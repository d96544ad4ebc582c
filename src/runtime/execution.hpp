// SPDX-License-Identifier: Apache-2.0
// What <kiln/runtime/execution.hpp> remembers, for dispatch and tests.
#pragma once

#include "base/check.hpp"

#include <kiln/runtime/execution.hpp>

#include <functional>

namespace kiln::runtime {

// How the GPU is asked for; a test puts its own in place and forgets the remembered answer with it.
using gpu_probe = std::function<result<device_info>()>;
void set_gpu_probe(gpu_probe how);

// The remembered answer about the GPU, without a copy.
[[nodiscard]] result<device_info> const& gpu_answer();

// kiln::f32_per_f64 of that GPU, remembered with the answer; 0 where it does not say. A test sets one of its own.
[[nodiscard]] int gpu_f32_per_f64();
void set_f32_per_f64(std::optional<int> ratio);

// Reads the environment and the file again: for tests, which change them.
void reload_settings();

}  // namespace kiln::runtime
