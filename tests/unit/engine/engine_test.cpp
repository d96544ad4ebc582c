// SPDX-License-Identifier: Apache-2.0
// The public verbs of an engine whose compiler is none.
#include "support/fake_engine.hpp"

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <link.h>

namespace kiln {
namespace {

class engine_test : public testing_support::fake_engine {
protected:
    // What stands for a toolkit of the program's own: a library, its builtins and its headers.
    [[nodiscard]] std::string own_nvrtc() {
        void* const some = ::dlopen("libm.so.6", RTLD_NOW);
        ::link_map* map = nullptr;
        EXPECT_TRUE(some != nullptr && ::dlinfo(some, RTLD_DI_LINKMAP, &map) == 0);
        write("own/lib64/libnvrtc-builtins.so.13.0", "builtins");
        write("own/include/cuda_fp16.h", "");
        std::filesystem::copy_file(std::filesystem::canonical(map->l_name), path("own/lib64/libnvrtc.so.13"));
        return path("own/lib64/libnvrtc.so.13");
    }
};

TEST_F(engine_test, find_looks_and_never_compiles) {
    auto const u = unit_named("u");
    auto const before = engine_.find(u, sm90());
    ASSERT_TRUE(before);
    EXPECT_FALSE(*before);
    EXPECT_THAT(compiler_.begun(), testing::IsEmpty());
    auto const made = engine_.artifact_sync(u, sm90()).value();
    auto const after = engine_.find(u, sm90()).value();
    ASSERT_TRUE(after);
    EXPECT_EQ(after->what->key, made.what->key);
    EXPECT_EQ(after->from, provenance::memory);
    EXPECT_THAT(compiler_.begun(), testing::ElementsAre("u"));
    auto odd = u;
    odd.options = {"--zork"};
    EXPECT_EQ(engine_.find(odd, sm90()).error().code(), errc::unsupported);
}

TEST_F(engine_test, a_compiler_that_is_named_is_the_one_with_its_own_headers) {
    auto const own = own_nvrtc();
    engine mine{{.settings = {{"KILN_CACHE_DIR", path("cache")}, {"KILN_NVRTC", own}}, .events = &events_}};
    auto& s = mine.internals();
    ASSERT_TRUE(s.nvrtc()) << s.nvrtc().error().message();
    EXPECT_EQ(s.nvrtc()->path, own);
    EXPECT_THAT(s.tools().toolkit_includes, testing::Contains(path("own/include")));
    auto const order = s.order_for(unit_named("u"), sm90()).value();
    EXPECT_EQ(order.subject.toolchain, s.nvrtc()->toolchain);
    EXPECT_EQ(order.job.tools.nvrtc, own) << "workers are told the same";
    auto const usual = engine_.internals().order_for(unit_named("u"), sm90()).value();
    EXPECT_NE(engine_detail::identity_of(order.subject), engine_detail::identity_of(usual.subject));

    engine wrong{
        {.settings = {{"KILN_CACHE_DIR", path("cache")}, {"KILN_NVRTC", path("nowhere.so")}}, .events = &events_}};
    auto const refused = wrong.artifact_sync(unit_named("u"), sm90());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("KILN_NVRTC=" + path("nowhere.so")));
}

TEST_F(engine_test, a_compiler_that_is_named_and_not_there_is_an_error_also_where_the_cache_is_warm) {
    ASSERT_TRUE(engine_.artifact_sync(unit_named("u"), sm90()));
    engine_.flush_sync(std::chrono::seconds{10});
    engine wrong{
        {.settings = {{"KILN_CACHE_DIR", path("cache")}, {"KILN_NVRTC", path("nowhere.so")}}, .events = &events_}};
    for (auto const& answer :
         {wrong.find(unit_named("u"), sm90()).transform([](auto const& f) { return f.has_value(); }),
          wrong.artifact_sync(unit_named("u"), sm90()).transform([](auto const&) { return true; })}) {
        ASSERT_FALSE(answer);
        EXPECT_THAT(answer.error().message(), testing::HasSubstr("unset it"));
    }
}

TEST_F(engine_test, a_toolkit_that_is_named_and_not_there_is_missed_when_a_compiler_is_needed) {
    auto const in_cache = engine_.artifact_sync(unit_named("u"), sm90()).value();
    engine_.flush_sync(std::chrono::seconds{10});
    auto const order = engine_.internals().order_for(unit_named("shipped"), sm90()).value();
    auto shipped = *in_cache.what;
    shipped.unit = "shipped";
    store::bundle_writer writer;
    writer.add(*engine_detail::entry_for(order, shipped, "kiln test")).value();
    writer.write(path("app.kiln")).value();

    event_log events;
    engine deployed{{.settings = {{"KILN_CACHE_DIR", path("cache")},
                                  {"KILN_BUNDLES", path("app.kiln")},
                                  {"KILN_CUDA_PATH", path("nowhere")}},
                     .events = &events}};
    EXPECT_EQ(deployed.artifact_sync(unit_named("shipped"), sm90()).value().from, provenance::bundle);
    EXPECT_EQ(deployed.artifact_sync(unit_named("u"), sm90()).value().from, provenance::disk);
    EXPECT_TRUE(deployed.find(unit_named("u"), sm90()).value());
    auto const told = [](event const& e) {
        return e.kind == event_kind::warned && e.detail.view().find("KILN_CUDA_PATH=") != std::string_view::npos;
    };
    EXPECT_EQ(std::ranges::count_if(events.recent(), told), 1) << "said once";

    auto const missing = deployed.artifact_sync(unit_named("other"), sm90());
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), errc::not_found);
    EXPECT_THAT(missing.error().message(), testing::HasSubstr("KILN_CUDA_PATH=" + path("nowhere") + ": no such"));

    deployed.internals().insists_on_toolkit = true;
    for (auto const* name : {"u", "shipped"}) {
        auto const refused = deployed.artifact_sync(unit_named(name), sm90());
        ASSERT_FALSE(refused) << "what others made does not pass for what it would make";
        EXPECT_THAT(refused.error().message(), testing::HasSubstr("unset it"));
    }
}

TEST_F(engine_test, who_waits_for_ever_until_all_is_on_disk_waits) {
    for (int n = 0; n < 8; ++n) ASSERT_TRUE(engine_.artifact_sync(unit_named(fmt::format("u{}", n)), sm90()));
    EXPECT_TRUE(engine_.flush_sync(std::chrono::milliseconds::max()));
}

TEST_F(engine_test, a_link_of_nothing_is_refused) {
    auto const got = engine_.link_sync({.name = "empty", .target = sm90(), .inputs = {}});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), errc::invalid_argument);
    EXPECT_THAT(got.error().message(), testing::HasSubstr("nothing to link"));
    EXPECT_THAT(compiler_.begun(), testing::IsEmpty());
}

}  // namespace
}  // namespace kiln
