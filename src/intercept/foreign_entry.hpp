// SPDX-License-Identifier: Apache-2.0
//
// What is kept of a foreign compile or link: every answer its API can give about a finished one. Bytes as in
// docs/formats/foreign-entry.md.
#pragma once

#include "base/bytes.hpp"
#include "intercept/looks.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kiln::intercept {

struct foreign_answer {
    struct output {
        std::string name;  // as in the API: "PTX", "CUBIN", "LinkedCubin"
        int status = 0;    // what asking for it returned
        std::string data;  // when that was 0
        bool operator==(output const&) const = default;
    };
    std::vector<output> outputs;
    std::string log;                                           // of the compiler; virtual names still in it
    std::vector<std::pair<std::string, std::string>> lowered;  // name expression, lowered name
    int pch_status = 0;

    [[nodiscard]] output const* find(std::string_view name) const noexcept;
    bool operator==(foreign_answer const&) const = default;
};

struct foreign_entry {
    std::vector<look> looks;
    foreign_answer answer;
    bool operator==(foreign_entry const&) const = default;
};

[[nodiscard]] base::bytes encode(foreign_entry const& what);
// errc::corrupt for anything encode() did not write.
[[nodiscard]] result<foreign_entry> decode_foreign_entry(base::byte_span data);

}  // namespace kiln::intercept
