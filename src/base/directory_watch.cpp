// SPDX-License-Identifier: Apache-2.0
#include "base/directory_watch.hpp"

#include "base/file_systems.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace kiln::base {

namespace {

constexpr int places = 8;
// One event tells all there is to tell, however many follow. Names that come and go change the directory itself.
constexpr std::uint32_t what_ends_it = IN_OPEN | IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_ONESHOT;
// A signal that nobody sends, by which a descriptor is known: programs close what is not theirs, and the number becomes another file's.
int mark() { return SIGRTMAX; }

bool tells_of_every_change(char const* path) {
    using enum file_system;
    return file_system_at(path).is_one_of({ext4, xfs, btrfs, zfs, f2fs, bcachefs, overlay});
}

// Free, or of this process. A child of fork() does not inherit it.
bool is_place_free(int file, int place) {
    struct ::flock what {};
    what.l_type = F_WRLCK;
    what.l_whence = SEEK_SET;
    what.l_start = place;
    what.l_len = 1;
    return ::fcntl(file, F_SETLK, &what) == 0;
}

}  // namespace

directory_watch::~directory_watch() {
    std::scoped_lock const lock{mutex_};
    if (process_ == fork_generation()) end();
}

void directory_watch::end() noexcept {
    if (events_ >= 0 && ::fcntl(events_, F_GETSIG) == mark()) {
        forget_in_child(events_);
        ::close(events_);
    }
    if (place_ >= 0) ::close(place_);
    events_ = place_ = -1;
    watched_.clear();
}

void directory_watch::take_place_in(std::filesystem::path file) {
    std::scoped_lock const lock{mutex_};
    if (file == places_) return;
    places_ = std::move(file);
    if (how_ == standing::impossible) how_ = standing::not_begun;
}

bool directory_watch::takes_place() {
    if (places_.empty()) return false;
    place_ = ::open(places_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    for (int i = 0; place_ >= 0 && i < places; ++i)
        if (is_place_free(place_, i)) return true;
    return false;
}

bool directory_watch::has_begun() {
    if (process_ != fork_generation()) {
        // The parent's events are the parent's; its descriptor was closed in this child.
        events_ = -1;
        if (place_ >= 0) ::close(std::exchange(place_, -1));
        watched_.clear();
        how_ = standing::not_begun;
        process_ = fork_generation();
    }
    if (how_ == standing::not_begun) {
        how_ = standing::impossible;
        if (takes_place()) events_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (events_ >= 0 && ::fcntl(events_, F_SETSIG, mark()) == 0 && close_in_child(events_)) how_ = standing::begun;
        else end();
        ++period_;
    }
    return how_ == standing::begun;
}

std::uint64_t directory_watch::period() {
    std::scoped_lock const lock{mutex_};
    if (!has_begun()) return 0;
    if (::fcntl(events_, F_GETSIG) != mark()) {
        forget_in_child(std::exchange(events_, -1));
        end();
        how_ = standing::not_begun;
        return has_begun() ? period_ : 0;
    }
    int waiting = 0;
    if (::ioctl(events_, FIONREAD, &waiting) == 0 && waiting == 0) return period_;
    // What is still watched may end the next period too early, and nothing worse.
    std::array<std::byte, 4096> told;
    while (::read(events_, told.data(), told.size()) > 0) {
    }
    watched_.clear();
    return ++period_;
}

bool directory_watch::add(std::string const& path, file_state const& seen, std::uint64_t period) {
    {
        std::scoped_lock const lock{mutex_};
        if (how_ != standing::begun || period != period_ || process_ != fork_generation()) return false;
        if (auto const at = watched_.find(path); at != watched_.end() && at->second == seen) return true;
    }
    if (!tells_of_every_change(path.c_str())) return false;
    {
        std::scoped_lock const lock{mutex_};
        if (how_ != standing::begun || period != period_ || ::fcntl(events_, F_GETSIG) != mark()) return false;
        if (::inotify_add_watch(events_, path.c_str(), what_ends_it) < 0) return false;
    }
    file_look now;
    if (look_at(path.c_str(), now) != 0 || now.state != seen) return false;
    std::scoped_lock const lock{mutex_};
    if (period != period_) return false;
    watched_.insert_or_assign(path, seen);
    return true;
}

}  // namespace kiln::base
