// SPDX-License-Identifier: Apache-2.0
// What `kiln audit --json` prints: one object on a line of its own, also where something went wrong.
#pragma once

#include "command.hpp"

#include "audit/judgement.hpp"
#include "base/text.hpp"

namespace kiln::cli {

// A recording that was made just now has no lines for its native frames yet, and its program's output comes before ours.
enum class recorded { now, before };

[[nodiscard]] std::string as_one_line(std::string object);
template <class Json>
[[nodiscard]] std::string json_line(Json const& data) {
    return as_one_line(base::json_text(data));
}

// The program owns standard output; our object is its last line.
void print_last_line(std::string const& line, recorded when);
template <class Json>
void print_last(Json const& data, recorded when) {
    print_last_line(json_line(data), when);
}

// What goes wrong is told at the end of the command line.
template <class Work, class Object>
int with_object_on_failure(bool as_json, Object const& object, Work const& work) {
    try {
        return work();
    } catch (std::exception const& e) {
        if (as_json) print(json_line(object(audit::plain_text(e.what()))));
        throw;
    }
}

}  // namespace kiln::cli
