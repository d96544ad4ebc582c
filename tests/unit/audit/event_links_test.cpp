// SPDX-License-Identifier: Apache-2.0
#include "audit/event_links.hpp"

#include "audit/recording.hpp"

#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace kiln::audit {
namespace {

namespace fs = std::filesystem;

class audit_event_links : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = fs::temp_directory_path() / "kiln-links-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        std::ofstream{folder_ / "run.json"} << "{}\n";
    }
    void TearDown() override { fs::remove_all(folder_); }

    // As the companion leaves it.
    template <class Record>
    void leave(std::string const& name, Record const& r, std::string const& text) const {
        std::string target;
        auto const put = [&](unsigned byte) {
            target += "0123456789abcdef"[byte >> 4];
            target += "0123456789abcdef"[byte & 15];
        };
        unsigned char bytes[format::bytes_of<Record>()];
        format::write_record(r, bytes);
        put(static_cast<unsigned>(Record::kind));
        for (auto const b : bytes) put(b);
        fs::create_symlink(target + text, folder_ / name);
    }

    fs::path folder_;
    std::set<fs::path> stuck_;
};

format::child_record child(std::uint32_t pid, std::uint64_t time) {
    format::child_record out;
    out.pid = pid;
    out.name = 7;
    out.event = 3;
    out.time = time;
    return out;
}

TEST_F(audit_event_links, become_the_file_of_their_process_in_the_order_of_time) {
    leave("c5.10.2.0.event", child(2, 2), "second");
    leave("c5.9.900000000.7.event", child(1, 1), "fir\xffst");
    format::compile_record compile;
    compile.name = 7;
    compile.start = 40;
    leave("c5.10.2.1.event", compile, "a.cu\t-G");
    gather_event_links(folder_, gathering::last, stuck_);

    auto const read = read_recording(folder_).value();
    ASSERT_EQ(read.processes.size(), 1u);
    auto const& p = read.processes[0];
    ASSERT_EQ(p.children.size(), 2u);
    EXPECT_EQ(read.strings.at(p.children[0].name), "fir\xffst");
    EXPECT_EQ(read.strings.at(p.children[1].name), "second");
    ASSERT_EQ(p.compiles.size(), 1u);
    EXPECT_EQ(read.strings.at(p.compiles[0].name), "a.cu\t-G");
    EXPECT_EQ(p.missing_chunks, 0u);
    EXPECT_EQ(read.spoilt_files, 0u);
    EXPECT_FALSE(fs::is_symlink(folder_ / "c5.10.2.0.event"));

    leave("c5.11.0.0.event", child(3, 3), "later");  // into the same file
    unsigned char bytes[format::bytes_of<format::child_record>()];
    format::write_record(child(4, 4), bytes);
    std::string name = "c5.12.0.1.12";
    for (auto const b : bytes) name += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
    fs::create_hard_link(folder_ / "c5.kilnrec", folder_ / (name + "2f62.event"));
    gather_event_links(folder_, gathering::last, stuck_);
    auto const more = read_recording(folder_).value();
    ASSERT_EQ(more.processes.at(0).children.size(), 4u);
    EXPECT_EQ(more.strings.at(more.processes[0].children[3].name), "/b");
    EXPECT_FALSE(fs::exists(folder_ / (name + "2f62.event")));
}

TEST_F(audit_event_links, that_make_no_sense_stay) {
    for (auto const* name : {"c5.1.2.event", "cx.1.2.3.event", "c0.1.2.3.event", "p5.1.2.3.event", "c5.1.2.3.event.x"})
        leave(name, child(1, 1), "");
    fs::create_symlink("12", folder_ / "c5.1.2.3.event");    // cut
    fs::create_symlink("zz", folder_ / "c5.1.2.4.event");    // no digits
    fs::create_symlink("0600", folder_ / "c5.1.2.5.event");  // another kind
    std::ofstream{folder_ / "c5.1.2.6.event"} << "no link\n";
    gather_event_links(folder_, gathering::last, stuck_);
    EXPECT_FALSE(fs::exists(folder_ / "c5.kilnrec"));
    EXPECT_TRUE(fs::exists(folder_ / "c5.1.2.6.event"));
}

TEST_F(audit_event_links, that_cannot_be_removed_are_put_into_the_file_once) {
    leave("c5.1.2.3.event", child(1, 1), "");
    unsigned char bytes[format::bytes_of<format::child_record>()];
    format::write_record(child(2, 2), bytes);
    std::string name = "c5.1.2.4.12";
    for (auto const b : bytes) name += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
    fs::create_directory(folder_ / (name + ".event"));
    EXPECT_EQ(gather_event_links(folder_, gathering::under_way, stuck_), 2u);
    EXPECT_EQ(gather_event_links(folder_, gathering::last, stuck_), 0u);
    EXPECT_EQ(read_recording(folder_).value().processes.at(0).children.size(), 2u);
}

TEST_F(audit_event_links, stay_and_are_told_to_be_missing_where_the_file_cannot_be_written) {
    fs::create_symlink("/nonexistent", folder_ / "c5.kilnrec");
    leave("c5.1.2.3.event", child(1, 1), "");
    gather_event_links(folder_, gathering::under_way, stuck_);
    EXPECT_FALSE(fs::exists(folder_ / "c5.kilnrec.full")) << "it may be written later";
    gather_event_links(folder_, gathering::last, stuck_);
    EXPECT_TRUE(fs::exists(folder_ / "c5.kilnrec.full"));
    EXPECT_FALSE(fs::exists("/nonexistent"));
    EXPECT_TRUE(fs::is_symlink(folder_ / "c5.1.2.3.event"));
}

TEST_F(audit_event_links, that_find_no_room_can_be_gathered_later) {
    leave("c5.1.2.3.event", child(1, 1), "first");
    gather_event_links(folder_, gathering::under_way, stuck_);
    auto const before = fs::file_size(folder_ / "c5.kilnrec");
    leave("c5.1.2.4.event", child(2, 2), "second");
    ::rlimit was{};
    ::getrlimit(RLIMIT_FSIZE, &was);
    auto const handler = ::signal(SIGXFSZ, SIG_IGN);
    ::rlimit const little{before + 10, was.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
    gather_event_links(folder_, gathering::under_way, stuck_);
    ::setrlimit(RLIMIT_FSIZE, &was);
    ::signal(SIGXFSZ, handler);
    EXPECT_EQ(fs::file_size(folder_ / "c5.kilnrec"), before);
    EXPECT_TRUE(fs::is_symlink(folder_ / "c5.1.2.4.event"));
    gather_event_links(folder_, gathering::last, stuck_);
    auto const read = read_recording(folder_).value();
    EXPECT_EQ(read.processes.at(0).children.size(), 2u);
    EXPECT_EQ(read.spoilt_files, 0u);
}

}  // namespace
}  // namespace kiln::audit
