// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/interop.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(buffer_test, knows_where_it_lives_and_whose_it_is) {
    auto const owned = buffer<int>::copy_of(std::vector<int>{1, 2, 3});
    EXPECT_EQ(owned.where(), residency::host);
    EXPECT_TRUE(owned.owns());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(owned.data()) % 64, 0u);
    int outside[] = {4, 5};
    auto const borrowed = buffer<int>::borrow(outside, 2, residency::host);
    EXPECT_FALSE(borrowed.owns());
    EXPECT_EQ(borrowed.data(), outside);
    EXPECT_THAT(std::vector<int>(owned.first(2).host_span().begin(), owned.first(2).host_span().end()),
                ElementsAre(1, 2));
}

TEST(buffer_test, on_the_host_comes_to_the_host_without_moving) {
    auto const owned = buffer<int>::copy_of(std::vector<int>{1});
    auto const before = activity_so_far();
    EXPECT_EQ(owned.to_host_sync(nullptr)->data(), owned.data());
    EXPECT_EQ(activity_so_far().since(before).transfers_to_host, 0u);
}

TEST(buffer_test, what_it_borrows_is_let_go_with_the_last_copy) {
    auto keep = std::make_shared<int>(1);
    std::weak_ptr<int> const alive = keep;
    auto first = buffer<int>::borrow(keep.get(), 1, residency::host, 0, keep);
    keep.reset();
    auto second = first.first(1);
    first = {};
    EXPECT_FALSE(alive.expired());
    second = {};
    EXPECT_TRUE(alive.expired());
}

TEST(column_test, null_and_empty_are_different) {
    // [7, 8], null, [], [9]
    auto const rows = column<int>::lists(buffer<int>::copy_of(std::vector<int>{7, 8, 9}),
                                         buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 2, 2, 2, 3}),
                                         buffer<std::uint8_t>::copy_of(std::vector<std::uint8_t>{0b1101}));
    EXPECT_EQ(rows.rows(), 4u);
    EXPECT_TRUE(rows.is_null(1));
    EXPECT_FALSE(rows.is_empty(1));
    EXPECT_FALSE(rows.is_null(2));
    EXPECT_TRUE(rows.is_empty(2));
    EXPECT_EQ(rows.count_nulls(), 1u);
}

TEST(dlpack_test, goes_out_and_comes_back_without_a_copy) {
    auto values = buffer<float>::copy_of(std::vector<float>{1, 2, 3});
    auto* const data = values.data();
    auto* const tensor = to_dlpack(values).value();
    values = {};
    EXPECT_EQ(tensor->tensor.data, data);
    EXPECT_EQ(tensor->tensor.where.type, 1);
    EXPECT_EQ(tensor->tensor.type.code, 2);
    EXPECT_EQ(tensor->tensor.shape[0], 3);
    auto const back = from_dlpack<float>(tensor).value();
    EXPECT_EQ(back.data(), data);
    EXPECT_THAT(std::vector<float>(back.host_span().begin(), back.host_span().end()), ElementsAre(1, 2, 3));
}

TEST(dlpack_test, a_tensor_of_another_type_or_with_gaps_is_refused_and_released) {
    auto values = buffer<float>::copy_of(std::vector<float>{1, 2, 3, 4});
    auto keep = std::make_shared<int>(0);
    std::weak_ptr<int> const alive = keep;
    auto const watched = buffer<float>::borrow(values.data(), 4, residency::host, 0, std::exchange(keep, nullptr));
    auto const refused = from_dlpack<int>(to_dlpack(watched).value());
    EXPECT_THAT(refused.error().message(), HasSubstr("where i32 was expected"));

    auto* const gappy = to_dlpack(watched).value();
    std::int64_t shape[] = {2}, strides[] = {2};
    gappy->tensor.shape = shape;
    gappy->tensor.strides = strides;
    EXPECT_EQ(from_dlpack<float>(gappy).error().code(), errc::unsupported);
    EXPECT_EQ(alive.use_count(), 1) << "both tensors were released";
}

TEST(arrow_test, a_column_of_lists_goes_out_and_comes_back_with_its_nulls) {
    auto const rows = column<double>::lists(buffer<double>::copy_of(std::vector<double>{7, 8, 9}),
                                            buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 2, 2, 2, 3}),
                                            buffer<std::uint8_t>::copy_of(std::vector<std::uint8_t>{0b1101}));
    ArrowSchema schema;
    ArrowDeviceArray array;
    ASSERT_TRUE(to_arrow(nullptr, rows, &schema, &array));
    EXPECT_STREQ(schema.format, "+l");
    EXPECT_STREQ(schema.children[0]->format, "g");
    EXPECT_EQ(array.device_type, ARROW_DEVICE_CPU);
    EXPECT_EQ(array.sync_event, nullptr);
    EXPECT_EQ(array.array.length, 4);
    auto const back = from_arrow<double>(nullptr, &schema, &array).value();
    EXPECT_EQ(schema.release, nullptr);
    EXPECT_EQ(array.array.release, nullptr);
    EXPECT_EQ(back.values().data(), rows.values().data());
    EXPECT_TRUE(back.is_null(1));
    EXPECT_TRUE(back.is_empty(2));
}

TEST(arrow_test, what_cannot_be_taken_is_refused_and_released) {
    column<int> const plain{buffer<int>::copy_of(std::vector<int>{1, 2})};
    ArrowSchema schema;
    ArrowDeviceArray array;
    ASSERT_TRUE(to_arrow(nullptr, plain, &schema, &array));
    EXPECT_THAT(from_arrow<float>(nullptr, &schema, &array).error().message(), HasSubstr("format 'i'"));
    EXPECT_EQ(array.array.release, nullptr);
    ASSERT_TRUE(to_arrow(nullptr, plain, &schema, &array));
    array.array.offset = 1;
    EXPECT_EQ(from_arrow<int>(nullptr, &schema, &array).error().code(), errc::unsupported);
    ASSERT_TRUE(to_arrow(nullptr, plain, &schema, &array));
    array.device_type = 4;  // OpenCL
    EXPECT_EQ(from_arrow<int>(nullptr, &schema, &array).error().code(), errc::unsupported);
}

}  // namespace kiln
