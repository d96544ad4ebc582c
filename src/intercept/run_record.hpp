// SPDX-License-Identifier: Apache-2.0
// What `kiln run --record` wrote, read again: a file that may come from another machine, or from anybody.
#pragma once

#include "store/tier.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::intercept {

struct run_record {
    std::vector<store::address> entries;  // in their order; one may be there twice
    std::string caches;                   // folder of the frameworks' caches; empty: there is none
    std::string requests;                 // folder of the requests; empty: there is none
    // By nvJitLink, also those that were not kept. Their inputs are not recorded.
    struct link {
        std::string name, target;
        base::digest request;
        std::optional<store::address> at;
    };
    std::vector<link> links{};
};

// errc::corrupt for what is no record. Fields and happenings that make no sense are passed over.
[[nodiscard]] result<run_record> parse_run_record(std::string_view text);

// With both folders where they are: beside the file, or, in records of old, where they were.
[[nodiscard]] result<run_record> read_run_record(std::filesystem::path const& file);

}  // namespace kiln::intercept
