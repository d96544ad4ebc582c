// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <gtest/gtest.h>

namespace kiln::base {

TEST(bytes, what_is_written_is_read) {
    byte_writer w;
    w.put_u8(1);
    w.put_u16(0x0203);
    w.put_u32(0x04050607);
    w.put_u64(0x08090a0b0c0d0e0full);
    w.put_f64(-2.5);
    w.put_text("kiln");
    byte_reader r{w.view()};
    EXPECT_EQ(r.get_u8(), 1);
    EXPECT_EQ(r.get_u16(), 0x0203);
    EXPECT_EQ(r.get_u32(), 0x04050607u);
    EXPECT_EQ(r.get_u64(), 0x08090a0b0c0d0e0full);
    EXPECT_EQ(r.get_f64(), -2.5);
    EXPECT_EQ(r.get_text(), "kiln");
    EXPECT_TRUE(r.done());
}

TEST(bytes, numbers_are_little_endian) {
    byte_writer w;
    w.put_u32(0x01020304);
    EXPECT_EQ(as_text(w.view()), std::string_view("\x04\x03\x02\x01", 4));
}

TEST(bytes, reading_past_the_end_spoils_the_reader_and_stays_in_bounds) {
    byte_writer w;
    w.put_u32(100);  // a length with nothing behind it
    byte_reader r{w.view()};
    EXPECT_TRUE(r.get_blob().empty());
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.get_u64(), 0u);
    EXPECT_EQ(r.get_text(), "");
}

TEST(bytes, a_count_that_cannot_be_there_is_refused_before_allocation) {
    byte_writer w;
    w.put_u32(0xffffffff);
    w.put_u64(0);
    byte_reader r{w.view()};
    EXPECT_EQ(r.get_count(4), 0u);
    EXPECT_FALSE(r.ok());
}

TEST(bytes, truncation_at_every_byte_never_reads_as_complete) {
    byte_writer w;
    w.put_text("name");
    w.put_u64(7);
    for (std::size_t size = 0; size < w.size(); ++size) {
        byte_reader r{w.view().first(size)};
        r.get_text();
        r.get_u64();
        EXPECT_FALSE(r.done()) << size;
    }
}

}  // namespace kiln::base
