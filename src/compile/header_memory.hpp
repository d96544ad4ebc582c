// SPDX-License-Identifier: Apache-2.0
//
// What headers say, as far as that is known without reading them again. Every hit on a unit with includes asks for hundreds of
// them, in every process. Each is read once for as long as it stays what it is (base/file_state.hpp), and once on
// a machine where a file is given to remember it in. Which of its directories has a toolkit's header is not asked again as
// long as none of them has changed; what it says is asked every time, unless toolkits are trusted. Safe from any thread, and
// across fork().
#pragma once

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/file_state.hpp"
#include "base/fork_guard.hpp"

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::compile {

using base::file_state;

class header_memory {
public:
    [[nodiscard]] static header_memory& process();

    // SHA-256 in hex of a regular file; empty where there is none, a directory of that name included. Any other reason why it
    // cannot be read is an error: it is there, and says something.
    [[nodiscard]] result<std::string> content_at(std::string const& path);

    struct found {
        std::string path;     // empty: in none of the directories
        std::string content;  // as above
    };
    // One question: what it has looked at it does not look at twice.
    class question {
    public:
        explicit question(header_memory& from) : from_{from}, now_{base::clock::now()} {}
        // The first of the directories that has it.
        [[nodiscard]] result<std::shared_ptr<found const>> in_toolkit(std::span<std::string const> directories,
                                                                      std::string const& path);

    private:
        [[nodiscard]] file_state const& state_of(std::string const& directory);
        header_memory& from_;
        base::time_point now_;
        std::unordered_map<std::string, file_state> directories_;
    };

    enum class access { read_write, read_only };
    // From now on what was read is also looked for, and by keep() kept, in this file of the user's own. An empty path ends it.
    void remember_in(std::filesystem::path file, access how);
    // Whatever goes wrong costs the next process a few reads.
    void keep() noexcept;
    [[nodiscard]] bool has_unkept() const;

    // For so long a header of a toolkit that was looked at is not looked at again, as long as it is found in the same directory.
    void trust_toolkits_for(base::clock::duration time);

    // How often a file was read to know what it says.
    [[nodiscard]] std::uint64_t reads() const;

private:
    struct known {
        file_state state{};
        std::string content;
    };
    struct toolkit_answer {
        found what;
        std::vector<std::pair<std::string, file_state>> directories;  // that it would change with
        mutable std::atomic<base::time_point> looked_at;
    };

    void load();

    mutable base::forkable_mutex mutex_;  // guards what follows; no file is touched while it is held
    std::unordered_map<std::string, known> known_;
    std::unordered_map<std::string, std::shared_ptr<toolkit_answer const>> toolkit_;
    std::filesystem::path file_;
    access how_ = access::read_only;
    bool to_be_loaded_ = false;
    bool to_be_kept_ = false;
    base::clock::duration toolkit_trust_{};
    std::uint64_t reads_ = 0;
};

}  // namespace kiln::compile
