// SPDX-License-Identifier: Apache-2.0
// Ranges for profilers (Nsight Systems and its like), in a domain "kiln", with KILN_NVTX=1: looking up, waiting, compiling, loading.
// Without it, or without a profiler, one load of a constant. Nothing is linked: a profiler brings its own library.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::cuda {

[[nodiscard]] bool nvtx_is_on() noexcept;

// "wait saxpy sm_90" on this thread, while it lives.
class nvtx_range {
public:
    nvtx_range(std::string_view what, std::string_view unit, std::string_view target) noexcept {
        if (nvtx_is_on()) [[unlikely]]
            push(what, unit, target);
    }
    ~nvtx_range() {
        if (open_) [[unlikely]]
            pop();
    }
    nvtx_range(nvtx_range const&) = delete;
    nvtx_range& operator=(nvtx_range const&) = delete;

private:
    void push(std::string_view what, std::string_view unit, std::string_view target) noexcept;
    static void pop() noexcept;
    bool open_ = false;
};

// One that may end on another thread than it began on. Not by two at once.
class nvtx_span {
public:
    nvtx_span() noexcept = default;
    ~nvtx_span() { end(); }
    nvtx_span(nvtx_span const&) = delete;
    nvtx_span& operator=(nvtx_span const&) = delete;

    void begin(std::string_view what, std::string_view unit, std::string_view target) noexcept;
    void end() noexcept;

private:
    std::uint64_t id_ = 0;
    bool open_ = false;
};

}  // namespace kiln::cuda
