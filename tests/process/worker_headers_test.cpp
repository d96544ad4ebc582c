// SPDX-License-Identifier: Apache-2.0
// Precompiled headers in the real kiln-worker with the real compiler: what comes out is what comes out without, to the byte, and
// no edit of a header is missed. Skipped, by name, where there is no NVRTC.
#include "compile/precompiled_headers.hpp"
#include "real_worker_fixture.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <random>
#include <sys/stat.h>

namespace kiln::compile::testing {

using ::testing::HasSubstr;
using ::testing::Not;

class worker_headers_test : public real_worker_test {
protected:
    void write(std::string const& name, std::string_view text) const {
        fs::create_directories(scratch(name).parent_path());
        base::replace_file(scratch(name), base::as_bytes(text)).value();
    }
    [[nodiscard]] job of(unit u, target const& t = target::parse("sm_90").value()) const {
        u.options.emplace_back("--no-cache");
        u.include_dirs = {scratch("first"), scratch("second")};
        u.directory = scratch("source");
        return {tools_, compile_job{std::move(u), t}};
    }
    // Large enough that a precompiled header of it is made at once, small enough for a test.
    static constexpr char toolkit_header[] = "#include <cuda_fp16.h>\n";

    [[nodiscard]] static unit kernel(std::string name, std::string const& prefix, std::string const& value) {
        auto source = prefix + "extern \"C\" __global__ void " + name + "(int* x) { x[0] = " + value + "; }\n";
        return {.name = name, .source = std::move(source), .kernels = {name}};
    }
    // As a worker runs it, and as it runs in a user's process, where precompiled headers are never used.
    [[nodiscard]] outcome with(job const& work) {
        auto out = run_job_with(kept_, work);
        ++(kept_.last == header_use::made ? made_ : kept_.last == header_use::reused ? reused_ : plain_);
        return out;
    }
    [[nodiscard]] static outcome without(job const& work) { return run_job(work); }
    [[nodiscard]] outcome in_pool(job const& work) { return submit(work).get(); }
    precompiled_headers kept_{std::uint64_t{512} << 20};
    int made_ = 0, reused_ = 0, plain_ = 0;

    static void expect_same(outcome const& one, outcome const& other) {
        ASSERT_EQ(one.has_value(), other.has_value()) << (one ? other : one).error().log();
        if (!one) {
            EXPECT_EQ(one.error().message(), other.error().message());
            EXPECT_EQ(one.error().log(), other.error().log());
            return;
        }
        EXPECT_EQ(one->log, other->log);
        EXPECT_TRUE(one->image == other->image);
        EXPECT_EQ(one->dependencies.size(), other->dependencies.size());
        auto const timeless = [](product p) { return p.compile_ms = 0, encode(p); };
        EXPECT_TRUE(timeless(*one) == timeless(*other));
    }
};

// A worker has another working directory, and would find the header further on, or none.
TEST_F(worker_headers_test, a_header_by_a_link_to_what_each_process_has_of_its_own_is_refused) {
    write("second/own.h", "#define VALUE 2\n");
    fs::create_directories(scratch("first"));
    fs::create_symlink("/proc/self/cwd/own.h", scratch("first/own.h"));
    open_real(1);
    auto const made = in_pool(of(kernel("k", "#include <own.h>\n", "VALUE")));
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message() + made.error().log(), HasSubstr("include it by its own path"));
    fs::remove(scratch("first/own.h"));
    fs::create_symlink(scratch("second/own.h"), scratch("first/own.h"));
    EXPECT_TRUE(in_pool(of(kernel("k", "#include <own.h>\n", "VALUE"))));
}

// What the kernel says is a header like any other to whoever includes it.
TEST_F(worker_headers_test, texts_of_the_kernels_are_headers_too) {
    open_real(1);
    auto const made =
        in_pool(of(kernel("k", "constexpr int value =\n#include \"/proc/sys/kernel/pid_max\"\n;\n", "value")));
    ASSERT_TRUE(made) << made.error().message() << made.error().log();
    EXPECT_TRUE(std::ranges::any_of(made->dependencies, [](dependency const& d) {
        return d.path == "/proc/sys/kernel/pid_max" && !d.content.empty();
    }));
    constexpr auto page = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    if (fs::exists(page)) {
        auto const told =
            in_pool(of(kernel("k", fmt::format("constexpr int value =\n#include \"{}\"\n;\n", page), "value")));
        ASSERT_TRUE(told) << told.error().message() << told.error().log();
        EXPECT_TRUE(std::ranges::any_of(told->dependencies,
                                        [&](dependency const& d) { return d.path == page && !d.content.empty(); }));
    }
    auto const own = in_pool(of(kernel("k", "constexpr int value =\n#include \"/proc/self/loginuid\"\n;\n", "value")));
    ASSERT_FALSE(own) << "a worker has another";
    EXPECT_THAT(own.error().message() + own.error().log(), HasSubstr("include it by its own path"));
}

