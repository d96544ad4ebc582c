// SPDX-License-Identifier: Apache-2.0
// What `kiln run` puts around a program: the loader's hook, a private folder for stand-ins, the log of the run, and the caches
// of frameworks. Only variables that the user has not set are set.
#pragma once

#include "base/config.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::cli {

enum class framework_use {
    recording,  // to be filled now and packed later
    filled,     // from a capsule
};

class run_environment {
public:
    explicit run_environment(base::config const& settings);
    ~run_environment();
    run_environment(run_environment const&) = delete;
    run_environment& operator=(run_environment const&) = delete;

    // Of this user alone, on a file system that programs may be run from and that is not full; empty where there is no such place.
    [[nodiscard]] std::filesystem::path const& private_folder() const noexcept { return private_; }
    // The same where the user wants it, full or not: a capsule may be large, and other places small or in memory.
    [[nodiscard]] std::filesystem::path const& folder_for_capsules() const noexcept { return first_; }
    // Why no program is answered; empty when it is.
    [[nodiscard]] std::string const& why_not() const noexcept { return why_not_; }
    // The program is to run without us.
    void take_hook_out();
    [[nodiscard]] std::filesystem::path const& log() const noexcept { return log_; }

    // Where `door` is, which is there as long as the run is, the log is made by who has something to write: most programs never
    // compile. Without one, which is an empty path, it is made now.
    void keep_log_at(std::filesystem::path const& door);

    void set(std::string const& variable, std::string value);
    // Answers beside those of the cache. Not one more of KILN_CACHE_PATH_RO: a colon in its path would make two of it.
    void use_capsule(std::filesystem::path const& cache);
    // Which of them the program is given: those whose variables the user has not set.
    std::vector<std::string> use_framework_caches(std::filesystem::path const& folder, framework_use how);

    [[nodiscard]] std::vector<std::string> variables() const;

private:
    void set_where_unset(std::string const& variable, std::string value);
    void make_absolute();
    void put_hook_in(std::filesystem::path const& standins);

    std::map<std::string, std::string> variables_;
    std::filesystem::path first_, private_;
    std::filesystem::path log_;
    std::string hook_, why_not_;
};

// Where the stand-ins are, in the build tree and installed; empty where this build has none.
[[nodiscard]] std::filesystem::path standin_folder();

}  // namespace kiln::cli
