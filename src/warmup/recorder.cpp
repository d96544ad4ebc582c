// SPDX-License-Identifier: Apache-2.0
#include "warmup/recorder.hpp"

#include "base/own_file.hpp"

#include <kiln/version.hpp>

#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::warmup {

recorder::recorder(std::filesystem::path file, event_log& events)
    : file_{std::move(file)}, events_{events}, owner_{::getpid()} {}

result<profile> const& recorder::before() {
    std::call_once(read_, [&] {
        before_ = read_recordings(file_);
        if (!*before_) return;
        std::lock_guard const lock{mutex_};
        for (auto const& u : (*before_)->uses) known_.emplace(u.recipe, u.arch, u.kind);
    });
    return *before_;
}

result<void> recorder::written() {
    std::lock_guard const lock{mutex_};
    if (why_) return *why_;
    return {};
}

result<void> recorder::open() {
    std::error_code none;
    if (file_.empty() || std::filesystem::is_directory(file_, none))
        return fail(errc::io, "'{}' is a directory or no name at all: a recording is written to a file",
                    file_.native());
    if (file_.has_parent_path()) KILN_CHECK(base::make_directories(file_.parent_path()));
    auto made = base::open_file(file_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0644);
    if (!made) {
        // Taken: by the run before, or by a process beside this one.
        auto const own = fmt::format("{}.{}-{}", file_.native(), ::getpid(), base::random_name());
        made = base::open_file(own, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0644);
    }
    if (!made) return std::move(made).error();
    fd_ = *std::move(made);
    process_note const about{.version = std::string{kiln::version},
                             .program = base::program_file().native(),
                             .pid = static_cast<std::uint64_t>(::getpid()),
                             .unix_seconds = static_cast<std::uint64_t>(std::time(nullptr))};
    auto first = encode_header();
    auto const more = encode(about);
    first.insert(first.end(), more.begin(), more.end());
    return base::write_all(fd_.get(), first);
}

void recorder::give_up(error const& why) {
    why_ = why;
    fd_.reset();
    events_.emit({.kind = event_kind::warned, .reason = "profile", .detail = why.message()});
}

void recorder::append(base::bytes const& data) {
    if (why_) return;
    if (!fd_) {
        if (auto made = open(); !made) return give_up(made.error());
    }
    if (auto done = base::write_all(fd_.get(), data); !done) give_up(done.error());
}

void recorder::used(engine_detail::use_record const& what) {
    auto const ns = watch_.ns();
    auto const arch = what.for_target.arch.name();
    auto const kind = std::string{name_of(what.for_target.kind)};
    // A forked child has an engine, and a recorder, of its own.
    if (owner_ != ::getpid()) return;
    {
        std::lock_guard const lock{mutex_};
        if (why_ || !seen_.emplace(what.id, arch, kind).second) return;
    }
    (void)before();
    std::lock_guard const lock{mutex_};
    auto const recipe = what.make_recipe();
    if (!recipe) return;
    auto const id = recipe->id();
    if (!known_.emplace(id, arch, kind).second) return;
    if (written_.insert(id).second) append(encode(*recipe));
    append(encode(profile_use{.recipe = id,
                              .arch = arch,
                              .kind = kind,
                              .key = std::string{what.key},
                              .from = std::string{name_of(what.from)},
                              .ns = static_cast<std::uint64_t>(ns),
                              .compile_ms = what.compile_ms,
                              .waited_ms = what.waited_ms}));
}

}  // namespace kiln::warmup
