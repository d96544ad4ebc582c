// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_entry.hpp"

#include "intercept/foreign_store.hpp"
#include "intercept/run_log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln::intercept {

namespace {

foreign_entry example() {
    foreign_entry out;
    out.looks = {
        {.path = "/a.h", .content = {}},
        {.from = look::root::include_directory, .index = 3, .path = "b.h", .content = base::sha256_of("b")},
        {.from = look::root::include_directory, .index = 4, .path = "b.h", .content = base::sha256_of("b"), .file = 1}};
    out.answer.outputs = {{.name = "PTX", .status = 0, .data = std::string("a\0b", 3)},
                          {.name = "LTOIR", .status = 4, .data = {}}};
    out.answer.log = "warning";
    out.answer.lowered = {{"f<int>", "_Z1fIiEvv"}};
    out.answer.pch_status = 13;
    return out;
}

foreign_id id_named(std::string const& name) {
    auto const d = base::sha256_of(name);
    return {.digests = {d, d}, .kind = std::string{kind_nvrtc}, .name = name, .target = "sm_90", .toolchain = "tools"};
}

}  // namespace

TEST(foreign_entry, comes_back_as_it_was) {
    auto const data = encode(example());
    EXPECT_EQ(decode_foreign_entry(data).value(), example());
}

TEST(foreign_entry, cut_anywhere_it_is_refused) {
    auto const data = encode(example());
    for (std::size_t n = 0; n < data.size(); ++n)
        EXPECT_FALSE(decode_foreign_entry(base::byte_span{data}.first(n))) << n;
    auto longer = data;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_foreign_entry(longer));
}

TEST(run_log, lines_come_back) {
    happening h{.kind = happening::what::answered,
                .process = 42,
                .library = "nvrtc",
                .program = "f<float>",
                .target = "sm_90",
                .took = std::chrono::microseconds{7},
                .cost = std::chrono::milliseconds{1915},
                .at = store::address{base::sha256_of("a"), base::sha256_of("b"), base::sha256_of("c")},
                .detail = "new"};
    EXPECT_EQ(from_line(to_line(h)), h);
    h.at.reset();
    EXPECT_EQ(from_line(to_line(h)), h);
    h.program = "two\nlines\tand a tab";
    EXPECT_EQ(from_line(to_line(h))->program, "two lines and a tab");
    for (auto const* rubbish : {"", "answered", "nonsense\t\t\t\t\t\t\t\t\t\t"}) EXPECT_FALSE(from_line(rubbish));
}

class a_foreign_store : public testing::Test {
protected:
    foreign_store open(char const* variable = nullptr, std::string const& value = "1") {
        auto settings = base::config::load();
        settings.set("KILN_CACHE_DIR", scratch_.path() / "cache", base::origin::call);
        if (variable != nullptr) settings.set(variable, value, base::origin::call);
        return foreign_store{settings};
    }
    base::temporary_directory scratch_ = base::temporary_directory::make().value();
};

TEST_F(a_foreign_store, gives_back_what_it_kept_with_its_cost) {
    auto first = open();
    auto what = example();
    what.looks.clear();
    EXPECT_FALSE(first.find(id_named("k"), {}).hit);
    EXPECT_TRUE(first.keep(id_named("k"), what, std::chrono::milliseconds{1915}));
    auto second = open();
    auto const found = second.find(id_named("k"), {});
    ASSERT_TRUE(found.hit);
    EXPECT_EQ(found.hit->answer, what.answer);
    EXPECT_EQ(found.hit->cost.count(), 1915);
    EXPECT_FALSE(second.find(id_named("j"), {}).hit);
    auto other_kind = id_named("k");
    other_kind.kind = std::string{kind_step};
    EXPECT_FALSE(second.find(other_kind, {}).hit);
}

TEST_F(a_foreign_store, says_which_header_changed) {
    auto store = open();
    auto what = example();
    what.looks = {{.path = scratch_.path() / "h.h", .content = base::sha256_of("old")}};
    ASSERT_TRUE(store.keep(id_named("k"), what, {}));
    base::replace_file(scratch_.path() / "h.h", base::as_bytes("new")).value();
    EXPECT_EQ(store.find(id_named("k"), {}).why, (scratch_.path() / "h.h").native() + " changed");
    base::replace_file(scratch_.path() / "h.h", base::as_bytes("old")).value();
    EXPECT_TRUE(store.find(id_named("k"), {}).hit);
}

TEST_F(a_foreign_store, keeps_nothing_where_it_may_not) {
    { EXPECT_TRUE(open().keep(id_named("k"), {}, {})); }
    auto read_only = open("KILN_READONLY");
    EXPECT_TRUE(read_only.find(id_named("k"), {}).hit);
    EXPECT_FALSE(read_only.keep(id_named("j"), {}, {}));
    EXPECT_EQ(read_only.lead(base::sha256_of("j")).outcome(), store::flight_outcome::unsupported);
    EXPECT_TRUE(open("KILN_DISABLE").empty());
    EXPECT_EQ(open("KILN_RECACHE").find(id_named("k"), {}).why, "recache");
}

TEST_F(a_foreign_store, one_leads_and_the_next_is_told_when_it_is_done) {
    auto store = open();
    auto leading = store.lead(base::sha256_of("r"));
    EXPECT_EQ(leading.outcome(), store::flight_outcome::leader);
    leading.release();
    EXPECT_EQ(store.lead(base::sha256_of("r")).outcome(), store::flight_outcome::leader);
}

}  // namespace kiln::intercept
