// SPDX-License-Identifier: Apache-2.0
// The engine with real NVRTC in real workers, without a GPU.
#include "compile/engine_fixture.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace kiln {

using testing_support::engine_fixture;
class engine_compile : public engine_fixture {};

TEST_F(engine_compile, compiled_once_then_memory_then_disk) {
    auto e = make_engine();
    auto const first = e->artifact_sync(simple(), sm90()).value();
    EXPECT_EQ(first.from, provenance::compiled);
    EXPECT_EQ(first.what->key.size(), 64u);
    EXPECT_GT(first.what->image.size(), 500u);
    EXPECT_GT(first.what->find_kernel("simple")->registers, 0);
    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::memory);
    ASSERT_TRUE(e->flush_sync());
    auto next = make_engine();
    auto const again = next->artifact_sync(simple(), sm90()).value();
    EXPECT_EQ(again.from, provenance::disk);
    EXPECT_EQ(again.what->image, first.what->image);
    EXPECT_EQ(again.what->key, first.what->key);
    EXPECT_EQ(next->status().compiled, 0u);
}

TEST_F(engine_compile, kernels_come_in_the_order_of_the_callers_own_names) {
    auto const named = [](std::vector<std::string> names) {
        return unit{.name = "three",
                    .source =
                        "extern \"C\" __global__ void b() {}\nextern \"C\" __global__ void a() {}\n"
                        "extern \"C\" __global__ void c() {}\n",
                    .kernels = std::move(names)};
    };
    auto const order_of = [](result<obtained> const& got) {
        std::string out;
        for (auto const& k : got.value().what->kernels) out += k.name;
        return out;
    };
    auto e = make_engine();
    EXPECT_EQ(order_of(e->artifact_sync(named({"c", "a", "b"}), sm90())), "cab");
    EXPECT_EQ(order_of(e->artifact_sync(named({"b", "c", "a"}), sm90())), "bca")
        << "the same artifact, found in memory";
    EXPECT_EQ(order_of(e->artifact(named({"a", "c", "b"}), sm90()).wait_sync()), "acb");
    EXPECT_EQ(order_of(*e->find(named({"a", "b", "c"}), sm90()).value()), "abc");
    EXPECT_EQ(e->status().compiled, 1u);
    EXPECT_EQ(order_of(e->artifact_sync(named({}), sm90())), "abc") << "nobody named them: by their names in the image";
    auto const ptx = target::parse("compute_90", artifact_kind::ptx).value();
    EXPECT_EQ(order_of(e->artifact_sync(named({}), ptx)), "abc");
}

TEST_F(engine_compile, the_headline_of_a_failure_is_its_first_error) {
    auto e = make_engine();
    auto const u = simple("warned", "int never_used; no_such_name;");
    auto const failed =
        e->artifact_sync({.name = u.name, .source = "#warning look here, error: none\n" + u.source}, sm90());
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message(), testing::HasSubstr("identifier \"no_such_name\" is undefined"));
    EXPECT_THAT(failed.error().message(), testing::Not(testing::HasSubstr("warning")));
    EXPECT_THAT(failed.error().log(), testing::HasSubstr("look here"));
}

