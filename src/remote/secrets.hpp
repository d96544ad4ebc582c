// SPDX-License-Identifier: Apache-2.0
// Where a token is: in a file, read again when it changes, or in KILN_REMOTE_TOKEN. Never in an event, an error or a command line.
#pragma once

#include "base/check.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace kiln::remote {

struct token_source {
    std::filesystem::path file{};
    // Empty: none. Errors name the file and never its content.
    [[nodiscard]] result<std::string> read() const;
    // Changes when the file does; 0 where there is none.
    [[nodiscard]] std::uint64_t stamp() const noexcept;
};

}  // namespace kiln::remote
