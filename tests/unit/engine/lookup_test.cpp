// SPDX-License-Identifier: Apache-2.0
// Looking up without a compiler: artifacts are made by hand and put where tiers find them.
#include "engine/lookup.hpp"
#include "compile/carried_headers.hpp"
#include "compile/job.hpp"
#include "support/fake_fleet.hpp"
#include "support/store_faults.hpp"

namespace kiln::test {

using engine_detail::look_up;
using engine_detail::purpose;
using engine_detail::subject;

class lookup_test : public store_faults {
protected:
    // A unit that reads q.h of its one include directory.
    void write_header(std::string_view text) {
        base::make_directories(include()).value();
        base::replace_file(include() / "q.h", base::as_bytes(text)).value();
    }
    [[nodiscard]] std::filesystem::path include() const { return scratch_.path() / "include"; }

    [[nodiscard]] subject asked(std::string toolchain = "nvrtc ours") const {
        subject out{.name = "p",
                    .target = target::parse("sm_90").value(),
                    .id = {.family = digest_of("family"),
                           .request = digest_of("request " + toolchain),
                           .self_contained = false},
                    .toolchain = toolchain,
                    .roots = {},
                    .device = {}};
        out.roots.include_directories = {include()};
        return out;
    }

    // As it was made when q.h said `text`.
    [[nodiscard]] store::entry_ptr made(subject const& what, std::string_view text) const {
        artifact a{.unit = what.name, .target = what.target};
        a.toolchain = what.toolchain;
        a.image.resize(100);
        a.dependencies = {{dependency::root::include_directory, 0, "q.h", base::sha256_of(text).hex()}};
        auto out = std::make_shared<store::entry>();
        out->about = {.at = {what.id.family, what.id.request, compile::seal(what.id.request, a.dependencies)},
                      .name = what.name,
                      .target = what.target.arch.name(),
                      .kind = "cubin",
                      .toolchain = what.toolchain,
                      .producer = "kiln test",
                      .licence = {}};
        a.key = out->about.at.key.hex();
        out->payload = compile::encode(a);
        return out;
    }

    void add_bundle(store::store& to, store::entry_ptr const& e) {
        store::bundle_writer w;
        w.add(*e).value();
        bundle_data_.push_back(std::make_unique<base::bytes>(w.encode().value()));
        to.add_tier(store::bundle_tier::from_memory(*bundle_data_.back()).value());
    }

