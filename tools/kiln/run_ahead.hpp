// SPDX-License-Identifier: Apache-2.0
//
// What `kiln run` does while a program starts: it reads the headers and answers that the program's last run needed, and leaves a
// list of what the headers are, so that the program has to look no further than their times. In this process: the program
// has no thread of ours.
#pragma once

#include "intercept/run_log.hpp"

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

namespace kiln::cli {

class run_ahead {
public:
    // `folder` is the private one; empty: nothing is read ahead and nothing remembered. `program` is its name.
    run_ahead(std::filesystem::path const& folder, std::string_view program);
    ~run_ahead();
    run_ahead(run_ahead const&) = delete;
    run_ahead& operator=(run_ahead const&) = delete;

    // Where the list of known headers will be. Empty: nowhere.
    [[nodiscard]] std::filesystem::path const& known() const noexcept { return known_; }

    // Begins to read. Not before the program was started: it should not wait for us, and a process with threads should not fork.
    void start();
    // For the next run.
    void remember(intercept::run_log const& log);

private:
    void read_all();

    std::filesystem::path memory_, known_;
    std::vector<std::string> paths_;
    std::vector<store::address> entries_;
    std::set<std::string> gone_;      // of the paths, those that could not be read
    std::atomic<bool> ended_{false};  // the program: nobody needs it any more
    std::atomic<bool> has_list_{false};
    std::thread reader_;
};

}  // namespace kiln::cli
