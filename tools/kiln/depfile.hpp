// SPDX-License-Identifier: Apache-2.0
//
// A rule for make and ninja: what was made, and everything that would have to be looked at to know whether it is still right. Without
// it a bundle stays as it is when a header is edited, and where it is shipped to no header contradicts it.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace kiln::cli {

class depfile {
public:
    // A file that was read, or looked for and not there. Its folder changes when one of that name appears, or is replaced by an older
    // one; so does the folder of every link on the way, those behind links included, when that is switched.
    void add_look(std::string const& file);
    // A folder that what is made is put into is always newer than that: it is left out.
    void leave_out(std::string const& output);

    [[nodiscard]] std::string rule_for(std::string const& product) const;

private:
    // The path without links, as far as it is there; adds the folder of each.
    [[nodiscard]] std::filesystem::path followed(std::filesystem::path const& path, int links = 0);

    std::set<std::string> looks_, folders_, outputs_;
    std::map<std::string, std::filesystem::path> known_;  // folders, followed
};

}  // namespace kiln::cli
