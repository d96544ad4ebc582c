// SPDX-License-Identifier: Apache-2.0
//
// The compile processes of one `kiln run`. A program of it that misses something calls here, at a socket in the private folder, and
// gets a kiln-worker of its own: connected to the program, a child of this process. So the program has no child it does not know
// of, and its threads do not wait for one another in NVRTC.
#pragma once

#include "base/config.hpp"
#include "base/files.hpp"

#include <sys/types.h>

namespace kiln::cli {

struct worker_program {
    std::filesystem::path file;  // empty: there is none
    bool is_for_this_alone = false;
};

class run_workers {
public:
    // Listens in `folder`. Not open: there is no place for the socket, or KILN_WORKERS=0; programs then compile themselves.
    run_workers(std::filesystem::path const& folder, base::config const& settings);
    ~run_workers();
    run_workers(run_workers const&) = delete;
    run_workers& operator=(run_workers const&) = delete;

    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(door_); }
    [[nodiscard]] std::filesystem::path const& address() const noexcept { return address_; }

    // Until `end` can be read; from then on nobody listens, and who calls hears that at once. `environment` is the programs' own.
    void serve_until_end(int end, std::vector<std::string> const& environment);

private:
    void answer_door(std::vector<std::string> const& environment);
    void take_door_away();
    void bury();
    // Who calls from a socket with a name of its own cannot compile itself: for such there are as many again.
    enum class need { can_do_without, has_no_other };
    [[nodiscard]] bool has_room(need how);

    std::filesystem::path named_;            // by the user
    std::optional<worker_program> program_;  // nullopt: not looked for yet
    std::filesystem::path address_;
    base::file_descriptor door_;
    bool is_there_ = false;  // its file
    std::vector<pid_t> alive_;
    std::size_t most_ = 0;  // not known yet
};

}  // namespace kiln::cli
