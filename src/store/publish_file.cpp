// SPDX-License-Identifier: Apache-2.0
#include "store/publish_file.hpp"

#include <cerrno>
#include <fcntl.h>

namespace kiln::store {

namespace {

using base::sys;

bool names_file(std::filesystem::path const& path, struct ::stat const& file) noexcept {
    struct ::stat there {};
    return sys().lstat(path.c_str(), &there) == 0 && there.st_ino == file.st_ino && there.st_dev == file.st_dev;
}

// nullopt: not on this file system, do it the other way.
result<std::optional<publish_outcome>> publish_unnamed(publish_place const& place, base::byte_span data) {
    auto const other_way = std::optional<publish_outcome>{};
    auto file = base::open_file(place.final.parent_path(), O_TMPFILE | O_WRONLY, place.mode);
    if (!file) {
        auto const why = file.error().status();
        if (why == EOPNOTSUPP || why == EISDIR || why == EINVAL || why == EPERM || why == ENOSYS) return other_way;
        return std::move(file).error();
    }
    KILN_CHECK(base::write_all(file->get(), data));
    struct ::stat about {};
    if (sys().fstat(file->get(), &about) != 0) return io_error("fstat", errno);
    auto const self = fmt::format("/proc/self/fd/{}", file->get());
    if (sys().linkat(AT_FDCWD, self.c_str(), AT_FDCWD, place.final.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        if (errno == EEXIST) return std::optional{publish_outcome::exists};
        // ENOENT: no /proc, or the folder is gone, which the other way will tell.
        if (errno == ENOENT || errno == EOPNOTSUPP || errno == EPERM || errno == EXDEV || errno == ENOSYS)
            return other_way;
        return io_error("link", errno);
    }
    if (auto closed = file->close(); !closed) {
        if (names_file(place.final, about)) sys().unlink(place.final.c_str());
        return std::move(closed).error();
    }
    return std::optional{publish_outcome::published};
}

// 0 or errno. EEXIST only for keep_existing.
int rename_by_rule(std::string const& from, std::filesystem::path const& to, publish_rule rule, publish_modes& modes) {
    if (rule == publish_rule::keep_existing && modes.rename_new.load()) {
        if (sys().rename_new(from.c_str(), to.c_str()) == 0) return 0;
        if (errno != EINVAL && errno != ENOSYS) return errno;
        modes.rename_new.store(false);
    }
    if (rule == publish_rule::keep_existing) {
        // Not atomic with the rename: of two that come at once the later wins, and either is right.
        struct ::stat there {};
        if (sys().lstat(to.c_str(), &there) == 0) return EEXIST;
    }
    return sys().rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

result<publish_outcome> publish_named(publish_place const& place, base::byte_span data, publish_rule rule,
                                      publish_modes& modes) {
    auto const temporary = (place.temporaries / (base::random_name() + base::random_name())).native();
    struct ::stat about {};
    auto write = [&]() -> result<void> {
        KILN_TRY(auto file, base::open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, place.mode));
        KILN_CHECK(base::write_all(file.get(), data));
        if (sys().fstat(file.get(), &about) != 0) return io_error("fstat", errno);
        return file.close();
    };
    auto written = write();
    if (!written) {
        sys().unlink(temporary.c_str());
        return std::move(written).error();
    }
    auto const number = rename_by_rule(temporary, place.final, rule, modes);
    if (number == 0) return publish_outcome::published;
    // A server may do the rename, lose the reply and answer the second try with "no such file" or "exists".
    if ((number == ENOENT || number == EEXIST) && names_file(place.final, about)) return publish_outcome::published;
    sys().unlink(temporary.c_str());
    if (number == EEXIST) return publish_outcome::exists;
    return io_error("rename", number);
}

}  // namespace

result<publish_outcome> publish_file(publish_place const& place, base::byte_span data, publish_rule rule,
                                     publish_modes& modes) {
    if (rule == publish_rule::keep_existing && modes.unnamed.load()) {
        KILN_TRY(auto const outcome, publish_unnamed(place, data));
        if (outcome) return *outcome;
        modes.unnamed.store(false);
    }
    return publish_named(place, data, rule, modes);
}

}  // namespace kiln::store
