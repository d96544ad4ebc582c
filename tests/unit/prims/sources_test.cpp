// SPDX-License-Identifier: Apache-2.0
#include "prims/sources.hpp"

#include "prims/prim_info.hpp"

#include <gmock/gmock.h>

namespace kiln::prims {

namespace {

TEST(kernel_headers, travel_in_the_library) {
    std::vector<std::string> names;
    for (auto const& h : kernel_headers()) names.push_back(h.name);
    EXPECT_THAT(names, testing::IsSupersetOf({"kiln/prims/scan.cu", "kiln/prims/prelude.cuh", "kiln/prims/names.cuh"}));
}

TEST(packed_headers, come_back_as_they_were) {
    std::vector<header> const files{{"b.h", std::string(100'000, 'x')}, {"a/a.h", "#pragma once\n"}};
    auto const packed = pack(files);
    EXPECT_LT(packed.size(), 1000U);
    auto const back = unpack(packed);
    ASSERT_TRUE(back);
    ASSERT_EQ(back->files.size(), 2U);
    EXPECT_EQ(back->files[0].name, "a/a.h");
    EXPECT_EQ(back->files[1].text, files[0].text);
    EXPECT_EQ(pack(files), packed);
    EXPECT_EQ(packed_digest(packed).value(), back->digest);
}

TEST(packed_headers, cut_or_changed_anywhere_are_refused) {
    auto const packed = pack(std::vector<header>{{"a.h", "int a;"}, {"b.h", "int b;"}});
    for (std::size_t n = 0; n < packed.size(); ++n) EXPECT_FALSE(unpack({packed.data(), n})) << n;
    for (std::size_t i = 0; i < packed.size(); ++i) {
        auto bad = packed;
        bad[i] ^= std::byte{0x40};
        EXPECT_FALSE(unpack(bad)) << i;
    }
}

base::bytes words(std::vector<std::uint32_t> const& values) {
    base::byte_writer out;
    for (auto const v : values) out.put_u32(v);
    for (auto i = values.size(); i < 16; ++i) out.put_u32(0);
    return std::move(out).take();
}

TEST(prim_info, is_read_from_the_images_bytes) {
    auto const info = decode_info(words({3, 300001, 900, 128, 24, 8, 0, 32}));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->tile(), 3072U);
    EXPECT_EQ(tile_states_of(*info).bytes(10), 512U);  // 42 descriptors of 8 bytes
    EXPECT_FALSE(decode_info(words({2, 300001, 900, 128, 24})));
    EXPECT_FALSE(decode_info(words({3, 300001, 900, 0, 24})));
    EXPECT_FALSE(decode_info(base::bytes(60)));
}

TEST(tile_states, of_wide_types_have_two_more_arrays) {
    EXPECT_EQ((tile_states{4, 32, 32}.bytes(32)), 256U + 2 * 2048U + 256U);
}

}  // namespace

}  // namespace kiln::prims
