// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace kiln::cli {

progress::progress(std::string title, std::size_t total, style how)
    : title_{std::move(title)},
      total_{total},
      terminal_{::isatty(STDERR_FILENO) == 1},
      silent_{how == style::silent || (how == style::on_a_terminal && !terminal_)} {
    if (!silent_ && terminal_) draw("");
}

progress::~progress() {
    if (!silent_ && terminal_) std::fputs("\r\033[K", stderr);
}

void progress::step(std::string_view what) {
    std::lock_guard const lock{mutex_};
    ++done_;
    if (silent_) return;
    if (terminal_) draw(what);
    else std::fputs(fmt::format("{} {}/{} {}\n", title_, done_, total_, what).c_str(), stderr);
}

void progress::draw(std::string_view what) {
    constexpr std::size_t width = 30;
    auto const filled = total_ == 0 ? width : width * done_ / total_;
    std::string bar;
    for (std::size_t i = 0; i < width; ++i) bar += i < filled ? "█" : "░";
    std::fputs(fmt::format("\r\033[K{} {} {}/{} {:.40}", title_, bar, done_, total_, what).c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace kiln::cli
