// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <gtest/gtest.h>

namespace kiln::base {

TEST(digest, sha256_of_known_texts) {
    EXPECT_EQ(sha256_of("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_of("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256{}.update(as_bytes("a")).update(as_bytes("bc")).finish(), sha256_of("abc"));
}

TEST(digest, hex_goes_both_ways_and_refuses_everything_else) {
    auto const d = sha256_of("kiln");
    EXPECT_EQ(digest::from_hex(d.hex()), d);
    EXPECT_FALSE(digest::from_hex(d.hex().substr(1)));
    auto upper = d.hex();
    upper[0] = 'G';
    EXPECT_FALSE(digest::from_hex(upper));
}

TEST(key_builder, fields_cannot_run_into_each_other) {
    auto const one = key_builder{"t"}.add("option", "-DA=1 2").finish();
    auto const two = key_builder{"t"}.add("option", "-DA=1").add("option", "2").finish();
    auto const three = key_builder{"t"}.add("optio", "n-DA=1 2").finish();
    EXPECT_NE(one, two);
    EXPECT_NE(one, three);
    EXPECT_NE(key_builder{"t"}.finish(), key_builder{"u"}.finish());
}

}  // namespace kiln::base
