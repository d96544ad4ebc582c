// SPDX-License-Identifier: Apache-2.0
// What is done, what is left and how long that may take, told to whoever asked to hear it. Safe from any thread; telling
// costs the same however much is left.
#pragma once

#include <kiln/status.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln::warmup {

class progress_board {
public:
    // What a thing was expected to cost when it was added: given back when it is settled.
    using expectation = std::optional<double>;
    struct outcome {
        double compile_ms = 0;  // 0: nothing was compiled
        int at_once = 1;        // how many can be compiled at a time
    };

    // What a thing is known to cost, from a profile.
    void expect(std::string const& name, double ms);
    [[nodiscard]] expectation add(std::string const& name);
    // Callbacks run here, on the caller's thread.
    void settle(std::string const& name, work_state state, expectation expected, outcome how);
    [[nodiscard]] progress_token on_progress(std::function<void(progress_report const&)> callback);

private:
    std::mutex mutex_;
    std::map<std::string, double> costs_;
    std::uint64_t total_ = 0, done_ = 0;
    double left_ms_ = 0;              // of what is left and has a known cost
    std::uint64_t left_unknown_ = 0;  // things left without one
    double compiled_ms_ = 0;          // of what was compiled here
    std::uint64_t compiled_ = 0;

    std::mutex listeners_mutex_;
    std::vector<std::weak_ptr<std::function<void(progress_report const&)>>> listeners_;
};

}  // namespace kiln::warmup
