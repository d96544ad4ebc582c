// SPDX-License-Identifier: Apache-2.0
// Files of past formats, kept in tests/format/golden and read by every later version. They are never rewritten: a new format
// gets new files. With KILN_WRITE_GOLDEN=1 a missing one is made.
#pragma once

#include "base/files.hpp"

#include <cstdlib>

namespace kiln::test {

inline base::bytes golden_file(std::string_view name, base::byte_span now) {
    auto const path = std::filesystem::path{KILN_TEST_SOURCE_DIR} / "tests/format/golden" / name;
    if (std::getenv("KILN_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path))
        base::replace_file(path, now, 0644).value();
    return base::read_file(path).value().value();
}

}  // namespace kiln::test
