// SPDX-License-Identifier: Apache-2.0
//
// Measured crossovers, in a file beside the cache, one per device and driver:
//     <cache>/calibration/GPU-01234567-…-13000.json
//     {"format": 1, "device": "NVIDIA H200", "driver": 13000, "crossovers": [{"operation": "reduce", "shape": "pairwise", "items": 4096}]}
// A missing or unreadable file means that nothing was measured.
#pragma once

#include "base/check.hpp"

#include <kiln/runtime/operation.hpp>

#include <filesystem>
#include <map>

namespace kiln::runtime {

struct calibration {
    std::string device = {};
    int driver = 0;
    std::map<std::pair<std::string, call_shape>, std::uint64_t> crossovers = {};

    [[nodiscard]] std::optional<std::uint64_t> find(std::string_view operation, call_shape shape) const;
};

[[nodiscard]] std::filesystem::path calibration_file(std::filesystem::path const& cache, device_info const& gpu);
// What such a file says and how it is written; `origin` is named in errors. errc::corrupt for a text that is no calibration.
[[nodiscard]] result<calibration> parse_calibration(std::string_view text, std::string_view origin);
[[nodiscard]] std::string text_of(calibration const& what);
[[nodiscard]] result<std::optional<calibration>> read_calibration(std::filesystem::path const& file);
[[nodiscard]] result<void> write_calibration(std::filesystem::path const& file, calibration const& what);

// Of this process's cache and GPU; empty where there is none. Read once; forget_calibration() reads it again.
[[nodiscard]] std::optional<std::uint64_t> measured(std::string_view operation, call_shape shape);
void forget_calibration();

}  // namespace kiln::runtime