// One thing of each standard header that is answered, in the spelling of C++ and of C.
TEST_F(engine_compile, standard_headers_have_what_they_are_included_for) {
    std::pair<char const*, char const*> const uses[] = {
        {"algorithm", "x[0] = std::max(x[0], 1.0);"},
        {"array", "std::array<int, 2> a{1, 2}; x[0] = a[1];"},
        {"assert.h", "assert(x != nullptr);"},
        {"atomic", "std::atomic<int> a{1}; x[0] = a.load();"},
        {"barrier", "using b = std::barrier<>; x[0] = sizeof(b);"},
        {"bit", "x[0] = std::popcount(7u);"},
        {"bitset", "x[0] = std::bitset<8>{5}.count();"},
        {"cassert", "assert(x != nullptr);"},
        {"cfloat", "x[0] = FLT_MAX + DBL_EPSILON + LDBL_DIG;"},
        {"chrono", "x[0] = std::chrono::milliseconds{2}.count();"},
        {"climits", "x[0] = INT_MAX + CHAR_BIT;"},
        {"cmath", "x[0] = std::sqrt(x[0]) + INFINITY;"},
        {"complex", "x[0] = std::complex<float>{1, 2}.imag();"},
        {"concepts", "static_assert(std::integral<int>);"},
        {"cstddef", "std::size_t n = offsetof(pair, b); x[0] = n;"},
        {"cstdint", "std::uint64_t n = UINT64_MAX; x[0] = n;"},
        {"cstdio", "std::printf(\"%d\", 1);"},
        {"cstdlib", "x[0] = std::abs(-1);"},
        {"cstring", "std::memset(x, 0, 8);"},
        {"ctime", "x[0] = sizeof(std::time_t);"},
        {"expected", "std::expected<int, int> e{1}; x[0] = *e;"},
        {"float.h", "x[0] = DBL_MAX * FLT_MIN + FLT_RADIX;"},
        {"functional", "x[0] = std::plus<>{}(1, 2);"},
        {"initializer_list", "std::initializer_list<int> i{1, 2}; x[0] = i.size();"},
        {"iterator", "int a[3] = {}; x[0] = std::size(a);"},
        {"latch", "x[0] = sizeof(std::latch);"},
        {"limits", "x[0] = std::numeric_limits<float>::infinity();"},
        {"limits.h", "x[0] = LONG_MAX;"},
        {"math.h", "x[0] = sqrt(x[0]);"},
        {"mdspan", "x[0] = std::extents<int, 2, 3>{}.rank();"},
        {"memory", "x[0] = *std::addressof(x[1]);"},
        {"new", "new (x) double{1};"},
        {"numbers", "x[0] = std::numbers::pi;"},
        {"numeric", "x[0] = std::gcd(12, 18);"},
        {"optional", "std::optional<int> o{1}; x[0] = *o;"},
        {"ranges", "int a[3] = {}; x[0] = std::ranges::size(a);"},
        {"ratio", "x[0] = std::milli::den;"},
        {"semaphore", "x[0] = sizeof(std::counting_semaphore<>);"},
        {"source_location", "x[0] = std::source_location::current().line();"},
        {"span", "x[0] = std::span<double>{x, 2}.size();"},
        {"stddef.h", "size_t n = offsetof(pair, b); x[0] = n;"},
        {"stdint.h", "uint16_t n = UINT16_MAX; x[0] = n;"},
        {"stdio.h", "printf(\"%d\", 1);"},
        {"stdlib.h", "x[0] = abs(-1);"},
        {"string.h", "memset(x, 0, 8);"},
        {"time.h", "x[0] = sizeof(time_t);"},
        {"tuple", "x[0] = std::get<0>(std::make_tuple(1, 2));"},
        {"type_traits", "static_assert(std::is_same_v<int, int>);"},
        {"utility", "auto p = std::make_pair(1, 2); x[0] = std::move(p).second;"},
        {"variant", "std::variant<int, float> v{1}; x[0] = std::get<int>(v);"},
    };
    auto e = make_engine();
    std::vector<std::pair<std::string, pending<obtained>>> asked;
    for (auto const& [header, use] : uses) {
        unit const u{.name = header,
                     .source = fmt::format("#include <{}>\nstruct pair {{ int a, b; }};\n"
                                           "extern \"C\" __global__ void k(double* x) {{ {} }}\n",
                                           header, use),
                     .options = {"-std=c++20"}};
        asked.emplace_back(header, e->artifact(u, sm90()));
    }
    for (auto const& [header, answer] : asked) {
        auto const got = answer.wait_sync();
        EXPECT_TRUE(got) << "<" << header << ">: " << got.error().what();
    }
}

