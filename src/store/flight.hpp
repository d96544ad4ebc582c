// SPDX-License-Identifier: Apache-2.0
//
// Single flight between processes: of those that miss the same request, one compiles and the others wait for
// it. Saves work only; nothing is wrong without it. The lock is the kernel's: it dies with its holder. One that lives
// shows that it is at work by counting in its lock file (flight_keeper): however long it takes, it is waited for; one that
// stopped counting is given up on. Counts are compared with earlier counts and never with a clock.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <chrono>

namespace kiln::store {

enum class flight_outcome {
    leader,       // held by us: look once more, compile, put with the flight
    finished,     // another process held it and let go while we waited: look again, then ask again, see gave_up()
    timed_out,    // the deadline passed while another held it: see leader_watch
    unsupported,  // no writable directory, or its file system does not exclude: compile
};
[[nodiscard]] std::string_view name_of(flight_outcome outcome) noexcept;

// What a lock file says of its holder: who it is, and how often it has counted.
struct sign_of_life {
    std::uint64_t leader = 0;
    std::uint64_t beat = 0;
    bool operator==(sign_of_life const&) const = default;

    static constexpr std::uint64_t gave_up = ~std::uint64_t{0};  // instead of a count: it let go without a result
};

// The lock while it is held. Shared with the keeper for the moment of a beat.
class held_lock {
public:
    explicit held_lock(base::file_descriptor file);
    ~held_lock();
    held_lock(held_lock const&) = delete;
    held_lock& operator=(held_lock const&) = delete;

    void beat() noexcept;
    // The last thing that is written.
    void give_up() noexcept;
    void unlock() noexcept;

private:
    [[nodiscard]] bool is_ours() const noexcept;
    void write_sign(std::uint64_t beat) noexcept;
    base::file_descriptor file_;
    std::uint64_t generation_;
    sign_of_life sign_;
    std::atomic<bool> has_given_up_{false};
};

// Movable; lets go when it dies. Given to store::put it is held until the entry is where others find it.
class flight {
public:
    flight() = default;
    explicit flight(flight_outcome outcome, std::optional<sign_of_life> of_leader = {}) noexcept
        : outcome_{outcome}, of_leader_{of_leader} {}
    explicit flight(std::shared_ptr<held_lock> lock) noexcept
        : lock_{std::move(lock)}, outcome_{flight_outcome::leader} {}
    flight(flight&& other) noexcept;
    flight& operator=(flight&& other) noexcept;
    ~flight() { release(); }

    [[nodiscard]] flight_outcome outcome() const noexcept { return outcome_; }
    [[nodiscard]] bool leads() const noexcept { return outcome_ == flight_outcome::leader && lock_; }
    // Of the process that leads, when `timed_out`, or led, when `finished`; nullopt: it left none.
    [[nodiscard]] std::optional<sign_of_life> const& of_leader() const noexcept { return of_leader_; }
    [[nodiscard]] std::weak_ptr<held_lock> lock() const noexcept { return lock_; }
    void release() noexcept;
    // Lets go, and tells those who wait that there is nothing to be found: they need not make it one after the other.
    void give_up() noexcept;
    // Whether who led said so; one that was killed did not.
    [[nodiscard]] bool gave_up() const noexcept { return of_leader_ && of_leader_->beat == sign_of_life::gave_up; }

private:
    std::shared_ptr<held_lock> lock_;
    flight_outcome outcome_ = flight_outcome::unsupported;
    std::optional<sign_of_life> of_leader_;
};

// Kept by one who waits and asks try_lead() now and then: is the process that led at first still at work? Others that take
// over after it get no more time: each of them may be about to fail in the same way.
class leader_watch {
public:
    explicit leader_watch(std::chrono::milliseconds patience) noexcept : patience_{patience} {}
    // False once its count has stood still for `patience`.
    [[nodiscard]] bool at_work(flight const& asked, base::time_point now) noexcept;

private:
    std::chrono::milliseconds patience_;
    std::optional<sign_of_life> last_;
    std::optional<base::time_point> since_;
};

// Takes or waits for the lock file `path`, whose directory exists. Blocks until `deadline` at most.
[[nodiscard]] flight lead_at(std::filesystem::path const& path, base::time_point deadline);

// What an exclusive flock on `path` does there; the file is made if it is not. An error: it could not be opened.
enum class lock_support { excludes, does_not_exclude, unsupported };
[[nodiscard]] result<lock_support> probe_locks(std::filesystem::path const& path);
[[nodiscard]] std::string_view name_of(lock_support support) noexcept;

}  // namespace kiln::store
