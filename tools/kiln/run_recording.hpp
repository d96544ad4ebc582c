// SPDX-License-Identifier: Apache-2.0
//
// The file that `kiln run --record` writes, and the folders that belong to it. What is recorded into one file is one record: by ranks that
// run at the same time, or by one run after the other, each adds to what is there.
#pragma once

#include "command.hpp"

#include <filesystem>

namespace kiln::cli {

class run_recording {
public:
    run_recording() = default;  // nothing is recorded
    // errc::invalid_argument where the file is something else: nothing of it would be left.
    [[nodiscard]] static result<run_recording> open(std::string file);

    [[nodiscard]] explicit operator bool() const noexcept { return !file_.empty(); }
    [[nodiscard]] std::filesystem::path requests() const { return std::filesystem::absolute(file_ + ".requests"); }
    [[nodiscard]] std::filesystem::path caches() const { return std::filesystem::absolute(file_ + ".caches"); }
    // There was a record in it before.
    [[nodiscard]] bool adds() const noexcept { return adds_; }

    [[nodiscard]] result<void> add(json record) const;

private:
    std::string file_;
    bool adds_ = false;
};

}  // namespace kiln::cli
