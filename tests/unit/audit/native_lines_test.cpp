// SPDX-License-Identifier: Apache-2.0
#include "audit/native_lines.hpp"

#include "audit/model.hpp"

#include <gtest/gtest.h>

namespace kiln::audit {
namespace {

constexpr char const* program = "/home/ann/solver";

recording with_stack(std::string_view stack) {
    recording out;
    out.processes.resize(1);
    format::site_record s;
    s.correlation = 1;
    s.stack = out.strings.intern(stack);
    out.processes.front().sites.push_back(s);
    return out;
}
std::string stack_of(recording const& r) { return r.strings.at(r.processes.front().sites.front().stack); }

TEST(audit_native_lines, are_asked_of_every_native_frame_once) {
    auto const r = with_stack(
        "/home/ann/solver\t+1a2b\t\n/home/ann/solver\t+ff\t\n/home/ann/solver\t+1a2b\t\n"
        "/home/ann/train.py\t12\tstep\n");
    auto const asked = native_frames_of(r);
    ASSERT_EQ(asked.size(), 2u);
    EXPECT_TRUE(asked.contains({program, 0x1a2b}));
    EXPECT_TRUE(asked.contains({program, 0xff}));
}

TEST(audit_native_lines, come_from_addr2line_with_what_was_inlined) {
    native_lines lines{{{program, 0x1a2b}, {}}, {{program, 0xff}, {}}, {{program, 0x100}, {}}};
    take_addr2line(
        "0x0000000000001a2b\nstep(int)\n/home/ann/solver.cpp:12 (discriminator 2)\nmain\n/home/ann/solver.cpp:40\n"
        "0x00000000000000ff\ncudaMemcpy\n??:0\n"
        "0x0000000000000100\n??\n??:?\n"
        "0x0000000000000999\nof_nobody\nx.cpp:1\n",
        program, lines);
    ASSERT_EQ(lines.size(), 3u);
    auto const& inlined = lines[{program, 0x1a2b}];
    ASSERT_EQ(inlined.size(), 2u);
    EXPECT_EQ(inlined[0].function, "step(int)");
    EXPECT_EQ(inlined[0].line, 12);
    EXPECT_EQ(inlined[1].file, "/home/ann/solver.cpp");
    auto const& named = lines[{program, 0xff}];
    ASSERT_EQ(named.size(), 1u);
    EXPECT_EQ(named[0].function, "cudaMemcpy");
    EXPECT_EQ(named[0].line, 0);
    EXPECT_TRUE((lines[{program, 0x100}].empty()));
}

TEST(audit_native_lines, are_kept_as_text_and_read_again) {
    native_lines const lines{
        {{program, 0x1a2b}, {{"/home/ann/a\tb.cpp", "f\n(int)", 12}, {"/home/ann/b.cpp", "main", 40}}},
        {{program, 0xff}, {}}};
    auto const again = native_lines_from(to_text(lines));
    ASSERT_EQ(again.size(), 1u);
    auto const& known = again.at({program, 0x1a2b});
    ASSERT_EQ(known.size(), 2u);
    EXPECT_EQ(known[0].file, "/home/ann/a b.cpp");
    EXPECT_EQ(known[0].function, "f (int)");
    EXPECT_EQ(known[1].line, 40);
}

TEST(audit_native_lines, nonsense_is_passed_over) {
    EXPECT_TRUE(native_lines_from("").empty());
    EXPECT_TRUE(native_lines_from("\tno\tframe\tbefore\n\n\t\n+1\nx\n").empty());
    auto const some = native_lines_from("a\t+zz\n\tx.cpp\t1\tf\nb\t+1\n\tx.cpp\tmany\tf\n\t\n");
    ASSERT_EQ(some.size(), 1u);
    EXPECT_EQ(some.begin()->second.front().line, 0);
    auto r = with_stack("garbage\n/home/ann/solver\t+1\t\n");
    put_lines(some, r);
    EXPECT_EQ(stack_of(r), "garbage\n/home/ann/solver\t+1\t\n");
}

TEST(audit_native_lines, take_the_places_of_their_frames) {
    auto r = with_stack("/home/ann/solver\t+1\t\n/home/ann/solver\t+2\t\n/usr/lib/libc.so.6\t+3\t\n");
    put_lines({{{program, 1}, {{"", "cudaMemcpy", 0}}}, {{program, 2}, {{"/home/ann/s.cpp", "solve()", 12}}}}, r);
    EXPECT_EQ(stack_of(r),
              "/home/ann/solver\t0\tcudaMemcpy\t/home/ann/solver\n"
              "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n/usr/lib/libc.so.6\t+3\t\n");
}

// ---- whose line it is

struct native_case {
    char const *name, *stack, *label;
    bool caller;
};
class audit_native_place : public ::testing::TestWithParam<native_case> {};

TEST_P(audit_native_place, is_the_users) {
    auto const& c = GetParam();
    auto const found = place_from(c.stack);
    EXPECT_EQ(found.label, c.label);
    EXPECT_EQ(found.caller, c.caller);
}

INSTANTIATE_TEST_SUITE_P(
    each, audit_native_place,
    ::testing::Values(
        native_case{"own_line", "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n", "s.cpp:12", true},
        native_case{
            "runtime_linked_in",
            "/home/ann/solver\t0\t__cudart522\t/home/ann/solver\n/home/ann/solver\t0\tcudaMemcpy\t/home/ann/solver\n"
            "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n",
            "s.cpp:12", true},
        native_case{"launch_through_its_stub",
                    "/usr/local/cuda/include/cuda_runtime.h\t240\tcudaLaunchKernel<char>\t/home/ann/solver\n"
                    "/tmp/x.cudafe1.stub.c\t14\t__device_stub__Z4spinx(long long)\t/home/ann/solver\n"
                    "/home/ann/s.cu\t18\tspin(long long)\t/home/ann/solver\n"
                    "/home/ann/s.cu\t47\tsolve(int)\t/home/ann/solver\n",
                    "s.cu:47", false},
        native_case{"stub_called_at_once",
                    "/tmp/x.cudafe1.stub.c\t14\t__device_stub__Z4spinx(long long)\t/home/ann/solver\n"
                    "/home/ann/s.cu\t47\tsolve(int)\t/home/ann/solver\n",
                    "s.cu:47", true},
        native_case{"header_of_a_library",
                    "/usr/include/thrust/sort.h\t9\tthrust::sort()\t/home/ann/solver\n"
                    "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n",
                    "s.cpp:12", false},
        native_case{"object_of_a_library",
                    "/usr/lib/libblas.so\t+99\t\n/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n", "s.cpp:12", false},
        native_case{"kilns_library",
                    "/srv/kiln/src/cuda/kernel.cpp\t9\tlaunch()\t/srv/lib/libkiln.so.1\n"
                    "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n",
                    "s.cpp:12", false},
        native_case{"line_before_a_name",
                    "/home/ann/libx.so\t0\thelp()\t/home/ann/libx.so\n"
                    "/home/ann/s.cpp\t12\tsolve()\t/home/ann/solver\n",
                    "s.cpp:12", true},
        native_case{"kilns_header",
                    "/srv/kiln/include/kiln/device.hpp\t160\tdownload_sync()\t/home/ann/solver\n/home/ann/"
                    "s.cpp\t12\tsolve()\t/home/ann/solver\n",
                    "s.cpp:12", false},
        native_case{"generated_by_torch_compile",
                    "/tmp/torchinductor_ann/xb/cxbfal.py\t128\tcall\n/home/ann/train.py\t12\tstep\n", "train.py:12",
                    false},
        native_case{"no_line", "/home/ann/solver\t+1a2b\t\n/usr/lib/libc.so.6\t+3\t\n", "solver+0x1a2b", true},
        native_case{"a_name", "/home/ann/solver\t0\tsolve()\t/home/ann/solver\n", "solver", true}),
    [](auto const& about) { return about.param.name; });

}  // namespace
}  // namespace kiln::audit
