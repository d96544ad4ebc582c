// SPDX-License-Identifier: Apache-2.0
#include "engine/pack.hpp"

#include "compile/job.hpp"
#include "engine/pack_verbs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::engine_detail {

namespace {

using testing::HasSubstr;

int listed = 0;

std::vector<named_unit> three_names_of_two_units() {
    ++listed;
    unit const one{.name = "one", .source = "1"}, two{.name = "two", .source = "2"};
    return {{{.name = "a"}, one}, {{.name = "b"}, two}, {{.name = "also_a"}, one}};
}

unit_pack const zebra{{.name = "zebra", .ships = {}}, three_names_of_two_units};
unit_pack const antelope{{.name = "antelope", .ships = {}}, [] { return std::vector<named_unit>{}; }};

}  // namespace

TEST(unit_pack, names_share_units_and_the_list_is_made_once) {
    EXPECT_EQ(listed, 0) << "being linked makes nothing";
    ASSERT_EQ(zebra.specs().size(), 3U);
    EXPECT_EQ(zebra.specs()[0].pack, "zebra");
    EXPECT_EQ(zebra.units().size(), 2U);
    EXPECT_EQ(zebra.find_unit("also_a"), zebra.find_unit("a"));
    EXPECT_EQ(zebra.find_unit("b")->source, "2");
    EXPECT_EQ(zebra.find_unit("c"), nullptr);
    EXPECT_EQ(listed, 1);
}

TEST(unit_pack, a_recipe_is_its_name) {
    auto const found = zebra.find("also_a");
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (recipe{"zebra", "also_a", {}}));
    EXPECT_FALSE(zebra.find("nothing"));
    EXPECT_EQ(zebra.recipes().size(), 3U);
}

TEST(packs, are_in_order_of_their_names_and_errors_say_which_there_are) {
    ASSERT_EQ(packs().size(), 2U);
    EXPECT_EQ(packs()[0], &antelope);
    EXPECT_EQ(find_pack("zebra"), &zebra);
    auto const none = pack_named("lion");
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message(), HasSubstr("there are: antelope, zebra"));
    EXPECT_EQ(find_recipe("b")->kind, "zebra");
    EXPECT_THAT(find_recipe("c").error().message(), HasSubstr("zebra (3 names)"));
    EXPECT_EQ(catalogue().size(), 3U);
    EXPECT_EQ(find_spec("b")->pack, "zebra");
}

TEST(entry_of, keeps_what_is_known_of_an_artifact) {
    artifact a{.unit = "u", .target = target::parse("sm_90").value()};
    a.toolchain = "nvrtc 13";
    made_artifact const made{
        {std::make_shared<artifact const>(a), provenance::compiled, 0, {}}, {base::sha256_of("f"), {}, {}}, "MIT"};
    auto const e = entry_of(made, "kiln test");
    EXPECT_EQ(e->about.at, made.at);
    EXPECT_EQ(e->about.name, "u");
    EXPECT_EQ(e->about.target, "sm_90");
    EXPECT_EQ(e->about.kind, "cubin");
    EXPECT_EQ(e->about.toolchain, "nvrtc 13");
    EXPECT_EQ(e->about.producer, "kiln test");
    EXPECT_EQ(e->about.licence, "MIT");
    EXPECT_TRUE(compile::decode_artifact(e->payload));
}

}  // namespace kiln::engine_detail
