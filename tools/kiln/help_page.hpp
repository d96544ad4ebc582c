// SPDX-License-Identifier: Apache-2.0
// A page of docs/cli in its parts: man pages and the completion of zsh are made of them. What the pages keep to: a heading, a
// line that says what the command does, then blocks with an empty line between. Four spaces make an example; options, and
// words with two spaces behind them, begin an entry.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

struct help_entry {
    std::string head;  // "-a, --arch A,B,..." or "stats"
    std::string text;  // in one line
};

struct help_block {
    enum class kind { text, heading, example, entries };
    kind is = kind::text;
    std::string text;                 // one line; of an example all of them, without the four spaces
    std::vector<help_entry> entries;  // of kind::entries alone
};

struct help_page {
    std::string summary;
    std::vector<help_block> blocks;  // what follows it
};

[[nodiscard]] help_page parse_page(std::string_view text);

// What the page says of an option, by one of its names: the first sentence or clause. Empty where it says nothing.
[[nodiscard]] std::string words_on(help_page const& page, std::string_view option);

}  // namespace kiln::cli
