// SPDX-License-Identifier: Apache-2.0
#include "warmup/progress_board.hpp"

#include <algorithm>

namespace kiln::warmup {

void progress_board::expect(std::string const& name, double ms) {
    std::lock_guard const lock{mutex_};
    if (ms > 0) costs_[name] = ms;
}

progress_board::expectation progress_board::add(std::string const& name) {
    std::lock_guard const lock{mutex_};
    ++total_;
    auto const known = costs_.find(name);
    if (known == costs_.end()) return ++left_unknown_, std::nullopt;
    left_ms_ += known->second;
    return known->second;
}

void progress_board::settle(std::string const& name, work_state state, expectation expected, outcome how) {
    progress_report what{.name = name, .state = state};
    {
        std::lock_guard const lock{mutex_};
        ++done_;
        if (expected) left_ms_ -= *expected;
        else --left_unknown_;
        if (how.compile_ms > 0) {
            compiled_ms_ += how.compile_ms;
            ++compiled_;
        }
        double const usual = compiled_ > 0 ? compiled_ms_ / static_cast<double>(compiled_) : 0;
        what.done = done_;
        what.total = total_;
        what.remaining_ms =
            std::max(0.0, left_ms_ + usual * static_cast<double>(left_unknown_)) / std::max(1, how.at_once);
    }
    std::lock_guard const lock{listeners_mutex_};
    std::erase_if(listeners_, [&](auto const& weak) {
        auto const callback = weak.lock();
        if (callback) (*callback)(what);
        return !callback;
    });
}

progress_token progress_board::on_progress(std::function<void(progress_report const&)> callback) {
    auto shared = std::make_shared<std::function<void(progress_report const&)>>(std::move(callback));
    std::lock_guard const lock{listeners_mutex_};
    listeners_.push_back(shared);
    return shared;
}

}  // namespace kiln::warmup
