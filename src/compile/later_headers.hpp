// SPDX-License-Identifier: Apache-2.0
//
// What a compile here would find in place of a header that is not here. Sealing is for machines without the sources; who moved a
// header to the next directory and edited it has them. So the search that once ended at the header goes on behind it, through the
// include directories that are here and the toolkit.
#pragma once

#include "compile/includes.hpp"

#include <functional>

namespace kiln::compile {

// Where a dependency is on this machine, and what is there. A directory of a header's name is none.
struct present_header {
    std::string real;
    result<std::string> content;  // its SHA-256; empty: no such file
};

class later_headers {
public:
    using finder = std::function<present_header(dependency const& of)>;
    // The roots are kept by reference.
    later_headers(include_roots const& roots, finder look_for) : roots_{roots}, look_for_{std::move(look_for)} {}

    // A sentence that names what would be found and says something else, or why that cannot be told; empty where there is none.
    [[nodiscard]] std::string in_place_of(dependency const& gone);

private:
    [[nodiscard]] bool is_there(std::string const& directory);
    [[nodiscard]] std::optional<std::string> look(dependency const& later, dependency const& gone) const;

    include_roots const& roots_;
    finder look_for_;
    std::map<std::string, bool> there_;  // asked once: where the sources are not, all of their headers are gone
};

}  // namespace kiln::compile