    std::vector<std::unique_ptr<base::bytes>> bundle_data_;
};

TEST_F(lookup_test, what_a_bundle_served_once_is_served_again) {
    for (auto const* toolchain : {"nvrtc ours", "nvrtc theirs"}) {
        auto const store = make(store::store_options{});
        add_bundle(*store, made(asked(toolchain), "headers that are not here"));
        EXPECT_EQ(look_up(*store, asked()).from, provenance::bundle) << toolchain;
        for (int i = 0; i < 3; ++i) {
            auto const again = look_up(*store, asked());
            ASSERT_TRUE(again.what) << toolchain << ": " << again.reason;
            EXPECT_EQ(again.from, provenance::memory);
        }
    }
}

TEST_F(lookup_test, sealed_headers_are_not_those_that_differ) {
    auto const store = make(store::store_options{});
    add_bundle(*store, made(asked(), "1"));
    write_header("1");
    EXPECT_TRUE(look_up(*store, asked()).what);
    write_header("2");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(look_up(*store, asked()).reason, "header-changed");
}

TEST_F(lookup_test, of_two_versions_none_serves_where_no_header_tells_which_is_meant) {
    auto const store = make(store::store_options{});
    add_bundle(*store, made(asked(), "1"));
    EXPECT_TRUE(look_up(*store, asked()).what) << "the only one";
    add_bundle(*store, made(asked(), "2"));
    for (auto const* toolchain : {"nvrtc ours", ""}) {
        auto const unclear = look_up(*store, asked(toolchain));
        EXPECT_FALSE(unclear.what);
        EXPECT_EQ(unclear.reason, "headers-unknown");
        EXPECT_NE(unclear.detail.find("q.h"), std::string::npos) << unclear.detail;
    }
    for (auto const* text : {"1", "2"}) {
        write_header(text);
        auto const found = look_up(*store, asked());
        ASSERT_TRUE(found.what) << found.detail;
        EXPECT_EQ(found.what->dependencies[0].content, base::sha256_of(std::string_view{text}).hex());
    }
}

TEST_F(lookup_test, a_version_for_another_target_makes_it_unclear_and_one_of_another_compiler_does_not) {
    auto other = asked("nvrtc theirs");
    other.target = target::parse("sm_80").value();
    for (auto const* text : {"1", "2"}) {
        auto const store = make(store::store_options{});
        add_bundle(*store, made(asked(), "1"));
        add_bundle(*store, made(other, text));
        EXPECT_EQ(look_up(*store, asked()).what != nullptr, std::string_view{text} == "1");
    }
}

TEST_F(lookup_test, a_unit_that_brings_its_headers_is_taken_at_its_word) {
    auto const store = make(store::store_options{});
    add_bundle(*store, made(asked(), "1"));
    add_bundle(*store, made(asked(), "2"));
    auto const carrying = [&](std::vector<carried_header> headers) {
        auto out = asked();
        headers.push_back({"!", ""});
        out.roots = compile::roots_of(unit{.name = "p", .source = "", .carried = std::move(headers)});
        return out;
    };
    for (auto const* text : {"1", "2"}) {
        auto const found = look_up(*store, carrying({{"i0/q.h", text}}));
        ASSERT_TRUE(found.what) << found.detail;
        EXPECT_EQ(found.what->dependencies[0].content, base::sha256_of(std::string_view{text}).hex());
    }
    EXPECT_EQ(look_up(*store, carrying({{"i0/q.h", "3"}})).reason, "header-changed");
    EXPECT_EQ(look_up(*store, carrying({{"!i0/q.h", ""}})).reason, "header-changed") << "it has no such header";
    EXPECT_EQ(look_up(*store, carrying({})).reason, "header-changed") << "nor a directory for it";
}

TEST_F(lookup_test, images_without_a_text_have_no_headers_that_could_differ) {
    auto const store = make(store::store_options{});
    add_bundle(*store, made(asked(), "1"));
    write_header("2");
    auto images = asked("");
    images.roots = compile::roots_of(unit{.name = "p", .source = "", .images_of = images.id.family.hex()});
    images.roots.toolkit = {include()};
    EXPECT_TRUE(look_up(*store, images).what);
}

TEST_F(lookup_test, a_bundle_serves_what_is_stale_in_nearer_tiers) {
    auto const store = make();
    write_header("1");
    store->put(made(asked(), "1"));
    add_bundle(*store, made(asked(), "1"));
    EXPECT_EQ(look_up(*store, asked()).from, provenance::memory);
    std::filesystem::remove_all(include());
    EXPECT_EQ(look_up(*store, asked()).from, provenance::bundle) << "made here it is a miss, shipped it is sealed";
    EXPECT_EQ(look_up(*store, asked()).from, provenance::memory);
}

TEST_F(lookup_test, stale_candidates_are_no_hits) {
    auto const store = make();
    for (int i = 0; i < 20; ++i) store->put(made(asked(), fmt::format("{}", i)));
    write_header("another");
    EXPECT_EQ(look_up(*store, asked()).reason, "header-changed");
    EXPECT_TRUE(store->counts().hits.empty());
    EXPECT_EQ(log_.count(event_kind::found), 0u);
    EXPECT_EQ(log_.count(event_kind::missed), 0u) << "whoever asked tells it, once";
    write_header("7");
    EXPECT_TRUE(look_up(*store, asked()).what);
    EXPECT_EQ(store->counts().hits.at("memory"), 1u);
    EXPECT_EQ(store->counts().requests, 1u);
}

TEST_F(lookup_test, explaining_counts_nothing) {
    auto const store = make();
    write_header("1");
    store->put(made(asked(), "1"));
    EXPECT_TRUE(look_up(*store, asked(), purpose::explain).what);
    EXPECT_EQ(store->counts().requests, 0u);
    EXPECT_EQ(log_.count(event_kind::found), 0u);
}

TEST_F(lookup_test, other_compilers_serve_from_bundles_and_where_there_is_none) {
    write_header("1");
    auto const theirs = made(asked("nvrtc theirs"), "1");
    ASSERT_TRUE(disk()->put(theirs));
    EXPECT_FALSE(look_up(*make(), asked()).what) << "on disk it is another's";
    EXPECT_TRUE(look_up(*make(), asked("")).what) << "without a compiler it is what there is";
    auto const store = make();
    add_bundle(*store, theirs);
    auto const found = look_up(*store, asked());
    EXPECT_EQ(found.from, provenance::bundle);
    EXPECT_EQ(found.detail, "made by another compiler");
}

TEST_F(lookup_test, what_ships_is_found_without_a_compiler_and_nothing_else_is) {
    using engine_detail::look_up_shipped;
    write_header("1");
    ASSERT_TRUE(disk()->put(made(asked("nvrtc theirs"), "1")));
    auto const store = make();
    EXPECT_EQ(look_up_shipped(*store, asked("")).reason, "absent") << "another compiler's, and it does not ship";
    add_bundle(*store, made(asked("nvrtc of the shipper"), "1"));
    auto const found = look_up_shipped(*store, asked(""));
    ASSERT_TRUE(found.what) << found.reason;
    EXPECT_EQ(found.from, provenance::bundle);
    EXPECT_EQ(found.what->toolchain, "nvrtc of the shipper");
    EXPECT_EQ(look_up_shipped(*store, asked("")).from, provenance::memory);
    auto other = asked("");
    other.target = target::parse("sm_80").value();
    EXPECT_FALSE(look_up_shipped(*store, other).what);
    other.id.family = digest_of("another text");
    other.target = asked().target;
    EXPECT_FALSE(look_up_shipped(*store, other).what);
}

TEST_F(lookup_test, a_fleet_needs_nothing_from_the_engine) {
    auto const fleet = std::make_shared<fake_fleet>();
    write_header("1");
    ASSERT_TRUE(fleet->put(made(asked(), "0")));
    ASSERT_TRUE(fleet->put(made(asked(), "1")));
    auto const store = make();
    store->add_tier(fleet);
    EXPECT_EQ(look_up(*store, asked()).from, provenance::fleet);
    EXPECT_EQ(fleet->uses, 1);
    EXPECT_EQ(look_up(*store, asked()).from, provenance::memory);
    EXPECT_EQ(fleet->lists, 1) << "what is near is not asked for far away";
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{10}));
    EXPECT_EQ(look_up(*make(), asked()).from, provenance::disk) << "and on disk for the next process";
    std::filesystem::remove_all(include());
    EXPECT_FALSE(look_up(*store, asked()).what) << "a fleet seals nothing";
}