TEST_F(engine_compile, kernels_nobody_named_have_the_names_of_the_source) {
    unit const u{.name = "unnamed",
                 .source =
                     "namespace a { __global__ void k(int* x) { *x = 1; } }\n"
                     "template <class T> __global__ void scale(T* x) { *x *= 2; }\n"
                     "template __global__ void scale<float>(float*);\n"
                     "__global__ void twice(int* x) { *x += 2; }\n__global__ void twice(float* x) { *x += 2; }\n"};
    auto e = make_engine();
    auto const got = e->artifact_sync(u, sm90()).value();
    std::vector<std::string> names;
    for (auto const& k : got.what->kernels) names.push_back(k.name);
    EXPECT_THAT(names, testing::UnorderedElementsAre("a::k", "scale<float>", "_Z5twicePf", "_Z5twicePi"));
    EXPECT_EQ(got.what->find_kernel("a::k")->lowered, "_ZN1a1kEPi");
    EXPECT_NE(got.what->find_kernel("_ZN1a1kEPi"), nullptr);
}

// The examples of docs/guide/errors.md.
TEST_F(engine_compile, errors_have_the_codes_that_the_guide_tells) {
    auto e = make_engine();
    auto const code_of = [&](unit const& u) { return e->artifact_sync(u, sm90()).error().code(); };
    auto misnamed = simple();
    misnamed.kernels = {"nope"};
    EXPECT_EQ(code_of(misnamed), errc::compile_failed);
    for (auto const* const option : {"--time=/x", "--zork", "--gpu-architecture=sm_90"}) {
        auto u = simple();
        u.options = {option};
        EXPECT_EQ(code_of(u), errc::unsupported) << option;
    }
    for (auto const* const option : {"--maxrregcount", "--restrict=1"}) {
        auto u = simple();
        u.options = {option};
        EXPECT_EQ(code_of(u), errc::invalid_argument) << option;
    }
    EXPECT_EQ(e->link_sync({.name = "empty", .target = sm90(), .inputs = {}}).error().code(), errc::invalid_argument);
}

TEST_F(engine_compile, no_kernel_and_unknown_exports_are_errors) {
    auto e = make_engine();
    auto const template_only = e->artifact_sync(
        {.name = "open", .source = "template <class T> __global__ void scale(T* x) { *x *= 2; }"}, sm90());
    ASSERT_FALSE(template_only.has_value());
    EXPECT_THAT(template_only.error().message(), testing::HasSubstr("no kernel"));
    auto unknown = simple();
    unknown.kernels.clear();
    unknown.exports = {"nosuch"};
    auto const exported = e->artifact_sync(unknown, sm90());
    ASSERT_FALSE(exported.has_value());
    EXPECT_THAT(exported.error().message(), testing::HasSubstr("nosuch"));
}

TEST_F(engine_compile, templates_for_five_architectures_without_a_gpu) {
    unit const u{.name = "scale",
                 .source =
                     "template <class T, int N> __global__ void scale(T* x, T a) { __shared__ T s[N]; s[threadIdx.x] = "
                     "x[threadIdx.x]; "
                     "__syncthreads(); x[threadIdx.x] = s[N - 1 - threadIdx.x] * a; }",
                 .kernels = {"scale<float, 64>", "scale<double, 128>"}};
    auto e = make_engine();
    for (auto const* arch : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
        auto const got = e->artifact_sync(u, target::parse(arch).value()).value();
        ASSERT_EQ(got.what->kernels.size(), 2u) << arch;
        auto const& k = *got.what->find_kernel("scale<double, 128>");
        EXPECT_EQ(k.lowered, "_Z5scaleIdLi128EEvPT_S0_");
        EXPECT_EQ(k.shared_bytes, 1024) << arch;
        EXPECT_GT(k.registers, 0) << arch;
    }
}

TEST_F(engine_compile, a_link_without_a_kernel_in_it_is_an_error) {
    auto e = make_engine();
    auto const plain = e->artifact_sync(simple(), sm90()).value();
    auto const linked = e->link_sync({.name = "linked", .target = sm90(), .inputs = {plain.what}});
    ASSERT_FALSE(linked) << "the linker leaves out what is not relocatable, and says nothing";
    EXPECT_EQ(linked.error().code(), errc::link_failed);
    EXPECT_NE(linked.error().message().find("-rdc=true"), std::string::npos) << "the remedy";
    auto relocatable = simple();
    relocatable.options.push_back("-rdc=true");
    auto const part = e->artifact_sync(relocatable, sm90()).value();
    auto const whole = e->link_sync({.name = "linked", .target = sm90(), .inputs = {part.what}});
    ASSERT_TRUE(whole) << whole.error().message();
    EXPECT_FALSE(whole->what->kernels.empty());
}

