// SPDX-License-Identifier: Apache-2.0
#include "audit/recording.hpp"
#include "audit/source_text.hpp"
#include "base/files.hpp"

#include <gtest/gtest.h>

namespace kiln::audit {
namespace {

// As the recorder writes it.
struct file_bytes {
    std::string data = std::string(format::file_magic.data(), 8) + std::string("\1\0\0\0\0\0\0\0", 8);
    std::uint64_t sequence = 0;
    void chunk(format::chunk type, std::string const& contents) {
        format::chunk_header head;
        head.type = static_cast<std::uint16_t>(type);
        head.length = static_cast<std::uint32_t>(contents.size());
        head.sequence = sequence++;
        unsigned char packed[format::chunk_header_bytes];
        format::write_record(head, packed);
        head.crc = format::crc32c(contents.data(), contents.size(), format::crc32c(packed, sizeof packed));
        format::write_record(head, packed);
        data.append(reinterpret_cast<char const*>(packed), sizeof packed);
        data += contents;
    }
    template <class Record>
    void record(Record const& r) {
        std::string contents(format::bytes_of<Record>(), '\0');
        format::write_record(r, reinterpret_cast<unsigned char*>(contents.data()));
        chunk(Record::kind, contents);
    }
    void string(std::uint32_t id, std::string const& text) {
        base::byte_writer w;
        w.put_u32(id);
        w.put_text(text);
        chunk(format::chunk::strings, std::string{base::as_text(w.view())});
    }
};

file_bytes sample() {
    file_bytes f;
    f.string(5, "saxpy");
    format::process_record about;
    about.pid = 7;
    f.record(about);
    for (std::uint32_t i = 0; i < 3; ++i) {
        format::kernel_record k;
        k.correlation = i + 1;
        k.start = 100 + i;
        k.end = 200 + i;
        k.name = 5;
        f.record(k);
    }
    return f;
}

process_recording parsed(std::string const& data, string_table& strings) {
    process_recording out;
    auto const done = parse_process(base::as_bytes(data), strings, out);
    EXPECT_TRUE(done) << done.error().message();
    return out;
}

TEST(recording, is_read_as_it_was_written) {
    string_table strings;
    auto const r = parsed(sample().data, strings);
    EXPECT_EQ(r.about.pid, 7u);
    ASSERT_EQ(r.kernels.size(), 3u);
    EXPECT_EQ(strings.at(r.kernels[2].name), "saxpy");
    EXPECT_EQ(r.kernels[2].end, 202u);
    EXPECT_EQ(r.skipped_bytes, 0u);
}

TEST(recording, layout_is_the_one_of_format_1) {
    auto const golden = sample().data;
    // Magic, version, then the first chunk: its magic, type, length.
    EXPECT_EQ(golden.substr(0, 12), std::string("KILNREC\n\1\0\0\0", 12));
    EXPECT_EQ(golden.substr(16, 12), std::string("KNCK\1\0\0\0\x0d\0\0\0", 12));
    EXPECT_EQ(format::bytes_of<format::kernel_record>(), 68u);
    EXPECT_EQ(format::bytes_of<format::call_record>(), 32u);
    EXPECT_EQ(format::crc32c("123456789", 9), 0xe3069283u);
}

TEST(recording, cut_anywhere_keeps_what_is_whole) {
    auto const data = sample().data;
    for (std::size_t size = format::file_header_bytes; size < data.size(); ++size) {
        string_table strings;
        auto const r = parsed(data.substr(0, size), strings);
        EXPECT_LE(r.kernels.size(), 3u);
        EXPECT_TRUE(r.skipped_bytes > 0 || r.chunks > 0 || size == format::file_header_bytes) << size;
    }
}

TEST(recording, a_flipped_byte_costs_its_chunk_alone) {
    auto const data = sample().data;
    for (std::size_t at = format::file_header_bytes; at < data.size(); ++at) {
        auto bad = data;
        bad[at] = static_cast<char>(bad[at] ^ 0x41);
        string_table strings;
        auto const r = parsed(bad, strings);
        EXPECT_EQ(r.chunks, 4u) << at;
        EXPECT_GT(r.skipped_bytes + r.unknown_chunks, 0u) << at;
    }
}

TEST(recording, a_long_file_is_read_as_if_it_were_held_whole) {
    auto f = sample();
    constexpr auto in_a_chunk = format::most_chunk_bytes / format::bytes_of<format::kernel_record>();
    for (int i = 0; i < 20; ++i) f.chunk(format::chunk::kernel, std::string(in_a_chunk * 68, '\1'));
    for (auto const at : {3'000'000, 9'437'190, 17'000'000}) f.data[static_cast<std::size_t>(at)] ^= 0x41;
    f.data.resize(f.data.size() - 5);
    string_table strings;
    auto const held = parsed(f.data, strings);
    EXPECT_EQ(held.chunks, 4u + 20 + 1 - 4);
    auto const place = base::temporary_directory::make().value();
    auto const file = place.path() / "p7.0.kilnrec";
    ASSERT_TRUE(base::replace_file(file, base::as_bytes(f.data)));
    auto const all = read_recording(file).value();
    auto const& read = all.processes.front();
    EXPECT_EQ(read.chunks, held.chunks);
    EXPECT_EQ(read.kernels.size(), held.kernels.size());
    EXPECT_EQ(read.skipped_bytes, held.skipped_bytes);
    EXPECT_EQ(read.missing_chunks, held.missing_chunks);
    EXPECT_EQ(read.bytes, f.data.size());
    EXPECT_FALSE(all.has_end) << "one file is a part of a recording";
}

TEST(recording, another_file_or_version_is_named) {
    string_table strings;
    process_recording r;
    EXPECT_EQ(parse_process(base::as_bytes("something else, and long enough"), strings, r).error().code(),
              errc::corrupt);
    auto newer = sample().data;
    newer[8] = 2;
    auto const why = parse_process(base::as_bytes(newer), strings, r).error();
    EXPECT_EQ(why.code(), errc::unsupported);
    EXPECT_NE(why.message().find("format 2"), std::string::npos);
}

TEST(recording, unknown_chunks_are_passed_over) {
    auto f = sample();
    f.chunk(static_cast<format::chunk>(99), "later");
    format::kernel_record k;
    f.record(k);
    string_table strings;
    auto const r = parsed(f.data, strings);
    EXPECT_EQ(r.unknown_chunks, 1u);
    EXPECT_EQ(r.kernels.size(), 4u);
}

TEST(recording, checksums_are_the_same_however_long) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
    for (std::size_t size = 0; size <= text.size(); ++size) {
        std::uint32_t one_by_one = 0;
        for (std::size_t i = 0; i < size; ++i) one_by_one = format::crc32c(&text[i], 1, one_by_one);
        EXPECT_EQ(format::crc32c(text.data(), size), one_by_one) << size;
    }
}

TEST(recording, of_a_directory_joins_recorder_and_companion) {
    auto const place = base::temporary_directory::make().value();
    ASSERT_TRUE(base::replace_file(place.path() / "p7.0.kilnrec", base::as_bytes(sample().data)));
    file_bytes companion;
    companion.string(1, "a.cu");
    format::compile_record c;
    c.what = 1;
    c.name = 1;
    companion.record(c);
    ASSERT_TRUE(base::replace_file(place.path() / "c7.kilnrec", base::as_bytes(companion.data)));
    ASSERT_TRUE(base::replace_file(place.path() / "p9.0.kilnrec", base::as_bytes("no recording at all")));
    ASSERT_TRUE(base::replace_file(place.path() / "run.json", base::as_bytes("{}")));
    auto const all = read_recording(place.path()).value();
    ASSERT_EQ(all.processes.size(), 2u);
    EXPECT_EQ(all.processes[0].kernels.size(), 3u);
    EXPECT_EQ(all.processes[0].compiles.size(), 1u);
    EXPECT_EQ(all.spoilt_files, 1u);
    ASSERT_TRUE(base::replace_file(place.path() / "run.json", base::as_bytes("")));
    EXPECT_EQ(read_recording(place.path()).value().spoilt_files, 2u);
    EXPECT_TRUE(all.has_end && !read_recording(place.path()).value().has_end);
    auto const nothing = base::temporary_directory::make().value();
    EXPECT_EQ(read_recording(nothing.path()).error().code(), errc::not_found);
}

// Of a whole chunk nothing is left to be seen but that the next one has another number.
TEST(recording, a_piece_cut_out_of_the_middle_is_counted) {
    auto const place = base::temporary_directory::make().value();
    auto const whole = sample().data;
    auto const second = whole.find(whole.substr(format::file_header_bytes, 4), format::file_header_bytes + 4);
    auto const third = whole.find(whole.substr(format::file_header_bytes, 4), second + 4);
    ASSERT_NE(third, whole.npos);
    auto const cut = whole.substr(0, second) + whole.substr(third);
    for (auto const* const name : {"p7.0.kilnrec", "c8.kilnrec"})
        ASSERT_TRUE(base::replace_file(place.path() / name, base::as_bytes(cut)));
    auto const all = read_recording(place.path()).value();
    ASSERT_EQ(all.processes.size(), 2u);
    EXPECT_EQ(all.processes[0].missing_chunks, 1u);
    EXPECT_EQ(all.processes[0].skipped_bytes, 0u);
    EXPECT_EQ(all.processes[1].missing_chunks, 0u) << "a fork's companion counts on from its parent's";
}

TEST(recording, of_a_newer_version_is_refused_and_of_another_format_not_judged) {
    auto const place = base::temporary_directory::make().value();
    ASSERT_TRUE(base::replace_file(place.path() / "p7.0.kilnrec", base::as_bytes(sample().data)));
    auto const with = [&](std::string_view about) {
        EXPECT_TRUE(base::replace_file(place.path() / "run.json", base::as_bytes(about)));
        return read_recording(place.path());
    };
    EXPECT_EQ(with(R"({"format":"kiln-recording","version":1})").value().spoilt_files, 0u);
    EXPECT_EQ(with(R"({"format":"kiln-recording","version":2})").error().code(), errc::unsupported);
    EXPECT_NE(with(R"({"version":2})").error().message().find("run.json"), std::string::npos);
    auto const other = with(R"({"format":"something-else","version":2,"label":"x"})").value();
    EXPECT_EQ(other.spoilt_files, 1u);
    EXPECT_EQ(other.about, "");
    EXPECT_EQ(with(R"({"format":7})").value().spoilt_files, 1u);
}

TEST(recording, keeps_source_as_text) {
    kept_sources sources;
    sources[{"/a b.py", 3}] = {.first = 1, .lines = {"x = 1", "", "\ty\tz"}};
    sources[{"/c.py", 1}] = {.first = 1, .lines = {"only"}};
    auto const again = kept_sources_from(to_text(sources));
    ASSERT_EQ(again.size(), 2u);
    EXPECT_EQ(again.at({"/a b.py", 3}).lines, (std::vector<std::string>{"x = 1", "", "\ty\tz"}));
    EXPECT_EQ(again.at({"/c.py", 1}).first, 1);
    EXPECT_TRUE(kept_sources_from("\tx\n/a\n/a\t0\t1\n\ty\n").empty());
}

}  // namespace
}  // namespace kiln::audit
