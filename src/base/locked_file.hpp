// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <sys/file.h>

namespace kiln::base {

// A file whose flock is held for a moment. It is let go of by itself, and not only closed: a child that was forked meanwhile has the same
// open file, and would hold the lock for as long as it lives.
class locked_file {
public:
    locked_file() = default;
    explicit locked_file(file_descriptor file) noexcept : file_{std::move(file)} {}
    locked_file(locked_file&&) noexcept = default;
    locked_file& operator=(locked_file&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~locked_file() {
        if (file_) sys().flock(file_.get(), LOCK_UN);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
    [[nodiscard]] int get() const noexcept { return file_.get(); }

private:
    file_descriptor file_;
};

}  // namespace kiln::base
