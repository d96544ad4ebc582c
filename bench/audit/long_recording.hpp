// SPDX-License-Identifier: Apache-2.0
// A recording as a long training run would leave it, written without a GPU: to see how long reading and judging takes.
#pragma once

#include <cstdint>
#include <filesystem>

namespace kiln::bench {

struct long_recording {
    std::uint64_t launches = 0, records = 0, bytes = 0;
};

// Steps of ten kernels, a read of four bytes that is waited for, and the lines of what is always watched.
[[nodiscard]] long_recording write_long_recording(std::filesystem::path const& to, std::uint64_t launches);

}  // namespace kiln::bench
