// SPDX-License-Identifier: Apache-2.0
// Tells files that say the same apart: `#pragma once` goes by whether two names are one file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::compile {

// What a compiler takes for one file, by whatever name: device and inode. Texts that lie in no file are told by what they say.
using file_identity = std::pair<std::uint64_t, std::uint64_t>;

class file_numbers {
public:
    // Of the files with this content: 0 for the first that was asked for, 1 for the next, ...
    [[nodiscard]] std::size_t of(std::string_view content, file_identity const& who) {
        auto& files = files_[std::string{content}];
        auto const at = std::ranges::find(files, who);
        auto const number = static_cast<std::size_t>(at - files.begin());
        if (at == files.end()) files.push_back(who);
        return number;
    }

private:
    std::unordered_map<std::string, std::vector<file_identity>> files_;
};

}  // namespace kiln::compile