TEST_F(engine_compile, constants_of_ptx_are_looked_for_too) {
    auto e = make_engine();
    auto const ptx = target::parse("compute_90", artifact_kind::ptx).value();
    unit u{.name = "taps",
           .source =
               "extern \"C\" { __constant__ int tap = 3; __constant__ float taps[4];\n"
               "__global__ void k(float* x) { *x = tap * taps[1]; } }",
           .exports = {"tap", "taps"}};
    EXPECT_TRUE(e->artifact_sync(u, ptx));
    u.exports = {"ta"};
    auto const misspelt = e->artifact_sync(u, ptx);
    ASSERT_FALSE(misspelt);
    EXPECT_NE(misspelt.error().message().find("no constant 'ta'"), std::string::npos);
}

TEST_F(engine_compile, ptx_and_ltoir_and_linking) {
    unit const op{.name = "op",
                  .source = "extern \"C\" __device__ int op(int a, int b) { return a > b ? a : b; }",
                  .options = {"-rdc=true"}};
    unit const body{.name = "body",
                    .source =
                        "extern \"C\" __device__ int op(int, int);\nextern \"C\" __constant__ int info[2] = {3, 4};\n"
                        "extern \"C\" __global__ void apply(int* x) { x[threadIdx.x] = op(x[threadIdx.x], info[1]); }",
                    .kernels = {"apply"},
                    .options = {"-rdc=true"}};
    auto e = make_engine();
    auto const lto = target::parse("sm_90", artifact_kind::ltoir).value();
    auto const a = e->artifact_sync(body, lto).value();
    auto const b = e->artifact_sync(op, lto).value();
    auto const linked = e->link_sync({.name = "applied",
                                      .target = sm90(),
                                      .inputs = {a.what, b.what},
                                      .kernels = {"apply"},
                                      .exports = {"info"}})
                            .value();
    EXPECT_EQ(linked.from, provenance::compiled);
    ASSERT_NE(linked.what->find_kernel("apply"), nullptr);
    EXPECT_EQ(linked.what->find_constant("info")->bytes.size(), 8u);
    EXPECT_EQ(e->link_sync({.name = "applied",
                            .target = sm90(),
                            .inputs = {a.what, b.what},
                            .kernels = {"apply"},
                            .exports = {"info"}})
                  .value()
                  .from,
              provenance::memory);
    auto const missing = e->link_sync({.name = "applied", .target = sm90(), .inputs = {a.what}, .kernels = {"apply"}});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), errc::link_failed);
    auto const ptx = e->artifact_sync(simple(), target::parse("sm_90", artifact_kind::ptx).value()).value();
    EXPECT_NE(base::as_text(ptx.what->image).find(".entry simple"), std::string_view::npos);
}

TEST_F(engine_compile, a_missing_brace_gives_the_log_and_leaves_nothing) {
    auto e = make_engine();
    auto broken = simple();
    broken.source = "extern \"C\" __global__ void simple(int* x) {\n  x[0] = 1;\n  x[1] = y;\n}\n";
    auto const r = e->artifact_sync(broken, sm90());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::compile_failed);
    EXPECT_NE(r.error().message().find("'simple'"), std::string::npos);
    EXPECT_NE(r.error().log().find("simple.cu(3): error"), std::string::npos) << r.error().log();
    EXPECT_EQ(e->status().failed, 1u);
    e->flush_sync();
    std::size_t entries = 0;
    for (auto const& f : std::filesystem::recursive_directory_iterator{scratch_.path()})
        entries += f.path().extension() == ".kiln" ? 1 : 0;
    EXPECT_EQ(entries, 0u);
}

TEST_F(engine_compile, a_kernel_that_is_not_there_is_an_error) {
    auto u = simple();
    u.kernels = {"no_such_kernel"};
    EXPECT_EQ(make_engine()->artifact_sync(u, sm90()).error().code(), errc::compile_failed);
    u = simple();
    u.exports = {"no_such_constant"};
    auto const r = make_engine()->artifact_sync(u, sm90());
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("no_such_constant"), std::string::npos);
}