TEST_F(lookup_test, what_a_fleet_gives_to_who_has_no_compiler_seals_the_toolkit_alone) {
    auto const store = make(store::store_options{});
    auto const answered = [&](dependency::root root) {
        auto e = std::make_shared<store::entry>(*made(asked(), "1"));
        auto a = compile::decode_artifact(e->payload).value();
        a.dependencies[0].from = root;
        e->payload = compile::encode(a);
        e->from = {.where = store::location::fleet, .headers_sealed = true, .any_compiler = true};
        store::found found;
        found.hit = std::move(e);
        found.where = store::location::fleet;
        return engine_detail::accept(*store, asked(""), found).what != nullptr;
    };
    EXPECT_TRUE(answered(dependency::root::toolkit));
    EXPECT_FALSE(answered(dependency::root::include_directory)) << "it may be of another version";
    write_header("1");
    EXPECT_TRUE(answered(dependency::root::include_directory));
}

TEST_F(lookup_test, bytes_that_are_no_artifact_are_rejected_and_do_not_end_anything) {
    auto const store = make();
    auto bad = std::make_shared<store::entry>(*made(asked(), "1"));
    bad->payload.resize(10);
    store->put(bad);
    write_header("1");
    EXPECT_EQ(look_up(*store, asked()).reason, "bad-artifact");
    EXPECT_FALSE(look_up(*store, asked()).what);
}

}  // namespace kiln::test
