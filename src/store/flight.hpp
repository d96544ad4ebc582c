// SPDX-License-Identifier: Apache-2.0
//
// Single flight between processes: of those that miss the same request, one compiles and the others wait for
// it, never past their deadline. Saves work only; nothing is wrong without it. The lock is the kernel's: it dies with
// its holder. A holder that is stopped delays others until their deadlines and no longer.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"
#include "store/tier.hpp"

namespace kiln::store {

enum class flight_outcome {
    leader,       // held by us: look once more, compile, put with the flight
    finished,     // another process held it and let go while we waited: look again, then ask again
    timed_out,    // the deadline passed while another held it: compile without waiting any longer
    unsupported,  // no writable directory, or its file system does not exclude: compile
};
[[nodiscard]] std::string_view name_of(flight_outcome outcome) noexcept;

// Movable; lets go when it dies. Given to store::put it is held until the entry is where others find it.
class flight {
public:
    flight() = default;
    explicit flight(flight_outcome outcome) noexcept : outcome_{outcome} {}
    explicit flight(base::file_descriptor lock) noexcept;
    flight(flight&& other) noexcept;
    flight& operator=(flight&& other) noexcept;
    ~flight() { release(); }

    [[nodiscard]] flight_outcome outcome() const noexcept { return outcome_; }
    [[nodiscard]] bool leads() const noexcept { return outcome_ == flight_outcome::leader && lock_; }
    void release() noexcept;

private:
    base::file_descriptor lock_;
    flight_outcome outcome_ = flight_outcome::unsupported;
    std::uint64_t generation_ = 0;
};

// Takes or waits for the lock file `path`, whose directory exists. Blocks until `deadline` at most.
[[nodiscard]] flight lead_at(std::filesystem::path const& path, base::time_point deadline);

// What an exclusive flock on `path` does there; the file is made if it is not. An error: it could not be opened.
enum class lock_support { excludes, does_not_exclude, unsupported };
[[nodiscard]] result<lock_support> probe_locks(std::filesystem::path const& path);
[[nodiscard]] std::string_view name_of(lock_support support) noexcept;

}  // namespace kiln::store
