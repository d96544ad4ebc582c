// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: a bar that redraws itself on a terminal, one plain line per finished item elsewhere.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln::cli {

class progress {
public:
    // on_a_terminal: where there is none, nothing; for many small things.
    enum class style { automatic, on_a_terminal, silent };
    progress(std::string title, std::size_t total, style how = style::automatic);
    // Removes the bar.
    ~progress();
    progress(progress const&) = delete;
    progress& operator=(progress const&) = delete;

    // One more is done. Safe from any thread.
    void step(std::string_view what);

private:
    void draw(std::string_view what);
    std::mutex mutex_;
    std::string title_;
    std::size_t total_;
    std::size_t done_ = 0;
    bool terminal_;
    bool silent_;
};

}  // namespace kiln::cli