TEST_F(worker_headers_test, the_second_unit_with_the_same_headers_reads_none_and_is_the_same_to_the_byte) {
    std::string const prefix = std::string{toolkit_header} + "#define STEP 3\n";
    for (int i = 0; i < 4; ++i) {
        auto const work = of(kernel(fmt::format("k{}", i), prefix, "__half2int_rn(__float2half(STEP + x[1]))"));
        expect_same(with(work), without(work));
    }
    EXPECT_EQ(made_, 1);
    EXPECT_EQ(reused_, 3);
}

// The compiler forgets with a precompiled header which of its files say `#pragma once`: by another name one would be read again.
TEST_F(worker_headers_test, a_header_by_another_name_is_skipped_where_it_says_once) {
    write("first/a.h",
          "#pragma once\n#ifdef SEEN\n#undef V\n#define V 4\n#else\n#define V 1\n#endif\n#define SEEN 1\n");
    fs::create_hard_link(scratch("first/a.h"), scratch("first/hard.h"));
    fs::create_symlink("a.h", scratch("first/soft.h"));
    std::string const prefix = std::string{toolkit_header} + "#include <a.h>\n";
    for (auto const* const again : {"a.h", "hard.h", "soft.h", "a.h", "hard.h"}) {
        auto unit = kernel("k", prefix, "V");
        unit.source = prefix + "__device__ int g;\n#include <" + again + ">\n" + unit.source.substr(prefix.size());
        auto const work = of(std::move(unit));
        expect_same(with(work), without(work));
    }
    EXPECT_EQ(made_, 1);
    EXPECT_GE(reused_, 1);
}

TEST_F(worker_headers_test, line_information_is_the_same_to_the_byte) {
    // A source of nothing but templates is another one every second: the compiler names it after the time.
    std::string const source =
        "#include <cuda_fp16.h>\nextern \"C\" __global__ void anchor(int* x) { *x = 1; }\n"
        "template <class T> __global__ void twice(T* p) { *p = *p + *p; }\n";
    for (auto const* const name : {"one", "two", "two"}) {
        auto const work = of({.name = name, .source = source, .kernels = {"twice<__half>"}, .options = {"-lineinfo"}});
        expect_same(with(work), without(work));
    }
    // It has the name of the source in it, so that two names share nothing.
    EXPECT_EQ(made_, 2);
    EXPECT_EQ(reused_, 1);
}

// Instantiated at the end of the header, as the compiler has it by default, these come out in another order.
TEST_F(worker_headers_test, templates_that_headers_instantiate_are_the_same_to_the_byte) {
    std::string const source =
        "#include <cuda/barrier>\n#include <cuda/std/complex>\n"
        "__global__ void mul(cuda::std::complex<double>* p) { *p *= p[1]; }\n"
        "__global__ void meet(int* p) {\n    __shared__ cuda::barrier<cuda::thread_scope_block> b;\n"
        "    if (threadIdx.x == 0) init(&b, blockDim.x);\n    __syncthreads();\n    b.arrive_and_wait();\n    *p = "
        "1;\n}\n";
    auto const work = of({.name = "two", .source = source, .kernels = {"mul", "meet"}},
                         target::parse("sm_90", artifact_kind::ltoir).value());
    auto const plain = without(work);
    for (int again = 0; again < 2; ++again) expect_same(with(work), plain);
    EXPECT_EQ(made_, 1);
    EXPECT_EQ(reused_, 1);
}