TEST_F(engine_compile, P9_a_thousand_threads_ask_for_one_unit_and_it_is_compiled_once) {
    int callers = 1000;
#if defined(__SANITIZE_THREAD__) && defined(__aarch64__)
    callers = 100;  // GCC 12's ThreadSanitizer has no room for a thousand threads here
#endif
    auto e = make_engine();
    std::atomic<int> good{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i) {
        threads.emplace_back([&] {
            while (!go.load()) std::this_thread::yield();
            if (e->artifact_sync(simple(), sm90())) ++good;
        });
    }
    go = true;
    for (auto& t : threads) t.join();
    EXPECT_EQ(good, callers);
    EXPECT_EQ(e->status().compiled, 1u);
    EXPECT_EQ(count(event_kind::compiled), 1u);
}

TEST_F(engine_compile, P9_a_failure_reaches_every_waiter_and_can_be_retried) {
    auto e = make_engine();
    write("inc/value.h", "#error not yet\n");
    unit const u{.name = "retry",
                 .source = "#include \"value.h\"\nextern \"C\" __global__ void retry(int* x) { *x = VALUE; }",
                 .kernels = {"retry"},
                 .include_dirs = {path("inc")}};
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([&] { failed += e->artifact_sync(u, sm90()) ? 0 : 1; });
    for (auto& t : threads) t.join();
    EXPECT_EQ(failed, 16);
    write("inc/value.h", "#define VALUE 7\n");
    // The failure is remembered for a moment; after that the unit is tried again.
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    result<obtained> again = e->artifact_sync(u, sm90());
    while (!again && std::chrono::steady_clock::now() < deadline) again = e->artifact_sync(u, sm90());
    EXPECT_TRUE(again);
}

TEST_F(engine_compile, headers_count_by_content) {
    write("inc/q.h", "#define Q 3\n");
    unit const u{.name = "q",
                 .source = "#include \"q.h\"\nextern \"C\" __global__ void q(int* x) { *x = Q; }",
                 .kernels = {"q"},
                 .include_dirs = {path("first"), path("inc")}};
    auto e = make_engine();
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::compiled);
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::memory);
    write("inc/q.h", "#define Q 3\n");  // same bytes, new file
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::memory) << "touching is a hit";
    write("inc/q.h", "#define Q 4\n");
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::compiled) << "editing is a miss";
    EXPECT_GE(count(event_kind::missed, "header-changed"), 1u);
    write("inc/q.h", "#define Q 3\n");
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::memory) << "the old text finds the old artifact";
    write("first/q.h", "#define Q 5\n");
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::compiled) << "V7: shadowing is a miss";
}

TEST_F(engine_compile, a_failure_holds_until_a_header_is_mended) {
    auto const e = make_engine();
    auto const at = [&](char const* value) { write("q.h", fmt::format("#define Q {}\n", value)); };
    unit const u{.name = "mended",
                 .source = "#include \"q.h\"\nextern \"C\" __global__ void mended(int* x) { x[0] = Q; }\n",
                 .kernels = {"mended"},
                 .include_dirs = {path("")}};
    at("broken");
    auto const broken = e->artifact_sync(u, sm90());
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code(), errc::compile_failed);
    EXPECT_FALSE(e->artifact_sync(u, sm90()));
    EXPECT_EQ(count(event_kind::compiling), 1u) << "remembered for a moment, while the header says the same";
    at("41");
    EXPECT_TRUE(e->artifact_sync(u, sm90())) << "at once";
    at("broken");
    EXPECT_FALSE(e->artifact_sync(u, sm90()));
    at("41");
    EXPECT_TRUE(e->artifact_sync(u, sm90()));
    EXPECT_EQ(count(event_kind::compiled), 1u) << "the second time it was kept";
}

