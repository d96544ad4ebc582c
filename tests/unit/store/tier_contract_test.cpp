// SPDX-License-Identifier: Apache-2.0
#include "tier_contract.hpp"

#include "store/bundle.hpp"
#include "store/disk_tier.hpp"
#include "store/memory_tier.hpp"
#include "support/fake_fleet.hpp"

namespace kiln::test {

namespace {

struct memory_fixture {
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto out = std::make_shared<store::memory_tier>();
        for (auto const& e : some) out->put(e).value();
        return out;
    }
};

struct disk_fixture {
    base::temporary_directory scratch = base::temporary_directory::make().value();
    int made = 0;
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto out =
            std::make_shared<store::disk_tier>(store::disk_options{.root = scratch.path() / std::to_string(made++)},
                                               std::make_shared<store::event_outlet>(nullptr));
        for (auto const& e : some) out->put(e).value();
        return out;
    }
};

struct read_only_disk_fixture {
    disk_fixture writable;
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const root = writable.scratch.path() / std::to_string(writable.made);
        (void)writable.fill(some);
        return std::make_shared<store::disk_tier>(store::disk_options{.root = root, .mode = store::access::read_only},
                                                  std::make_shared<store::event_outlet>(nullptr));
    }
};

store::bundle_writer writer_of(std::vector<store::entry_ptr> const& some) {
    store::bundle_writer out;
    for (auto const& e : some) out.add(*e).value();
    return out;
}

struct bundle_file_fixture {
    base::temporary_directory scratch = base::temporary_directory::make().value();
    int made = 0;
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const file = scratch.path() / (std::to_string(made++) + ".kiln");
        writer_of(some).write(file).value();
        return store::bundle_tier::open(file).value();
    }
};

struct embedded_bundle_fixture {
    std::vector<std::unique_ptr<base::bytes>> kept;
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        kept.push_back(std::make_unique<base::bytes>(writer_of(some).encode().value()));
        return store::bundle_tier::from_memory(*kept.back()).value();
    }
};

struct fleet_fixture {
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto out = std::make_shared<fake_fleet>();
        for (auto const& e : some) out->put(e).value();
        return out;
    }
};

}  // namespace

using every_tier = ::testing::Types<memory_fixture, disk_fixture, read_only_disk_fixture, bundle_file_fixture,
                                    embedded_bundle_fixture, fleet_fixture>;
INSTANTIATE_TYPED_TEST_SUITE_P(all, tier_contract, every_tier);

}  // namespace kiln::test
