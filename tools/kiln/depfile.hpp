// SPDX-License-Identifier: Apache-2.0
//
// A rule for make and ninja: what was made, and everything that would have to be looked at to know whether it is still right. Without
// it a bundle stays as it is when a header is edited, and where it is shipped to no header contradicts it.
#pragma once

#include "base/check.hpp"

#include <set>
#include <string>

namespace kiln::cli {

class depfile {
public:
    // A file that was read, or looked for and not there. Its folder changes when one of that name appears, or is replaced by an older
    // one; so does the folder of every link on the way when that is switched.
    void add_look(std::string const& file);
    // A folder that what is made is put into is always newer than that: it is left out.
    void leave_out(std::string const& output);

    [[nodiscard]] std::string rule_for(std::string const& product) const;

private:
    void add_folders_of_links(std::string const& file);

    std::set<std::string> looks_, folders_, outputs_;
    std::set<std::string> seen_;  // folders, looked through for links
};

}  // namespace kiln::cli
