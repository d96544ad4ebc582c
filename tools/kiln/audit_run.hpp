// SPDX-License-Identifier: Apache-2.0
// A program run under the recorder: what is put around it, and where the recording goes.
#pragma once

#include "run_child.hpp"
#include "temporary_recording.hpp"

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <utility>
#include <vector>

namespace kiln::cli {

struct audit_run {
    std::vector<std::string> program;
    std::string keep = {}, label = {}, scale = {};
    std::string hook = "audit";
    int level = 1;
};

// A directory of ours alone; removed again unless the user named it.
class recording_place {
public:
    // errc::invalid_argument where the named one has something in it already. Where none was named and none can be made, nothing is
    // recorded: the program is to run all the same.
    [[nodiscard]] static result<recording_place> make(std::string const& keep);
    recording_place(recording_place&&) noexcept = default;
    recording_place& operator=(recording_place&&) = delete;
    ~recording_place();
    [[nodiscard]] std::filesystem::path const& path() const { return path_; }  // empty: there is none
    [[nodiscard]] std::string const& why_none() const { return why_none_; }
    // The program put something else there, a link to another folder perhaps: it is neither read nor written.
    [[nodiscard]] bool was_replaced() const;
    // From here on, which is after the program: a temporary one goes also where a signal ends us.
    void remove_on_signals();
    // Of a program that was not started: a named directory that was made for it goes again.
    void take_back() const;

private:
    explicit recording_place(std::filesystem::path path) : path_{std::move(path)} {}
    void remember();
    std::filesystem::path path_;
    std::pair<::dev_t, ::ino_t> is_{};
    std::string why_none_;
    bool was_made_ = false;  // a named one, just now
    std::unique_ptr<temporary_recording> temporary_;
    std::unique_ptr<removal_by_signals> removal_;
};

// Nobody may be reading what we say, and a file may be at its limit: while this lives, that is an error and not our end. Never around the
// program itself, which would inherit it.
class unbroken_by_writing {
public:
    unbroken_by_writing();
    ~unbroken_by_writing();
    unbroken_by_writing(unbroken_by_writing const&) = delete;
    unbroken_by_writing& operator=(unbroken_by_writing const&) = delete;

private:
    struct ::sigaction pipe_ {
    }, size_{};
};

struct audited_run {
    int status = 0;     // as waitpid gives it
    std::string about;  // what run.json says, or would where it cannot be written
};
// Runs it to its end and writes run.json. One line on standard error where nothing can be recorded.
[[nodiscard]] result<audited_run> run_audited(audit_run const& what, recording_place const& to);

// Where the recorder and the companion are; empty where this build has none.
[[nodiscard]] std::filesystem::path audit_folder();

}  // namespace kiln::cli
