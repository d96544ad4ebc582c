// SPDX-License-Identifier: Apache-2.0
//
// Makes a complete file appear under a name in one step. First choice: an unnamed file that is linked when complete,
// so that a process that dies, for whatever reason, leaves nothing. Where the file system has no unnamed
// files: a random name in the folder for temporaries, then rename.
#pragma once

#include "base/files.hpp"

#include <atomic>

namespace kiln::store {

enum class publish_rule { keep_existing, replace };
enum class publish_outcome { published, exists };

struct publish_place {
    std::filesystem::path final;
    std::filesystem::path temporaries;  // same file system
    unsigned mode = 0600;               // less the umask
};

// What the file system turned out not to have; remembered so that it is asked once.
struct publish_modes {
    std::atomic<bool> unnamed{true};
    std::atomic<bool> rename_new{true};
};

// On an error nothing is left under either name. ENOENT: the folder of `final` or of the temporaries is missing.
[[nodiscard]] result<publish_outcome> publish_file(publish_place const& place, base::byte_span data, publish_rule rule,
                                                   publish_modes& modes);

}  // namespace kiln::store
