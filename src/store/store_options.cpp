// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::store {

namespace {

// Empty where there is no such variable, or it is relative, which the XDG rules forbid.
std::filesystem::path absolute_from_environment(char const* variable) {
    auto const* const text = ::secure_getenv(variable);
    if (text == nullptr || text[0] != '/') return {};
    return text;
}

std::filesystem::path made_absolute(std::string const& text) {
    std::error_code why;
    auto path = std::filesystem::absolute(text, why);
    return why ? std::filesystem::path{text} : path;
}

struct cache_place {
    std::filesystem::path root;
    root_owner owner = root_owner::anybody;
    std::string objection = {};  // why it must not be used, not even to read
};

// A folder that everybody may write to, as /tmp and a container's fresh volume are, holds one of each user's own. Its name is no
// secret: what somebody else has put there is nobody's choice, and neither read nor written.
cache_place own_part_of(std::filesystem::path given) {
    struct ::stat about {};
    bool const is_everybodys =
        ::stat(given.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && (about.st_mode & S_IWOTH) != 0;
    if (!is_everybodys) return {std::move(given)};
    cache_place out{given / fmt::format("kiln-{}", ::geteuid()), root_owner::us};
    if (::lstat(out.root.c_str(), &about) != 0) return out;
    if (about.st_uid != ::geteuid())
        out.objection = fmt::format("{}: belongs to user {}; set KILN_CACHE_DIR to a directory of your own",
                                    out.root.native(), about.st_uid);
    else if (!S_ISDIR(about.st_mode))
        out.objection = fmt::format("{}: is no directory; remove it or set KILN_CACHE_DIR", out.root.native());
    return out;
}

cache_place cache_root(base::config const& config) {
    if (config.secure()) return {{}, {}, "the program runs with raised privileges: no cache directory is used"};
    if (auto const& given = config.text("KILN_CACHE_DIR"); !given.empty()) return own_part_of(made_absolute(given));
    if (auto const xdg = absolute_from_environment("XDG_CACHE_HOME"); !xdg.empty()) return {xdg / "kiln"};
    if (auto const home = absolute_from_environment("HOME"); !home.empty()) return {home / ".cache" / "kiln"};
    return {{}, {}, "no KILN_CACHE_DIR, XDG_CACHE_HOME or HOME: set one to keep what is compiled"};
}

}  // namespace

store_options options_from(base::config const& config) {
    store_options out;
    out.bundle_beside_program = true;
    for (auto const& path : config.list("KILN_BUNDLES")) out.bundles.emplace_back(made_absolute(path));
    if (auto const& key = config.text("KILN_BUNDLE_KEY"); !key.empty()) out.trusted_key = made_absolute(key);
    if (config.flag("KILN_RECACHE")) out.mode = reuse::recache;
    if (config.flag("KILN_DISABLE")) return out;

    for (auto const& path : config.list("KILN_CACHE_PATH_RO")) out.read_only_roots.emplace_back(made_absolute(path));
    auto place = cache_root(config);
    if (!place.objection.empty()) {
        out.no_disk_reason = std::move(place.objection);
        return out;
    }
    out.disk = disk_options{
        .root = std::move(place.root),
        .mode = config.flag("KILN_READONLY") ? access::read_only : access::read_write,
        .readers = config.text("KILN_CACHE_MODE") == "shared" ? audience::umask : audience::owner,
        .owner = place.owner,
        .max_bytes = config.size("KILN_MAX_SIZE").value_or(std::uint64_t{5} << 30),
    };
    return out;
}

}  // namespace kiln::store
