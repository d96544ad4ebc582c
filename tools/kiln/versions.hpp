// SPDX-License-Identifier: Apache-2.0
// Where headers are absent nothing tells two versions of a unit apart, so no bundle has both: for those who write one.
#pragma once

#include "base/digest.hpp"

#include <kiln/artifact.hpp>

#include <map>

namespace kiln::cli {

class unit_versions {
public:
    struct made {
        std::string name;
        std::string target;
        std::string from;  // a bundle, or the source
        std::vector<dependency> headers;
    };
    // An error where one of the same family was made from other headers.
    [[nodiscard]] result<void> add(base::digest const& family, made what);

private:
    std::map<base::digest, std::vector<made>> seen_;
};

}  // namespace kiln::cli
