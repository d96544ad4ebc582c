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

// A folder that everybody may write to, as /tmp and a container's fresh volume are, holds one of each user's own. Whose that is, is
// looked at before it is used.
std::filesystem::path own_part_of(std::filesystem::path given) {
    struct ::stat about {};
    bool const is_everybodys =
        ::stat(given.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && (about.st_mode & S_IWOTH) != 0;
    return is_everybodys ? given / fmt::format("kiln-{}", ::geteuid()) : given;
}

std::filesystem::path cache_root(base::config const& config) {
    if (auto const& given = config.text("KILN_CACHE_DIR"); !given.empty()) return own_part_of(made_absolute(given));
    if (config.secure()) return {};
    if (auto const xdg = absolute_from_environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "kiln";
    if (auto const home = absolute_from_environment("HOME"); !home.empty()) return home / ".cache" / "kiln";
    return {};
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
    auto root = config.secure() ? std::filesystem::path{} : cache_root(config);
    if (root.empty()) {
        out.no_disk_reason = config.secure()
                                 ? "the program runs with raised privileges: no cache directory is used"
                                 : "no KILN_CACHE_DIR, XDG_CACHE_HOME or HOME: set one to keep what is compiled";
        return out;
    }
    out.disk = disk_options{
        .root = std::move(root),
        .mode = config.flag("KILN_READONLY") ? access::read_only : access::read_write,
        .readers = config.text("KILN_CACHE_MODE") == "shared" ? audience::umask : audience::owner,
        .max_bytes = config.size("KILN_MAX_SIZE").value_or(std::uint64_t{5} << 30),
    };
    return out;
}

}  // namespace kiln::store
