// SPDX-License-Identifier: Apache-2.0
//
// System calls that fail to order. While a faulty_calls lives, base::sys() is its table: each call is counted, shown to
// a hook, and answered by the first rule that matches, else by the real call.
#pragma once

#include "base/files.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::test {

enum class call {
    open,
    read,
    write,
    close,
    rename,
    unlink,
    fstat,
    lstat,
    mkdir,
    fsync,
    flock,
    utimensat,
    pread,
    pwrite,
    linkat,
    rename_new,
    getdents,
    fstatfs,
    statx,
};

enum class answer {
    fail,         // with `error`, nothing done
    do_and_fail,  // the real call, then `error` all the same: a lost reply
    pretend,      // success, nothing done
    short_count,  // reads and writes: half of what was asked for
};

struct rule {
    call which;
    int error = 0;
    answer how = answer::fail;
    int after = 0;                                // matching calls let through first
    int times = std::numeric_limits<int>::max();  // then this many answered
    std::string path_part{};                      // of a call with a path: what it must contain
    int flags = 0;                                // of open: flags that must all be there
};

class faulty_calls {
public:
    explicit faulty_calls(std::vector<rule> rules = {}) : rules_{std::move(rules)} {
        current() = this;
        base::install_system_calls(&table());
    }
    ~faulty_calls() {
        base::install_system_calls(nullptr);
        current() = nullptr;
    }
    faulty_calls(faulty_calls const&) = delete;
    faulty_calls& operator=(faulty_calls const&) = delete;

    // Called before each call with its running number, from 1. No locks are held.
    std::function<void(call which, char const* path, int number)> hook;

    [[nodiscard]] int calls() const { return count_; }
    [[nodiscard]] int answered() const { return answered_; }

private:
    // The rule that answers this call, if any.
    rule const* judge(call which, char const* path, int flags) {
        int const number = ++count_;
        if (hook) hook(which, path, number);
        std::lock_guard const lock{mutex_};
        for (auto& r : rules_) {
            if (r.which != which || (flags & r.flags) != r.flags) continue;
            if (!r.path_part.empty() &&
                (path == nullptr || std::string_view{path}.find(r.path_part) == std::string_view::npos))
                continue;
            if (r.after > 0) {
                --r.after;
                continue;
            }
            if (r.times <= 0) continue;
            --r.times;
            ++answered_;
            return &r;
        }
        return nullptr;
    }

    static std::atomic<faulty_calls*>& current() {
        static std::atomic<faulty_calls*> now{nullptr};
        return now;
    }

    template <class Real>
    static auto answer_call(call which, char const* path, int flags, Real real) -> decltype(real()) {
        auto const* const r = current().load()->judge(which, path, flags);
        if (r == nullptr || r->how == answer::short_count) return real();
        if (r->how == answer::pretend) return 0;
        if (r->how == answer::do_and_fail) (void)real();
        errno = r->error;
        return -1;
    }
    template <class Real>
    static long answer_transfer(call which, std::size_t size, Real real) {
        auto const* const r = current().load()->judge(which, nullptr, 0);
        if (r == nullptr) return real(size);
        if (r->how == answer::short_count) return real(size > 1 ? size / 2 : size);
        errno = r->error;
        return -1;
    }

    static base::system_calls const& table() {
        static constexpr base::system_calls faulty{
            .open = [](char const* p, int f,
                       unsigned m) { return answer_call(call::open, p, f, [=] { return os_().open(p, f, m); }); },
            .read =
                [](int fd, void* d, std::size_t n) {
                    return answer_transfer(call::read, n, [=](std::size_t some) { return os_().read(fd, d, some); });
                },
            .write =
                [](int fd, void const* d, std::size_t n) {
                    return answer_transfer(call::write, n, [=](std::size_t some) { return os_().write(fd, d, some); });
                },
            // A failing close(2) closes all the same.
            .close =
                [](int fd) {
                    auto const* const r = current().load()->judge(call::close, nullptr, 0);
                    auto const done = os_().close(fd);
                    if (r == nullptr) return done;
                    errno = r->error;
                    return -1;
                },
            .rename = [](char const* a,
                         char const* b) { return answer_call(call::rename, b, 0, [=] { return os_().rename(a, b); }); },
            .unlink = [](char const* p) { return answer_call(call::unlink, p, 0, [=] { return os_().unlink(p); }); },
            .fstat =
                [](int fd, struct ::stat* s) {
                    return answer_call(call::fstat, nullptr, 0, [=] { return os_().fstat(fd, s); });
                },
            .lstat = [](char const* p,
                        struct ::stat* s) { return answer_call(call::lstat, p, 0, [=] { return os_().lstat(p, s); }); },
            .mkdir = [](char const* p,
                        unsigned m) { return answer_call(call::mkdir, p, 0, [=] { return os_().mkdir(p, m); }); },
            .fsync = [](int fd) { return answer_call(call::fsync, nullptr, 0, [=] { return os_().fsync(fd); }); },
            .flock = [](int fd,
                        int op) { return answer_call(call::flock, nullptr, op, [=] { return os_().flock(fd, op); }); },
            .utimensat =
                [](int d, char const* p, struct ::timespec const* t, int f) {
                    return answer_call(call::utimensat, p, 0, [=] { return os_().utimensat(d, p, t, f); });
                },
            .pread =
                [](int fd, void* d, std::size_t n, long at) {
                    return answer_transfer(call::pread, n,
                                           [=](std::size_t some) { return os_().pread(fd, d, some, at); });
                },
            .pwrite =
                [](int fd, void const* d, std::size_t n, long at) {
                    return answer_transfer(call::pwrite, n,
                                           [=](std::size_t some) { return os_().pwrite(fd, d, some, at); });
                },
            .linkat =
                [](int a, char const* from, int b, char const* to, int f) {
                    return answer_call(call::linkat, to, 0, [=] { return os_().linkat(a, from, b, to, f); });
                },
            .rename_new =
                [](char const* a, char const* b) {
                    return answer_call(call::rename_new, b, 0, [=] { return os_().rename_new(a, b); });
                },
            .getdents =
                [](int fd, void* d, std::size_t n) {
                    return answer_call(call::getdents, nullptr, 0, [=] { return os_().getdents(fd, d, n); });
                },
            .fstatfs =
                [](int fd, struct ::statfs* s) {
                    return answer_call(call::fstatfs, nullptr, 0, [=] { return os_().fstatfs(fd, s); });
                },
            .statx =
                [](int dir, char const* p, int f, unsigned m, struct ::statx* s) {
                    return answer_call(call::statx, p, f, [=] { return os_().statx(dir, p, f, m, s); });
                },
        };
        return faulty;
    }
    static base::system_calls const& os_() { return base::real_system_calls(); }

    std::mutex mutex_;
    std::vector<rule> rules_;
    std::atomic<int> count_{0};
    std::atomic<int> answered_{0};
};

// Makes the tier publish through named temporaries, as on a file system without O_TMPFILE.
inline rule no_unnamed_files() { return {.which = call::open, .error = EOPNOTSUPP, .flags = O_TMPFILE}; }

}  // namespace kiln::test
