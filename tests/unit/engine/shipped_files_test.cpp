// SPDX-License-Identifier: Apache-2.0
#include "engine/shipped_files.hpp"

#include "base/files.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

namespace kiln::engine_detail {

namespace {

using test::address_of;
using test::entry_of;

std::filesystem::path folder;
int asked = 0;

std::vector<std::filesystem::path> folders() {
    ++asked;
    return {folder / "not there", folder};
}

class shipped_files : public testing::Test {
protected:
    void SetUp() override {
        folder = scratch_.path();
        asked = 0;
    }
    void write(std::string const& name, unsigned n) const {
        store::bundle_writer out;
        out.add(*entry_of(n)).value();
        out.write(folder / name).value();
    }
    event_log log_;

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-shipped").value();
};

}  // namespace

TEST_F(shipped_files, are_looked_for_at_the_first_need_and_all_of_them_answer) {
    write("a-sm_80.kiln", 1);
    write("b-sm_90.kiln", 5);
    auto const tier = make_shipped_files(log_, folders);
    EXPECT_EQ(asked, 0);
    EXPECT_TRUE(tier->find(address_of(1), {}).value().hit);
    EXPECT_TRUE(tier->find(address_of(5), {}).value().hit);
    EXPECT_FALSE(tier->find(address_of(3), {}).value().hit);
    EXPECT_EQ(tier->list(address_of(5).family, {}).value().size(), 1U);
    EXPECT_EQ(asked, 1);
    EXPECT_FALSE(tier->put(entry_of(3)));
}

TEST_F(shipped_files, a_damaged_one_costs_an_event_and_the_others_answer) {
    base::replace_file(folder / "a-sm_80.kiln", base::bytes(200), 0644).value();
    write("b-sm_90.kiln", 5);
    auto const tier = make_shipped_files(log_, folders);
    EXPECT_TRUE(tier->find(address_of(5), {}).value().hit);
    EXPECT_EQ(log_.count(event_kind::rejected), 1U);
}

TEST_F(shipped_files, none_is_a_miss) {
    EXPECT_FALSE(make_shipped_files(log_, folders)->find(address_of(1), {}).value().hit);
    EXPECT_EQ(log_.count(event_kind::rejected), 0U);
}

}  // namespace kiln::engine_detail
