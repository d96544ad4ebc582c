// SPDX-License-Identifier: Apache-2.0
// What an engine is made of, where neither a compiler nor a device is needed.
#include "engine/engine_state.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

class engine_state : public testing::Test {
protected:
    std::unique_ptr<engine> make_engine(std::vector<std::pair<std::string, std::string>> more = {}) {
        more.emplace_back("KILN_CACHE_DIR", scratch_.path() / "cache");
        return std::make_unique<engine>(engine_options{.settings = std::move(more), .events = &events_});
    }
    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    void write(std::string const& name, std::string_view text) {
        base::make_directories(std::filesystem::path{path(name)}.parent_path()).value();
        base::replace_file(path(name), base::as_bytes(text)).value();
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-state").value();
    event_log events_;
};

TEST_F(engine_state, a_setting_that_does_not_exist_is_said_and_ignored) {
    auto const e = make_engine({{"KILN_NOSUCH", "1"}, {"KILN_JIT", "warn"}});
    EXPECT_EQ(e->internals().config.text("KILN_JIT"), "warn");
    bool said = false;
    for (auto const& w : events_.recent()) {
        if (w.kind == event_kind::warned && w.reason.view() == "config")
            said = said || w.detail.view().find("KILN_NOSUCH") != std::string_view::npos;
    }
    EXPECT_TRUE(said);
}

TEST_F(engine_state, what_is_loaded_serves_only_those_whose_headers_say_the_same) {
    write("a/q.h", "1");
    write("b/q.h", "4");
    write("c/q.h", "1");
    auto const e = make_engine();
    auto& s = e->internals();
    auto const order = [&](std::string const& directory) {
        unit const u{.name = "p", .source = "#include \"q.h\"\n", .include_dirs = {path(directory)}};
        return s.order_for(u, target::parse("sm_90").value()).value();
    };
    auto const content = base::sha256_of(std::string_view{"1"}).hex();
    auto const loaded = std::make_shared<ready_unit::state const>(
        ready_unit::state{.unit = "p",
                          .library = {},
                          .kernels = {},
                          .constants = {},
                          .variables = {},
                          .target = target::parse("sm_90").value(),
                          .key = std::string(64, 'a'),
                          .dependencies = {{dependency::root::include_directory, 0, "q.h", content}}});
    auto const identity = engine_detail::identity_of(order("a").subject);
    s.loaded.remember(identity, 0, loaded);
    EXPECT_TRUE(s.already_loaded(order("a"), 0));
    EXPECT_FALSE(s.already_loaded(order("b"), 0)) << "the same text, another header";
    EXPECT_FALSE(s.already_loaded(order("a"), 1)) << "another device";
    EXPECT_FALSE(s.already_loaded(order("c"), 0)) << "not known to be the same before it was looked up";
    EXPECT_EQ(s.loaded.find(loaded->key, 0), loaded);

    write("a/q.h", "4");
    EXPECT_FALSE(s.already_loaded(order("a"), 0)) << "edited";
    write("a/q.h", "1");
    EXPECT_TRUE(s.already_loaded(order("a"), 0)) << "and edited back";
}

TEST_F(engine_state, a_relative_path_in_a_directory_that_is_gone_is_an_error_and_not_another_path) {
    auto const e = make_engine();
    auto const before = std::filesystem::current_path();
    std::filesystem::create_directories(path("gone"));
    std::filesystem::current_path(path("gone"));
    std::filesystem::remove(path("gone"));
    auto const order = [&](unit const& u) { return e->internals().order_for(u, target::parse("sm_90").value()); };
    unit const plain{.name = "p", .source = "#include \"q.h\"\n"};
    auto relative = plain;
    relative.include_dirs = {"inc"};
    auto as_option = plain;
    as_option.options = {"-Iinc"};
    auto beside = plain;
    beside.directory = ".";
    auto absolute = plain;
    absolute.include_dirs = {path("inc")};
    bool const refused = !order(relative) && !order(as_option) && !order(beside);
    bool const taken = order(absolute).has_value();
    std::filesystem::current_path(before);
    EXPECT_TRUE(refused);
    EXPECT_TRUE(taken) << "who names no relative path does not mind";
}

TEST_F(engine_state, a_pre_include_that_cannot_be_looked_at_is_an_error) {
    auto const e = make_engine();
    std::filesystem::create_symlink("loop.h", path("loop.h"));
    unit const u{.name = "p", .source = "int x;\n", .options = {"--pre-include=" + path("loop.h")}};
    auto const order = e->internals().order_for(u, target::parse("sm_90").value());
    ASSERT_FALSE(order);
    EXPECT_EQ(order.error().status(), ELOOP);
}

TEST_F(engine_state, handles_that_died_are_not_served) {
    engine_detail::loaded_units units;
    base::digest const identity{};
    auto alive = std::make_shared<ready_unit::state const>(ready_unit::state{.unit = "p",
                                                                             .library = {},
                                                                             .kernels = {},
                                                                             .constants = {},
                                                                             .variables = {},
                                                                             .target = target::parse("sm_90").value(),
                                                                             .key = "k",
                                                                             .dependencies = {}});
    units.remember(identity, 0, alive);
    EXPECT_EQ(units.found_by(identity, 0).size(), 1u);
    alive.reset();
    EXPECT_EQ(units.find("k", 0), nullptr);
    EXPECT_TRUE(units.found_by(identity, 0).empty());
}

}  // namespace
}  // namespace kiln
