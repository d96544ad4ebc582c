// SPDX-License-Identifier: Apache-2.0
// Reads entry files that others may replace, truncate or remove at any moment: opened without following links and
// without blocking, read into memory, checked whole.
#pragma once

#include "store/tier.hpp"

#include <filesystem>
#include <sys/stat.h>

namespace kiln::store {

struct read_outcome {
    std::shared_ptr<entry> what;  // null: see why
    digest payload;
    miss why = miss::absent;
    struct ::stat seen {};  // of what was there; zeros when nothing was
};
// Who may write an entry that is used, as for the folder it is in: one that others may write is read no further.
enum class writers { owner, owner_and_group };
[[nodiscard]] result<read_outcome> read_entry(std::filesystem::path const& path, std::uint64_t most_payload,
                                              writers allowed);

// The label of one entry file without reading its payload; nullopt for anything invalid.
struct labelled_file {
    summary what;
    digest payload;            // as the header has it: the payload was not read
    std::int64_t used_ns = 0;  // wall clock, as found
};
[[nodiscard]] std::optional<labelled_file> read_label(std::filesystem::path const& path, std::uint64_t most_payload);

}  // namespace kiln::store