TEST_F(worker_headers_test, warnings_of_headers_are_told_of_every_unit) {
    write("first/noisy.h",
          "#warning from a header\n__device__ static inline int twice(int x) { int unused; return 2 * x; }\n");
    std::string const prefix = std::string{toolkit_header} + "#include \"noisy.h\"\n#warning from the source\n";
    for (auto const* const name : {"one", "two", "three"}) {
        auto const work = of(kernel(name, prefix, "twice(x[1]); int never"));
        auto const got = with(work);
        expect_same(got, without(work));
        EXPECT_THAT(got.value().log, HasSubstr("from a header"));
        EXPECT_THAT(got.value().log, Not(HasSubstr("precompiled")));
    }
    EXPECT_EQ(reused_, 2);
}

TEST_F(worker_headers_test, errors_are_the_same_errors_and_a_mended_header_is_read) {
    write("first/q.h", "#define Q 1\n");
    std::string const prefix = std::string{toolkit_header} + "#include <q.h>\n";
    for (auto const* const value : {"1", "no_such_thing", "2", "Q"}) {
        auto const work = of(kernel("k", prefix, value));
        expect_same(with(work), without(work));
    }
    EXPECT_EQ(reused_, 3);
    write("first/q.h", "this is no header\n");
    auto const broken = of(kernel("k", prefix, "Q"));
    expect_same(with(broken), without(broken));
    write("first/q.h", "#define Q 7\n");
    for (int again = 0; again < 2; ++again) expect_same(with(broken), without(broken));
    EXPECT_EQ(reused_, 4);
}

TEST_F(worker_headers_test, what_a_header_knows_of_its_source_is_not_passed_on) {
    std::string const paste = "#define PASTE_(a, b) a##b\n#define PASTE(a, b) PASTE_(a, b)\n";
    for (auto const& word :
         {std::string{"__BASE_FILE__"}, std::string{"__BASE\\\n_FILE__"}, std::string{"PASTE(__BASE,_FILE__)"},
          std::string{"PASTE(PASTE(__B,ASE),PASTE(PASTE(_FI,LE_),_))"}, std::string{"GIVEN"}}) {
        std::string const text = paste + "__device__ char const made_by[] = " + word + ";\n";
        write("first/base.h", word == "GIVEN" ? "__device__ char const made_by[] = GIVEN;\n" : text);
        std::string const given = word == "GIVEN" ? "#define GIVEN __BASE_FILE__\n" : "";
        std::string const prefix = std::string{toolkit_header} + given + "#include <base.h>\n";
        for (auto const* const name : {"one", "another"}) {
            auto const work = of(kernel(name, prefix, "made_by[x[1]] + sizeof made_by"));
            expect_same(with(work), without(work));
        }
    }
    // In two headers, neither of which has all of it.
    write("first/pieces.h", paste + "#define FIRST PASTE(__B, ASE)\n");
    write("first/base.h", "__device__ char const made_by[] = PASTE(FIRST, PASTE(PASTE(_FI, LE_), _));\n");
    for (auto const* const name : {"one", "another"}) {
        std::string const prefix = std::string{toolkit_header} + "#include <pieces.h>\n#include <base.h>\n";
        auto const work = of(kernel(name, prefix, "made_by[x[1]] + sizeof made_by"));
        expect_same(with(work), without(work));
    }
    // In memory as well.
    for (auto const* const name : {"one", "another"}) {
        auto work = of(kernel(name, std::string{toolkit_header} + "#include <kept.h>\n", "sizeof made_by"));
        auto& unit = std::get<compile_job>(work.task).unit;
        unit.headers.push_back({"kept.h", "__device__ char const made_by[] = __BASE_FILE__;\n"});
        expect_same(with(work), without(work));
    }
    EXPECT_EQ(reused_, 0);
}

TEST_F(worker_headers_test, small_headers_are_not_worth_it) {
    write("first/q.h", "#define Q 1\n");
    for (auto const* const name : {"one", "two", "three"}) {
        auto const work = of(kernel(name, "#include <q.h>\n", "Q"));
        expect_same(with(work), without(work));
    }
    EXPECT_EQ(made_, 0);
    EXPECT_EQ(reused_, 0);
}

TEST_F(worker_headers_test, none_where_none_are_wanted_and_none_in_this_process) {
    auto o = options(1);
    o.worker = KILN_TEST_WORKER;
    o.precompiled = 0;
    open(std::move(o));
    for (auto const* const name : {"one", "two"}) EXPECT_TRUE(in_pool(of(kernel(name, toolkit_header, "1"))));
    EXPECT_EQ(pool_->count().headers_made, 0u);
    open(options(0));
    for (auto const* const name : {"one", "two"}) EXPECT_TRUE(in_pool(of(kernel(name, toolkit_header, "1"))));
    EXPECT_EQ(pool_->count().headers_made + pool_->count().headers_reused, 0u);
    EXPECT_EQ(pool_->count().in_process, 2u);
}