TEST_F(engine_compile, the_same_text_with_other_directories_asked_for_at_once_is_two_kernels) {
    write("a/q.h", "#define V 1\n");
    write("b/q.h", "#define V 4\n");
    auto const reading = [&](std::string const& directory) {
        return unit{.name = "p",
                    .source =
                        "#include <q.h>\nextern \"C\" __global__ void p(int* x) { __shared__ int s[V * 64]; "
                        "s[threadIdx.x] = x[0]; __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; }",
                    .kernels = {"p"},
                    .include_dirs = {path(directory)}};
    };
    auto e = make_engine();
    auto const a = e->artifact(reading("a"), sm90());
    auto const b = e->artifact(reading("b"), sm90());
    EXPECT_EQ(a.wait_sync().value().what->find_kernel("p")->shared_bytes, 256);
    EXPECT_EQ(b.wait_sync().value().what->find_kernel("p")->shared_bytes, 1024);
    auto const s = e->status();
    EXPECT_EQ(s.compiled, 2u);
    EXPECT_EQ(s.requests, s.from_memory + s.from_disk + s.from_bundle + s.compiled + s.failed);
}

TEST_F(engine_compile, V6_working_directory_and_place_do_not_matter) {
    write("one/inc/q.h", "#define Q __FILE__[0]\n");
    unit u{.name = "q",
           .source = "#include \"q.h\"\nextern \"C\" __global__ void q(int* x) { *x = Q; }",
           .kernels = {"q"},
           .include_dirs = {path("one/inc")}};
    auto e = make_engine();
    auto const first = e->artifact_sync(u, sm90()).value();
    std::filesystem::rename(path("one"), path("two"));
    u.include_dirs = {path("two/inc")};
    auto const moved = e->artifact_sync(u, sm90()).value();
    EXPECT_EQ(moved.from, provenance::memory);
    EXPECT_EQ(moved.what->key, first.what->key);
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(path("two"));
    u.include_dirs = {"inc"};
    EXPECT_EQ(e->artifact_sync(u, sm90()).value().from, provenance::memory);
    std::filesystem::current_path(before);
}

TEST_F(engine_compile, an_option_that_cannot_be_keyed_is_refused_by_name) {
    auto u = simple();
    u.options = {"--time=/tmp/x"};
    auto const r = make_engine()->artifact_sync(u, sm90());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::unsupported);
    EXPECT_NE(r.error().message().find("--time"), std::string::npos);
}

TEST_F(engine_compile, uncached_options_compile_around_the_cache) {
    auto const phases = path("phases.csv");
    auto timed = simple();
    timed.options = {"--time=" + phases};
    auto e = make_engine();
    auto const refused = e->artifact_sync(timed, sm90());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("uncached_options"));

    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::compiled);
    std::swap(timed.options, timed.uncached_options);
    for (int i = 0; i < 2; ++i) {
        auto const got = e->artifact_sync(timed, sm90()).value();
        EXPECT_EQ(got.from, provenance::compiled) << "neither its own nor what the same text without them left";
        EXPECT_TRUE(std::filesystem::remove(phases)) << "the compiler wrote it, this time too";
    }
    EXPECT_EQ(e->status().compiled, 3u);
    auto const plain = e->artifact_sync(simple(), sm90()).value(), around = e->artifact_sync(timed, sm90()).value();
    EXPECT_NE(plain.what->key, around.what->key) << "or one would be loaded for the other";
    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::memory);
    ASSERT_TRUE(e->flush_sync());
    EXPECT_EQ(make_engine()->artifact_sync(timed, sm90()).value().from, provenance::compiled);
}

TEST_F(engine_compile, uncached_options_say_nothing_of_the_target) {
    auto e = make_engine();
    for (auto const* const option : {"-arch=sm_80", "--gpu-architecture=sm_80", "-dlto", "--pch", "-optix-ir"}) {
        auto other = simple();
        other.uncached_options = {option};
        auto const got = e->artifact_sync(other, sm90());
        ASSERT_FALSE(got.has_value()) << option;
        EXPECT_EQ(got.error().code(), errc::unsupported) << got.error().message();
    }
}

TEST_F(engine_compile, uncached_options_are_compiling_and_may_be_forbidden) {
    auto timed = simple();
    timed.uncached_options = {"--fdevice-time-trace=" + path("trace.json")};
    auto const got = make_engine({{"KILN_JIT", "forbid"}})->artifact_sync(timed, sm90());
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code(), errc::forbidden);
}

