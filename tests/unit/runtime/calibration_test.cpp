// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/files.hpp"
#include "runtime_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::runtime {

namespace {
constexpr std::array variants{variant{.name = "gpu", .where = place::gpu, .needs = "u"},
                              variant{.name = "cpu", .where = place::cpu}};
constinit operation const measured_op{"calibrated", "tests", {.pairwise = 1000}, variants};
}  // namespace

class calibration_test : public runtime_test {
protected:
    calibration_test() {
        old_ = std::getenv("KILN_CACHE_DIR") != nullptr ? std::getenv("KILN_CACHE_DIR") : "";
        ::setenv("KILN_CACHE_DIR", folder_.path().c_str(), 1);
        one_gpu();
        forget();
    }
    ~calibration_test() override {
        ::setenv("KILN_CACHE_DIR", old_.c_str(), 1);
        forget();
    }
    static void forget() {
        forget_calibration();
        measured_op.forget_measured();
    }
    [[nodiscard]] std::filesystem::path file() const { return calibration_file(folder_.path(), *usable_gpu()); }

    base::temporary_directory folder_ = base::temporary_directory::make().value();
    std::string old_;
};

TEST_F(calibration_test, is_written_and_read_back) {
    calibration const made{
        .device = "GPU", .driver = 13000, .crossovers = {{{"calibrated", call_shape::broadcast}, 77}}};
    ASSERT_TRUE(write_calibration(file(), made));
    auto const back = read_calibration(file()).value().value();
    EXPECT_EQ(back.device, "GPU");
    EXPECT_EQ(back.find("calibrated", call_shape::broadcast), 77u);
    EXPECT_EQ(back.find("calibrated", call_shape::pairwise), std::nullopt);
}

TEST_F(calibration_test, decides_where_there_is_one_and_the_decision_says_so) {
    ASSERT_TRUE(write_calibration(file(), {.crossovers = {{{"calibrated", call_shape::pairwise}, 10}}}));
    auto const how = decide(measured_op, {.items = 20, .type = scalar::i32}).value();
    EXPECT_EQ(how.selected, place::gpu);
    EXPECT_EQ(how.crossover, 10u);
    EXPECT_TRUE(how.crossover_measured);
    EXPECT_THAT(std::string{last_of(event_kind::dispatched).detail.view()},
                testing::HasSubstr("crossover 10 measured"));
}

TEST_F(calibration_test, of_another_device_or_driver_is_not_used) {
    auto other = *usable_gpu();
    other.driver_version = 12090;
    ASSERT_TRUE(write_calibration(calibration_file(folder_.path(), other),
                                  {.crossovers = {{{"calibrated", call_shape::pairwise}, 10}}}));
    EXPECT_FALSE(decide(measured_op, {.items = 20, .type = scalar::i32})->crossover_measured);
}

// Reading it may start a driver: whoever reads is not in the child.
TEST_F(calibration_test, a_child_that_is_forked_while_its_parent_reads_it_reads_it_itself) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child with threads of its parent";
#endif
    ASSERT_TRUE(base::make_directories(folder_.path() / "calibration" / "of another"));
    std::promise<void> is_reading;
    std::atomic<bool> is_first{true};
    set_gpu_probe([&]() -> result<device_info> {
        if (is_first.exchange(false)) {
            is_reading.set_value();
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
        }
        return fail(errc::no_device, "none");
    });
    std::jthread const reads{[] { EXPECT_FALSE(measured("calibrated", call_shape::pairwise)); }};
    is_reading.get_future().get();
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(10);
        ::_exit(measured("calibrated", call_shape::pairwise) ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(calibration_test, that_is_damaged_counts_as_none) {
    ASSERT_TRUE(base::make_directories(file().parent_path()));
    ASSERT_TRUE(base::replace_file(file(), base::as_bytes("{\"format\": 1, \"crossovers\": [{\"oper")));
    EXPECT_EQ(read_calibration(file()).error().code(), errc::corrupt);
    EXPECT_FALSE(decide(measured_op, {.items = 20, .type = scalar::i32})->crossover_measured);
}

TEST_F(calibration_test, that_is_hostile_counts_as_none_or_as_what_is_right_in_it) {
    ASSERT_TRUE(base::make_directories(file().parent_path()));
    for (auto const* text : {R"({"format":"x"})", R"({"format":[1]})", R"({"format":1,"device":5,"driver":"x"})",
                             R"({"format":1,"crossovers":"none"})", R"({"format":1,"crossovers":{"a":1}})",
                             R"({"format":1,"crossovers":[5,null,[],{"operation":5,"items":1}]})",
                             R"({"format":1,"crossovers":[{"operation":"calibrated","shape":7,"items":-1}]})",
                             R"([1,2])", "5", "\xFF\xFE"}) {
        ASSERT_TRUE(base::replace_file(file(), base::as_bytes(text)));
        forget();
        EXPECT_FALSE(decide(measured_op, {.items = 20, .type = scalar::i32})->crossover_measured) << text;
    }
    auto const* const mixed =
        R"({"format":1,"device":5,"crossovers":[5,{"operation":"calibrated","shape":7,"items":10}]})";
    ASSERT_TRUE(base::replace_file(file(), base::as_bytes(mixed)));
    forget();
    EXPECT_TRUE(decide(measured_op, {.items = 20, .type = scalar::i32})->crossover_measured);
}

}  // namespace kiln::runtime
