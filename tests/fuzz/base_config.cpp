// SPDX-License-Identifier: Apache-2.0
// Any bytes as kiln.conf, as a size, and as text on its way into JSON.
#include "base/config.hpp"
#include "base/text.hpp"
#include "fuzz/fuzz.hpp"

#include <nlohmann/json.hpp>

using namespace kiln;

namespace {

void settings(std::string_view text) {
    auto read = base::config::presets();
    read.read_lines(text, "fuzz");
    read.check();
    auto const problems = read.problems().size();
    read.check();
    fuzz::must(read.problems().size() == problems);  // what was put right stays right
    std::string written;
    for (auto const& k : base::knobs()) {
        auto const& s = read.get(k.variable);
        (void)read.flag(k.variable);
        (void)read.size(k.variable);
        for (auto const& one : read.list(k.variable)) fuzz::must(!one.empty() && one.find(':') == one.npos);
        if (s.from != base::origin::file) continue;
        fuzz::must(s.value.find('\n') == s.value.npos);
        written += std::string{k.variable.substr(5)} + " = " + s.value + "\n";
    }
    auto again = base::config::presets();
    again.read_lines(written, "again");
    again.check();
    fuzz::must(again.problems().empty());
    for (auto const& k : base::knobs()) {
        if (read.get(k.variable).from == base::origin::file)
            fuzz::must(again.text(k.variable) == read.text(k.variable));
    }
}

void text(std::string_view given) {
    auto const valid = base::valid_utf8(given);
    fuzz::must(base::valid_utf8(valid) == valid);
    fuzz::must(nlohmann::json::accept(base::json_text(nlohmann::json(std::string{given}))));
    for (std::size_t const most : {std::size_t{0}, std::size_t{1}, std::size_t{5}, given.size() / 2}) {
        auto const first = base::first_characters(given, most);
        fuzz::must(first.size() <= most && given.starts_with(first));
        // Of text that is UTF-8, whole characters.
        auto const cut = base::first_characters(valid, most);
        fuzz::must(base::valid_utf8(cut) == cut);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = base::as_text(fuzz::bytes_of(data, size));
    settings(input);
    text(input);
    if (auto const bytes = base::parse_size(input)) fuzz::must(base::parse_size(std::to_string(*bytes)) == *bytes);
    return 0;
}