TEST_F(worker_headers_test, jobs_go_to_the_worker_that_has_their_headers) {
    open_real(2);
    // Both workers run, each with a prefix of its own.
    std::string const mine = std::string{toolkit_header} + "#define WHOSE 1\n";
    std::string const theirs = std::string{toolkit_header} + "#define WHOSE 2\n";
    auto one = submit(of(kernel("one", mine, "WHOSE")));
    auto two = submit(of(kernel("two", theirs, "WHOSE")));
    ASSERT_TRUE(one.get() && two.get());
    ASSERT_EQ(pool_->count().started, 2u);
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(in_pool(of(kernel(fmt::format("t{}", i), theirs, "WHOSE"))));
        ASSERT_TRUE(in_pool(of(kernel(fmt::format("m{}", i), mine, "WHOSE"))));
    }
    EXPECT_EQ(pool_->count().headers_made, 2u);
    EXPECT_EQ(pool_->count().headers_reused, 8u);
}

// Must show: edits of headers, however they come, and no stale kernel. Each step does one thing to the tree of headers and compiles
// what includes them, with a precompiled header where there is one; the compiler without one says what is right.
TEST_F(worker_headers_test, no_edit_of_a_header_is_missed) {
    write("source/s.h", "#define S 1\n");
    write("second/a.h", "#include \"b.h\"\n#define A 1\n");
    write("second/b.h", "#define B 1\n");
    write("second/c.h", "#pragma once\n#ifndef C\n#define C 1\n#endif\n");
    std::string const prefix =
        std::string{toolkit_header} +
        "#include \"s.h\"\n#include <a.h>\n#if __has_include(<extra.h>)\n#include <extra.h>\n#endif\n";
    std::mt19937 random{20261116};
    auto const below = [&](int n) { return std::uniform_int_distribution{0, n - 1}(random); };
    auto const rewrite = [&](std::string const& name) {
        auto text = name.ends_with("a.h")
                        ? fmt::format("#include \"b.h\"\n#define A {}\n", below(9))
                        : "#define " + std::string{name.ends_with("s.h") ? "S" : "B"} + fmt::format(" {}\n", below(9));
        // With the times it had before, now and then: only what it says counts.
        struct ::stat before {};
        bool const backdated = below(2) == 0 && ::stat(scratch(name).c_str(), &before) == 0;
        write(name, text);
        ::timespec const times[2] = {before.st_atim, before.st_mtim};
        if (backdated) ::utimensat(AT_FDCWD, scratch(name).c_str(), times, 0);
    };
    std::vector<std::function<void()>> const edits{
        [] {},
        [&] { rewrite("source/s.h"); },
        [&] { rewrite("second/a.h"); },
        [&] { rewrite("second/b.h"); },
        [&] { rewrite("first/a.h"); },  // shadows
        [&] { rewrite("source/b.h"); },
        [&] { fs::remove(scratch("first/a.h")); },
        [&] { fs::remove(scratch("source/b.h")); },
        [&] { write("first/extra.h", fmt::format("#undef A\n#define A {}\n", 10 + below(9))); },
        [&] { fs::remove(scratch("first/extra.h")); },
        [&] {
            fs::remove(scratch("second/b.h"));
            fs::create_symlink(scratch(below(2) == 0 ? "second/c.h" : "source/s.h"), scratch("second/b.h"));
        },
        [&] { fs::remove(scratch("second/b.h")), write("second/b.h", fmt::format("#define B {}\n", below(9))); },
    };
    std::string const body = "A + 100 * S +\n#ifdef B\n 10000 * B\n#else\n 77\n#endif\n";
    for (int step = 0; step < 60; ++step) {
        edits[static_cast<std::size_t>(below(static_cast<int>(edits.size())))]();
        auto const work = of(kernel(fmt::format("k{}", step % 3), prefix, body));
        expect_same(with(work), without(work));
        if (HasFailure()) FAIL() << "step " << step;
    }
    EXPECT_GE(reused_, 5);
    EXPECT_GE(made_, 10);
}

}  // namespace kiln::compile::testing
