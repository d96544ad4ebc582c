// SPDX-License-Identifier: Apache-2.0
// The fixture of the store's fault tests, which are named after the ids of docs/faults.md.
#pragma once

#include "base/directory.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/faulty_calls.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace kiln::test {

class store_faults : public ::testing::Test {
protected:
    [[nodiscard]] std::filesystem::path root() const { return scratch_.path() / "cache"; }

    [[nodiscard]] store::disk_options options() const { return {.root = root()}; }
    [[nodiscard]] std::shared_ptr<store::disk_tier> disk(store::disk_options o) {
        return std::make_shared<store::disk_tier>(std::move(o), std::make_shared<store::event_outlet>(&log_));
    }
    [[nodiscard]] std::shared_ptr<store::disk_tier> disk() { return disk(options()); }
    [[nodiscard]] std::unique_ptr<store::store> make(store::store_options o) {
        return std::make_unique<store::store>(std::move(o), log_);
    }
    [[nodiscard]] std::unique_ptr<store::store> make() {
        store::store_options o;
        o.disk = options();
        return make(std::move(o));
    }

    [[nodiscard]] std::filesystem::path path_of(store::entry const& e) const {
        return store::disk_layout{root()}.entry(e.about.at);
    }
    [[nodiscard]] base::bytes bytes_of(std::filesystem::path const& path) const {
        return base::read_file(path).value().value();
    }
    void overwrite(std::filesystem::path const& path, base::byte_span data) const {
        base::replace_file(path, data).value();
    }

    // No file left behind by an unfinished put.
    [[nodiscard]] int temporaries() const {
        int count = 0;
        base::for_each_name(store::disk_layout{root()}.temporaries(), [&](std::string_view) { ++count; }).value();
        return count;
    }
    [[nodiscard]] store::usage counted() const { return store::maintenance{root()}.count().value(); }
    [[nodiscard]] std::uint64_t warnings() const { return log_.count(event_kind::warned); }
    [[nodiscard]] std::string last_reason(event_kind kind) const {
        std::string out;
        for (auto const& e : log_.recent()) {
            if (e.kind == kind) out = std::string{e.reason.view()};
        }
        return out;
    }

    // The entry is put and found again: the directory has healed.
    void expect_heals(store::entry_ptr const& e) {
        auto const tier = disk();
        ASSERT_TRUE(tier->put(e));
        auto const found = tier->find(e->about.at, expected_of(*e)).value();
        ASSERT_TRUE(found.hit);
        EXPECT_EQ(found.hit->payload, e->payload);
        EXPECT_TRUE(store::maintenance{root()}.verify(store::maintenance::bad_entries::report).value().bad.empty());
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-store").value();
    event_log log_;
};

}  // namespace kiln::test
