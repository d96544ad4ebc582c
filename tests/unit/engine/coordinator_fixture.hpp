// SPDX-License-Identifier: Apache-2.0
// A coordinator over a store in memory and a compiler that is none.
#pragma once

#include "engine/coordinator.hpp"
#include "store/bundle.hpp"
#include "support/fake_compiler.hpp"

#include <gmock/gmock.h>

namespace kiln::engine_detail {

class coordinator_fixture : public testing::Test {
protected:
    using fake = testing_support::fake_compiler;

    ~coordinator_fixture() override { go_down(); }

    coordinator& requests() {
        if (!requests_) {
            store_ = std::make_unique<store::store>(kept_, events_);
            pool_ = std::make_unique<compile::worker_pool>(compiler_.options(), events_);
            requests_ = std::make_unique<coordinator>(options_, coordinator::parts{*store_, *pool_, events_, book_});
        }
        return *requests_;
    }
    // As the engine does it.
    void go_down() {
        compiler_.let_go();
        if (!requests_) return;
        requests_->stop();
        pool_->stop();
        requests_->abandon();
    }

    static unit unit_named(std::string name) { return {.name = std::move(name), .source = "__global__ void k() {}"}; }
    // Reads q.h of the first of these directories that has one.
    static unit reading(std::string name, std::vector<std::string> from) {
        return {.name = std::move(name), .source = "#include \"q.h\"\n", .include_dirs = std::move(from)};
    }
    static target sm(std::string const& number) { return target::parse("sm_" + number).value(); }
    static order order_of(unit const& u, target t = sm("90"), std::string toolchain = fake::toolchain) {
        subject about{.name = u.name,
                      .target = t,
                      .id = compile::identify(u, t, toolchain).value(),
                      .toolchain = toolchain,
                      .roots = {},
                      .device = {}};
        about.roots.include_directories = u.include_dirs;
        return {std::move(about), compile::job{{}, compile::compile_job{u, t}}, {}};
    }
    static base::digest identity(unit const& u) { return identity_of(order_of(u).subject); }

    result<obtained> get(unit const& u) { return get(order_of(u)); }
    result<obtained> get(order const& o) { return requests().ask(o, priority::blocking).answer.wait_sync(); }
    pending<obtained> ask(unit const& u, priority how = priority::declared) {
        return requests().ask(order_of(u), how).answer;
    }
    // Begins a job that ends with let_go(): whatever is asked for next queues behind it.
    void keep_busy() {
        compiler_.hold();
        (void)ask(unit_named("first"));
        compiler_.wait_for_begun(1);
    }

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    void write(std::string const& name, std::string_view text) {
        base::make_directories(std::filesystem::path{path(name)}.parent_path()).value();
        base::replace_file(path(name), base::as_bytes(text)).value();
    }
    // What the store will have beside memory.
    void ship(unit const& u, target t, std::string const& toolchain, std::vector<dependency> read = {}) {
        ship(u, std::vector{t}, toolchain, std::move(read));
    }
    void ship(unit const& u, std::vector<target> const& targets, std::string const& toolchain,
              std::vector<dependency> const& read = {}) {
        store::bundle_writer writer;
        for (auto const& t : targets) {
            artifact a{.unit = u.name, .target = t, .toolchain = toolchain};
            a.image = {std::byte{1}};
            a.dependencies = read;
            writer.add(*entry_for(order_of(u, t, toolchain), a, "test")).value();
        }
        writer.write(path("shipped.kiln")).value();
        kept_.bundles = {path("shipped.kiln")};
    }
    // Events of this kind that name a unit.
    [[nodiscard]] std::vector<event> told(event_kind kind) const {
        std::vector<event> out;
        for (auto const& e : events_.recent())
            if (e.kind == kind && !e.unit.view().empty()) out.push_back(e);
        return out;
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-coordinator").value();
    event_log events_;
    ledger book_;
    fake compiler_;
    coordinator_options options_;
    store::store_options kept_;
    std::unique_ptr<store::store> store_;
    std::unique_ptr<compile::worker_pool> pool_;
    std::unique_ptr<coordinator> requests_;
};

}  // namespace kiln::engine_detail
