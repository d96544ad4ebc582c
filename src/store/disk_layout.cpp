// SPDX-License-Identifier: Apache-2.0
#include "store/disk_layout.hpp"

#include <algorithm>

namespace kiln::store {

namespace {

constexpr std::size_t short_digits = 16;
constexpr std::size_t full_digits = 64;
constexpr std::string_view suffix = ".kiln";

std::string short_hex(digest const& d) { return d.hex().substr(0, short_digits); }

bool is_hex(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::filesystem::path disk_layout::shard(digest const& family) const { return v1_ / family.hex().substr(0, 2); }
std::filesystem::path disk_layout::entry(address const& at) const { return shard(at.family) / entry_name(at); }
std::filesystem::path disk_layout::lock(digest const& request) const { return locks() / short_hex(request); }

std::string entry_name(address const& at) {
    return fmt::format("{}-{}-{}{}", short_hex(at.family), short_hex(at.request), at.key.hex(), suffix);
}

std::string name_prefix(digest const& family, std::optional<digest> const& request) {
    return request ? fmt::format("{}-{}-", short_hex(family), short_hex(*request))
                   : fmt::format("{}-", short_hex(family));
}

bool is_entry_name(std::string_view name) noexcept {
    return name.size() == short_digits * 2 + full_digits + 2 + suffix.size() && name.ends_with(suffix) &&
           name[short_digits] == '-' && name[short_digits * 2 + 1] == '-' && is_hex(name.substr(0, short_digits)) &&
           is_hex(name.substr(short_digits + 1, short_digits)) &&
           is_hex(name.substr(short_digits * 2 + 2, full_digits));
}

bool is_shard_name(std::string_view name) noexcept { return name.size() == 2 && is_hex(name); }

}  // namespace kiln::store
