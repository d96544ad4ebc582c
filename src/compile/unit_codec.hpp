// SPDX-License-Identifier: Apache-2.0
// Units and lists of texts as bytes: in jobs for workers, in recipes, and in what packs write of their own.
#pragma once

#include "base/bytes.hpp"

#include <kiln/unit.hpp>

namespace kiln::compile {

void put_texts(base::byte_writer& w, std::vector<std::string> const& texts);
// Of bytes that are damaged: empty texts, and the reader says so.
[[nodiscard]] std::vector<std::string> get_texts(base::byte_reader& r);

void put_unit(base::byte_writer& w, unit const& u);
[[nodiscard]] unit get_unit(base::byte_reader& r);

// Apart from the rest, which has a form from before there were any.
void put_carried(base::byte_writer& w, unit const& u);
void get_carried(base::byte_reader& r, unit& u);

}  // namespace kiln::compile
