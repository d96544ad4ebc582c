// SPDX-License-Identifier: Apache-2.0
#include "engine/ledger.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

namespace kiln::engine_detail {
namespace {

base::digest id(std::uint8_t n) {
    base::digest out;
    out.bytes.fill(n);
    return out;
}

TEST(ledger, two_libraries_that_use_one_name_have_two_lines) {
    ledger book;
    book.asked({"saxpy", id(1)}, "sm_90", priority::blocking);
    book.asked({"saxpy", id(2)}, "sm_90", priority::blocking);
    book.failed({"saxpy", id(2)}, "sm_90", fail(errc::compile_failed, "text"));
    book.obtained({"saxpy", id(1)}, "sm_90", {provenance::compiled, 3, 100});
    auto const all = book.report();
    ASSERT_EQ(all.submitted, 2u);
    EXPECT_EQ(all.units[0].state, work_state::ready);
    EXPECT_EQ(all.units[0].error, "");
    EXPECT_EQ(all.units[1].state, work_state::failed);
    EXPECT_EQ(book.find({"saxpy", id(1)}, "sm_90")->state, work_state::ready);
    EXPECT_EQ(book.find({"saxpy", id(2)}, "sm_90")->state, work_state::failed);
    EXPECT_FALSE(book.find({"saxpy", id(1)}, "sm_80"));
}

TEST(ledger, what_a_pack_knows_by_name_and_makes_of_a_unit_is_one_line) {
    ledger book;
    book.demanded("spec", "sm_90", priority::planned, "somebody");
    book.asked({"spec", id(1)}, "sm_90", priority::planned);
    book.obtained({"spec", id(1)}, "sm_90", {provenance::disk, 0, 0});
    EXPECT_EQ(book.report().submitted, 1u);
    EXPECT_EQ(book.find("spec", "sm_90")->from, provenance::disk);
    EXPECT_EQ(book.find({"spec", id(1)}, "sm_90")->consumers, "somebody");
    book.asked({"spec", id(2)}, "sm_90", priority::planned);
    EXPECT_EQ(book.report().submitted, 2u) << "another thing of that name";
}

TEST(ledger, a_name_alone_finds_what_came_with_an_identity) {
    ledger book;
    book.asked({"k", id(1)}, "sm_90", priority::declared);
    book.demanded("k", "sm_90", priority::declared, "somebody");
    EXPECT_EQ(book.report().submitted, 1u);
}

}  // namespace
}  // namespace kiln::engine_detail
