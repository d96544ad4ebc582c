// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::base {

TEST(text, that_turns_itself_about_is_shown_as_it_is) {
    EXPECT_EQ(readable_utf8("a\u202egpj.exe"), "a?gpj.exe");
    EXPECT_EQ(readable_utf8("\u2028\u2029\u202a\u2066\u2069\u200e\u200f"), "???????");
    EXPECT_EQ(readable_utf8("\u2026\u202f\u2065\u206a\u2014 größe"), "\u2026\u202f\u2065\u206a\u2014 größe");
}

TEST(text, what_is_utf8_stays_as_it_is) {
    for (auto const* good :
         {"", "plain", "\xC3\xA9", "\xE3\x82\xAB x", "\xF0\x9F\x94\xA5", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"})
        EXPECT_EQ(valid_utf8(good), good);
}

TEST(text, what_is_not_is_replaced_and_a_cut_end_left_out) {
    std::string const mark = "\xEF\xBF\xBD";
    EXPECT_EQ(valid_utf8("a\x80z"), "a" + mark + "z");
    EXPECT_EQ(valid_utf8("\xC3("), mark + "(");
    EXPECT_EQ(valid_utf8("ab\xE3\x82"), "ab");
    EXPECT_EQ(valid_utf8("ab\xF0\x9F\x94"), "ab");
    EXPECT_EQ(valid_utf8("\xE3\x82z"), mark + "z");
}

TEST(text, any_bytes_become_json) {
    for (int a = 0x70; a < 0x100; ++a) {
        for (int b = 0x70; b < 0x100; b += 3) {
            for (int const c : {int{'x'}, 0x80, 0xBF, 0xC3, 0xF0}) {
                std::string const bytes{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
                EXPECT_NO_THROW((void)nlohmann::json(valid_utf8(bytes)).dump()) << a << " " << b << " " << c;
                EXPECT_FALSE(nlohmann::json::parse(json_text(nlohmann::json{bytes}), nullptr, false).is_discarded());
            }
        }
    }
}

TEST(text, is_cut_at_a_character) {
    EXPECT_EQ(first_characters("abc", 5), "abc");
    EXPECT_EQ(first_characters("abc", 2), "ab");
    EXPECT_EQ(first_characters("a\xE3\x82\xAB", 2), "a");
    EXPECT_EQ(first_characters("a\xE3\x82\xAB", 3), "a");
    EXPECT_EQ(first_characters("a\xE3\x82\xABz", 4), "a\xE3\x82\xAB");
    EXPECT_EQ(first_characters("\xE3\x82\xAB", 0), "");
}

}  // namespace kiln::base