TEST_F(engine_compile, forbid_names_the_unit_the_target_the_tiers_and_the_nearest) {
    {
        auto e = make_engine();
        (void)e->artifact_sync(simple(), target::parse("sm_80").value()).value();
        e->flush_sync();
    }
    auto e = make_engine({{"KILN_JIT", "forbid"}});
    EXPECT_EQ(e->artifact_sync(simple(), target::parse("sm_80").value()).value().from, provenance::disk);
    auto const r = e->artifact_sync(simple(), sm90());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::forbidden);
    for (std::string const& part :
         {std::string{"'simple'"}, std::string{"sm_90"}, std::string{"KILN_JIT"}, cache(), std::string{"sm_80"}}) {
        EXPECT_NE(r.error().message().find(part), std::string::npos) << part << " in " << r.error().message();
    }
    EXPECT_EQ(e->status().compiled, 0u);
}

TEST_F(engine_compile, warn_compiles_and_says_so) {
    auto e = make_engine({{"KILN_JIT", "warn"}});
    EXPECT_TRUE(e->artifact_sync(simple(), sm90()));
    EXPECT_EQ(count(event_kind::warned, "jit"), 1u);
}

TEST_F(engine_compile, G5_without_a_compiler_the_cache_still_serves) {
    {
        auto e = make_engine();
        (void)e->artifact_sync(simple(), sm90()).value();
        e->flush_sync();
    }
    base::make_directories(path("empty")).value();
    auto e = make_engine({{"KILN_CUDA_PATH", path("empty")}});
    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::disk);
    auto const r = e->artifact_sync(simple("other"), sm90());
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::not_found);
    EXPECT_NE(r.error().message().find("pip install"), std::string::npos) << "the remedy";
}

TEST_F(engine_compile, the_answer_comes_later_when_asked_that_way) {
    auto e = make_engine();
    auto const one = e->artifact(simple("one"), sm90());
    auto const two = e->artifact(simple("two"), sm90());
    EXPECT_EQ(one.wait_sync().value().from, provenance::compiled);
    EXPECT_TRUE(two.wait_sync());
    EXPECT_TRUE(one.ready());
}

TEST_F(engine_compile, a_deadline_passes_and_the_work_goes_on) {
    auto e = make_engine();
    auto const r = e->artifact_sync(simple(), sm90(), {.deadline = std::chrono::milliseconds{0}});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::timeout);
    EXPECT_TRUE(e->artifact_sync(simple(), sm90()));
    EXPECT_EQ(e->status().compiled, 1u);
}

TEST_F(engine_compile, in_the_process_when_there_is_no_worker) {
    auto e = make_engine({{"KILN_WORKER", path("no-such-program")}});
    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::compiled);
    EXPECT_GE(count(event_kind::fell_back), 1u) << "said, because nobody asked for it";
}

TEST_F(engine_compile, in_the_process_by_choice) {
    auto e = make_engine({{"KILN_WORKERS", "0"}});
    EXPECT_EQ(e->artifact_sync(simple(), sm90()).value().from, provenance::compiled);
    EXPECT_EQ(count(event_kind::worker_started), 0u);
}

TEST_F(engine_compile, waiting_is_an_event_and_a_number) {
    auto e = make_engine();
    (void)e->artifact_sync(simple(), sm90()).value();
    (void)e->artifact_sync(simple(), sm90()).value();
    EXPECT_EQ(count(event_kind::waited), 1u);
    EXPECT_EQ(e->status().blocked, 1u);
    EXPECT_GT(e->status().blocked_ms, 0);
}

TEST_F(engine_compile, a_second_engine_waits_for_the_first_instead_of_compiling) {
    auto a = make_engine();
    auto b = make_engine();
    auto const slow = simple("slow", "for (int i = 0; i < 64; ++i) x[i] = x[i] * i + x[i + 1];");
    auto const one = a->artifact(slow, sm90());
    auto const two = b->artifact(slow, sm90());
    EXPECT_TRUE(one.wait_sync());
    EXPECT_TRUE(two.wait_sync());
    EXPECT_EQ(a->status().compiled + b->status().compiled, 1u);
}

}  // namespace kiln
