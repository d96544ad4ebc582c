// SPDX-License-Identifier: Apache-2.0
// Whoever joins a compile in progress gets what the headers say now, not what they said when it began.
#include "support/fake_engine.hpp"

#include <future>

namespace kiln {
namespace {

class joining : public testing_support::fake_engine {
protected:
    // A compiler that has read the header `q.h` when it said "old", and does not end yet.
    void hold_an_old_compile() {
        write("inc/q.h", "old");
        compiler_.next_time("k", [&]() -> result<compile::product> {
            artifact early{.unit = "k", .target = sm90(), .toolchain = testing_support::fake_compiler::toolchain};
            early.dependencies = {
                {dependency::root::include_directory, 0, "q.h", base::sha256_of(std::string_view{"old"}).hex()}};
            early.image = {std::byte{'o'}};
            return early;
        });
        compiler_.hold();
    }
    static bool is_new(result<obtained> const& got) {
        return base::as_text(got.value().what->image).find("new") != std::string_view::npos;
    }
};

TEST_F(joining, a_header_edited_while_the_compiler_runs_is_noticed_by_who_asks_after_the_edit) {
    auto const u = reading("k", {path("inc")});
    hold_an_old_compile();
    auto const first = engine_.artifact(u, sm90());
    compiler_.wait_for_begun(1);
    write("inc/q.h", "new");
    auto second = std::async(std::launch::async, [&] { return engine_.artifact_sync(u, sm90()); });
    auto const waiters = [&] {
        auto const all = engine_.internals().book.report();
        return all.units.empty() ? 0 : all.units[0].waiters;
    };
    while (waiters() == 0) std::this_thread::yield();
    compiler_.let_go();
    EXPECT_TRUE(first.wait_sync());
    EXPECT_TRUE(is_new(second.get()));
    EXPECT_EQ(compiler_.begun().size(), 2u);
}

TEST_F(joining, and_by_who_asks_and_does_not_wait) {
    auto const u = reading("k", {path("inc")});
    hold_an_old_compile();
    auto const first = engine_.artifact(u, sm90());
    compiler_.wait_for_begun(1);
    write("inc/q.h", "new");
    auto const second = engine_.artifact(u, sm90());
    compiler_.let_go();
    EXPECT_FALSE(is_new(first.wait_sync())) << "asked before the edit";
    EXPECT_TRUE(is_new(second.wait_sync()));
    EXPECT_EQ(compiler_.begun().size(), 2u);
}

TEST_F(joining, who_joins_a_compile_that_fails_for_a_header_mended_meanwhile_gets_the_new_one) {
    auto const u = reading("k", {path("inc")});
    write("inc/q.h", "old");
    compiler_.next_time("k", [] { return fail(errc::compile_failed, "the old header"); });
    compiler_.hold();
    auto const first = engine_.artifact(u, sm90());
    compiler_.wait_for_begun(1);
    write("inc/q.h", "new");
    auto const second = engine_.artifact(u, sm90());
    compiler_.let_go();
    EXPECT_FALSE(first.wait_sync()) << "asked before the edit";
    EXPECT_TRUE(is_new(second.wait_sync()));
}

}  // namespace
}  // namespace kiln
