// SPDX-License-Identifier: Apache-2.0
#include <kiln/result.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace kiln {
namespace {

result<int> some() { return 7; }
result<int> none() { return error{errc::io, "no such thing"}; }
result<void> failed() { return error{errc::timeout, "too late"}; }

TEST(result, transform_changes_the_value_and_keeps_the_error) {
    EXPECT_EQ(some().transform([](int x) { return std::to_string(x); }).value(), "7");
    auto const kept = none().transform([](int) { return ADD_FAILURE(), 1.0; });
    static_assert(std::is_same_v<decltype(kept), result<double> const>);
    EXPECT_EQ(kept.error().code(), errc::io);
    EXPECT_EQ(kept.error().message(), "no such thing");
}

TEST(result, transform_to_nothing_is_a_result_of_nothing) {
    int seen = 0;
    auto const done = some().transform([&](int x) { seen = x; });
    static_assert(std::is_same_v<decltype(done), result<void> const>);
    EXPECT_TRUE(done);
    EXPECT_EQ(seen, 7);
}

TEST(result, and_then_goes_on_while_there_is_a_value) {
    auto const half = [](int x) -> result<int> {
        if (x % 2 != 0) return error{errc::invalid_argument, "odd"};
        return x / 2;
    };
    EXPECT_EQ(result<int>{12}.and_then(half).and_then(half).value(), 3);
    EXPECT_EQ(some().and_then(half).error().code(), errc::invalid_argument);
    EXPECT_EQ(none().and_then(half).error().code(), errc::io);
    EXPECT_EQ(some().and_then([](int) { return failed(); }).error().code(), errc::timeout);
}

TEST(result, or_else_is_asked_about_errors_alone) {
    EXPECT_EQ(some().or_else([](error const&) -> result<int> { return ADD_FAILURE(), 1; }).value(), 7);
    EXPECT_EQ(
        none().or_else([](error const& why) -> result<int> { return static_cast<int>(why.message().size()); }).value(),
        13);
    EXPECT_EQ(
        none().or_else([](error&& why) -> result<int> { return std::move(why).within("disk"); }).error().message(),
        "disk: no such thing");
}

TEST(result, of_nothing_is_followed_by_functions_of_nothing) {
    result<void> const done;
    EXPECT_EQ(done.transform([] { return 3; }).value(), 3);
    EXPECT_EQ(done.and_then([] { return some(); }).value(), 7);
    EXPECT_EQ(failed().and_then([] { return ADD_FAILURE(), some(); }).error().code(), errc::timeout);
    EXPECT_EQ(failed().transform([] { return ADD_FAILURE(), 1; }).error().code(), errc::timeout);
    EXPECT_TRUE(failed().or_else([](error const&) { return result<void>{}; }));
    EXPECT_TRUE(done.or_else([](error const&) { return ADD_FAILURE(), failed(); }));
}

TEST(result, hands_on_what_cannot_be_copied) {
    auto const made = result<std::unique_ptr<int>>{std::make_unique<int>(5)}
                          .transform([](std::unique_ptr<int>&& p) { return ++*p, std::move(p); })
                          .and_then([](std::unique_ptr<int> p) -> result<std::unique_ptr<int>> { return p; });
    EXPECT_EQ(**made, 6);
    // Kept where it is not given away.
    EXPECT_EQ(made.transform([](std::unique_ptr<int> const& p) { return *p; }).value(), 6);
    EXPECT_NE(*made, nullptr);
}

}  // namespace
}  // namespace kiln
