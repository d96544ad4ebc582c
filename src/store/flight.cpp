// SPDX-License-Identifier: Apache-2.0
#include "store/flight.hpp"

#include "base/caught.hpp"
#include "base/fork_guard.hpp"
#include "store/wait_lock.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/file.h>
#include <utility>

namespace kiln::store {

std::string_view name_of(flight_outcome outcome) noexcept {
    switch (outcome) {
        case flight_outcome::leader: return "leader";
        case flight_outcome::finished: return "finished";
        case flight_outcome::timed_out: return "timed-out";
        case flight_outcome::unsupported: return "unsupported";
    }
    return "unknown";
}

std::string_view name_of(lock_support support) noexcept {
    switch (support) {
        case lock_support::excludes: return "excludes";
        case lock_support::does_not_exclude: return "does-not-exclude";
        case lock_support::unsupported: return "unsupported";
    }
    return "unknown";
}

namespace {

constexpr std::size_t sign_bytes = 16;

// nullopt: the holder could not write, or is of a version that does not.
std::optional<sign_of_life> sign_in(int fd) {
    std::array<std::byte, sign_bytes> data{};
    if (base::sys().pread(fd, data.data(), data.size(), 0) != static_cast<long>(data.size())) return std::nullopt;
    base::byte_reader r{data};
    sign_of_life out;
    out.leader = r.get_u64();
    out.beat = r.get_u64();
    return out;
}

std::uint64_t random_number() {
    auto const text = base::random_name();
    std::uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out, 16);
    return out;
}

}  // namespace

held_lock::held_lock(base::file_descriptor file)
    : file_{std::move(file)}, generation_{base::fork_generation()}, sign_{.leader = random_number()} {
    base::close_in_child(file_.get());
    beat();
}

bool held_lock::is_ours() const noexcept { return generation_ == base::fork_generation(); }

held_lock::~held_lock() {
    if (!is_ours()) {
        file_.release();  // closed when we were forked; the number may be another file's by now
        return;
    }
    base::forget_in_child(file_.get());
}

// All of it each time: what a process that has just let go writes too late is put right by the next beat.
void held_lock::beat() noexcept {
    if (!has_given_up_.load()) write_sign(++sign_.beat);
}

// A beat that is under way may be written after it: then those who wait do as after one that was killed.
void held_lock::give_up() noexcept {
    if (!has_given_up_.exchange(true) && is_ours()) write_sign(sign_of_life::gave_up);
}

void held_lock::write_sign(std::uint64_t beat) noexcept {
    base::if_memory_allows([&] {
        base::byte_writer w;
        w.put_u64(sign_.leader);
        w.put_u64(beat);
        (void)base::sys().pwrite(file_.get(), w.view().data(), w.size(), 0);
    });
}

// Explicit, because a child forked in the moment before registration may hold the same open file.
void held_lock::unlock() noexcept {
    if (is_ours()) base::sys().flock(file_.get(), LOCK_UN);
}

flight::flight(flight&& other) noexcept
    : lock_{std::move(other.lock_)},
      outcome_{std::exchange(other.outcome_, flight_outcome::unsupported)},
      of_leader_{std::exchange(other.of_leader_, std::nullopt)} {}

flight& flight::operator=(flight&& other) noexcept {
    if (this != &other) {
        release();
        lock_ = std::move(other.lock_);
        outcome_ = std::exchange(other.outcome_, flight_outcome::unsupported);
        of_leader_ = std::exchange(other.of_leader_, std::nullopt);
    }
    return *this;
}

void flight::release() noexcept {
    if (auto const held = std::exchange(lock_, nullptr)) held->unlock();
}

void flight::give_up() noexcept {
    if (lock_) lock_->give_up();
    release();
}

bool leader_watch::at_work(flight const& asked, base::time_point now) noexcept {
    auto const& sign = asked.of_leader();
    if (!since_) since_ = now;
    if (sign && !last_) {
        last_ = sign;
    } else if (sign && sign->leader == last_->leader && sign->beat != last_->beat) {
        last_ = sign;
        since_ = now;
    }
    return now < *since_ + patience_;
}

flight lead_at(std::filesystem::path const& path, base::time_point deadline) {
    for (;;) {
        auto file = base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (!file) return flight{flight_outcome::unsupported};
        switch (try_flock(file->get(), LOCK_EX)) {
            case lock_attempt::failed: return flight{flight_outcome::unsupported};
            case lock_attempt::taken:
                // A sweeper may have unlinked the file between open and lock: then others lock a new one.
                if (same_file(file->get(), path)) return flight{std::make_shared<held_lock>(*std::move(file))};
                if (base::clock::now() >= deadline) return flight{flight_outcome::timed_out};
                continue;
            case lock_attempt::busy: break;
        }
        // Shared, so that all waiters are let through together when the leader is done.
        switch (wait_flock(file->get(), LOCK_SH, deadline)) {
            case lock_attempt::failed: return flight{flight_outcome::unsupported};
            case lock_attempt::busy: return flight{flight_outcome::timed_out, sign_in(file->get())};
            case lock_attempt::taken: {
                auto const last = sign_in(file->get());
                base::sys().flock(file->get(), LOCK_UN);
                return flight{flight_outcome::finished, last};
            }
        }
    }
}

result<lock_support> probe_locks(std::filesystem::path const& path) {
    KILN_TRY(auto const first, base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    KILN_TRY(auto const second, base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    switch (try_flock(first.get(), LOCK_EX)) {
        case lock_attempt::failed: return lock_support::unsupported;
        case lock_attempt::busy: return lock_support::excludes;  // another process is probing: it works
        case lock_attempt::taken: break;
    }
    switch (try_flock(second.get(), LOCK_EX)) {
        case lock_attempt::failed: return lock_support::unsupported;
        case lock_attempt::busy: return lock_support::excludes;
        case lock_attempt::taken: break;
    }
    return lock_support::does_not_exclude;
}

}  // namespace kiln::store
