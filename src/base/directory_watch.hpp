// SPDX-License-Identifier: Apache-2.0
//
// Whether anything has happened to files since they were looked at, asked with two system calls for as many of them as one likes
// (inotify). Not for programs that live for a moment: the system takes several milliseconds to end a process that has watched.
#pragma once

#include "base/file_state.hpp"
#include "base/fork_guard.hpp"

#include <filesystem>
#include <string>
#include <unordered_map>

namespace kiln::base {

class directory_watch {
public:
    directory_watch() = default;
    ~directory_watch();
    directory_watch(directory_watch const&) = delete;
    directory_watch& operator=(directory_watch const&) = delete;

    // A user may have 128 of these in all programs together, so few processes have one: those that have one of the places in this
    // file, which is made. Without a file nobody watches.
    void take_place_in(std::filesystem::path file);

    // The same number as long as nobody has opened, written or changed what is watched; then another, in which nothing is watched
    // yet. 0: there is no watching here.
    [[nodiscard]] std::uint64_t period();

    // From now on what happens to a file, or in a directory, ends the period. `seen` is what was seen there before and is asked for
    // again, so that nothing else is watched. False: look yourself, because nobody would tell (another machine may write to it).
    // Whoever holds a mapping for writing from before may store through it unseen; whoever writes, or opens it later, is seen.
    [[nodiscard]] bool add(std::string const& path, file_state const& seen, std::uint64_t period);

private:
    enum class standing { not_begun, begun, impossible };
    [[nodiscard]] bool has_begun();  // begins where it has not
    [[nodiscard]] bool takes_place();
    void end() noexcept;

    forkable_mutex mutex_;  // guards what follows
    std::filesystem::path places_;
    standing how_ = standing::not_begun;
    int events_ = -1;
    int place_ = -1;
    std::uint64_t process_ = 0;  // by fork_generation()
    std::uint64_t period_ = 0;
    std::unordered_map<std::string, file_state> watched_;
};

}  // namespace kiln::base
