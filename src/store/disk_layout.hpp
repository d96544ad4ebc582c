// SPDX-License-Identifier: Apache-2.0
// Where things are under a cache directory; see docs/formats/disk-entry.md. Names only: nothing here touches a file.
#pragma once

#include "store/tier.hpp"

#include <filesystem>

namespace kiln::store {

class disk_layout {
public:
    explicit disk_layout(std::filesystem::path root) : root_{std::move(root)}, v1_{root_ / "v1"} {}

    [[nodiscard]] std::filesystem::path const& root() const noexcept { return root_; }
    [[nodiscard]] std::filesystem::path const& v1() const noexcept { return v1_; }
    [[nodiscard]] std::filesystem::path shard(digest const& family) const;
    [[nodiscard]] std::filesystem::path entry(address const& at) const;
    [[nodiscard]] std::filesystem::path temporaries() const { return v1_ / "tmp"; }
    [[nodiscard]] std::filesystem::path locks() const { return v1_ / "locks"; }
    [[nodiscard]] std::filesystem::path lock(digest const& request) const;
    [[nodiscard]] std::filesystem::path usage() const { return v1_ / "usage"; }
    [[nodiscard]] std::filesystem::path evict_lock() const { return v1_ / "evict.lock"; }
    [[nodiscard]] std::filesystem::path statistics() const { return v1_ / "stats"; }
    [[nodiscard]] std::filesystem::path statistics_lock() const { return v1_ / "stats.lock"; }

private:
    std::filesystem::path root_;
    std::filesystem::path v1_;
};

// File name of an entry and what every entry of a family, or of a request, begins with.
[[nodiscard]] std::string entry_name(address const& at);
[[nodiscard]] std::string name_prefix(digest const& family, std::optional<digest> const& request);
// Exactly the shape of entry_name(): everything else in a shard is unknown and left alone.
[[nodiscard]] bool is_entry_name(std::string_view name) noexcept;
[[nodiscard]] bool is_shard_name(std::string_view name) noexcept;

}  // namespace kiln::store
