// SPDX-License-Identifier: Apache-2.0
#include "compile/carried_headers.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

TEST(carried_headers, what_a_unit_carries_and_its_roots_say_the_same) {
    std::vector<carried_header> const all{{"!", ""},       {"!/abs/no.h", ""}, {"!i1/.", ""},  {"#2 i0/b.h", ""},
                                          {"=i0/", "1\n"}, {"=i0/lib/", ""},   {"i0/b.h", "b"}};
    unit const u{.name = "u", .source = "", .carried = all};
    auto const back = carried_of(roots_of(u));
    ASSERT_EQ(back.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(back[i].place, all[i].place);
        EXPECT_EQ(back[i].text, all[i].text);
    }
    EXPECT_EQ(count_directories(u), 2u);
}

TEST(carried_headers, places_may_say_anything) {
    for (auto const* place :
         {"",     "!",        "!i", "!i5/", "!!i0/x", "i", "i/", "i0",      "i99999999999999999999/x",   "ix/x", "s",
          "i7/x", "/abs/x.h", "=",  "=i",   "=i3/",   "#", "#2", "#x i0/a", "#99999999999999999999 i0/a"}) {
        auto const roots = roots_of(unit{.name = "u", .source = "", .carried = {{place, "text"}}});
        EXPECT_LE(roots.include_directories.size(), 1000u) << place;
    }
}

TEST(carried_headers, a_name_that_its_folder_did_not_have_was_not_there_nor_anything_below_it) {
    auto const scratch = base::temporary_directory::make("kiln-carried").value();
    base::make_directories(scratch.path() / "lib").value();
    base::replace_file(scratch.path() / "a.h", {}).value();
    folder_names const known{{"i0", names_in(scratch.path()).value()}, {"i0/lib", ""}};
    for (auto const* place : {"i0/b.h", "i0/other/x.h", "i0/lib/x.h"})
        EXPECT_TRUE(had_no_such_name(known, place)) << place;
    for (auto const* place : {"i0/a.h", "i0/notes.txt", "i0/.hidden.h", "i1/b.h", "s/b.h", "/abs/b.h"})
        EXPECT_FALSE(had_no_such_name(known, place)) << place;
}

// A source that was made by the build has what is built beside it, from the second build on.
TEST(carried_headers, a_program_beside_a_source_does_not_count) {
    auto const scratch = base::temporary_directory::make("kiln-carried").value();
    base::replace_file(scratch.path() / "a.h", {}).value();
    auto const before = names_in(scratch.path());
    base::replace_file(scratch.path() / "app", base::as_bytes("\x7f"
                                                              "ELF and more"))
        .value();
    EXPECT_EQ(names_in(scratch.path()), before);
    base::replace_file(scratch.path() / "vector", base::as_bytes("#pragma once")).value();
    EXPECT_NE(names_in(scratch.path()), before) << "headers of the standard library have no ending";
}

}  // namespace kiln::compile
