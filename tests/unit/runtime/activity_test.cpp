// SPDX-License-Identifier: Apache-2.0
#include "cuda/activity.hpp"

#include "unit/cuda/fake_driver_test.hpp"

#include <kiln/event.hpp>
#include <thread>

namespace kiln::cuda {

using testing::HasSubstr;

class activity_test : public fake_driver_test {};

TEST_F(activity_test, transfers_waits_and_allocations_are_counted_where_they_happen) {
    auto const where = context_on(table());
    auto const before = activity_so_far();
    auto memory = device_memory::make(64, where).value();
    auto stream = kiln::stream::make(where).value();
    std::vector<std::byte> host(64);
    ASSERT_TRUE(memory.upload_sync(stream, host));
    ASSERT_TRUE(memory.download_sync(stream, host));
    ASSERT_TRUE(stream.wait_sync());
    auto const now = activity_so_far().since(before);
    EXPECT_EQ(now.allocations, 1u);
    EXPECT_EQ(now.allocated_bytes, 64u);
    EXPECT_EQ(now.transfers_to_device, 1u);
    EXPECT_EQ(now.bytes_to_host, 64u);
    EXPECT_EQ(now.synchronisations, 3u);
    auto const events = event_log::process().recent(1);
    EXPECT_EQ(events.back().kind, event_kind::synchronised);
    EXPECT_EQ(events.back().reason.view(), "stream::wait_sync");
}

TEST_F(activity_test, a_scope_forbids_transfers_and_lists_what_was_tried) {
    auto const where = context_on(table());
    auto memory = device_memory::make(64, where).value();
    auto stream = kiln::stream::make(where).value();
    std::vector<std::byte> host(64);
    (void)driver_.take();
    no_transfers outer;
    EXPECT_TRUE(outer.check());
    {
        no_transfers const inner;
        bool const mine = enter_operation("select", moves::declared);
        auto const refused = memory.download_sync(stream, host);
        if (mine) leave_operation();
        EXPECT_EQ(refused.error().code(), errc::forbidden);
        EXPECT_THAT(refused.error().message(), HasSubstr("64 bytes to-host by device_memory::download_sync in select"));
        EXPECT_EQ(inner.attempts().size(), 1u);
    }
    EXPECT_THAT(driver_.take(), testing::IsEmpty()) << "it never reached the driver";
    EXPECT_EQ(memory.upload_sync(stream, host).error().code(), errc::forbidden);
    auto const verdict = outer.check();
    EXPECT_THAT(verdict.error().log(), HasSubstr("to-host"));
    EXPECT_THAT(verdict.error().log(), HasSubstr("to-device"));
    EXPECT_TRUE(note_transfer({transfer_direction::on_device, 8, "copy"})) << "nothing leaves the device";
}

TEST_F(activity_test, a_scope_forbids_waits_on_its_own_thread_only) {
    auto const where = context_on(table());
    auto stream = kiln::stream::make(where).value();
    no_sync const still;
    EXPECT_THAT(stream.wait_sync().error().message(), HasSubstr("kiln::no_sync"));
    std::jthread{[&] {
        fake::current = &driver_;
        EXPECT_TRUE(stream.wait_sync());
    }};
    EXPECT_EQ(still.attempts().size(), 1u);
}

TEST_F(activity_test, scopes_may_die_in_any_order) {
    auto first = std::make_unique<no_sync>();
    auto second = std::make_unique<no_sync>();
    first.reset();
    EXPECT_FALSE(note_sync("here"));
    second.reset();
    EXPECT_TRUE(note_sync("here"));
}

TEST_F(activity_test, an_undeclared_transfer_in_a_strict_operation_is_refused) {
    ASSERT_TRUE(enter_operation("scan", moves::undeclared));
    EXPECT_FALSE(enter_operation("inner", moves::declared)) << "the outermost counts";
    EXPECT_THAT(note_transfer({transfer_direction::to_host, 8, "somewhere"}).error().message(),
                HasSubstr("KILN_STRICT"));
    leave_operation();
    EXPECT_TRUE(note_transfer({transfer_direction::to_host, 8, "somewhere"}));
}

}  // namespace kiln::cuda
