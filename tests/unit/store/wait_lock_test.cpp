// SPDX-License-Identifier: Apache-2.0
#include "store/wait_lock.hpp"

#include "base/files.hpp"
#include "support/faulty_calls.hpp"

#include <atomic>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {

using namespace std::chrono_literals;
using namespace store;

namespace {

class wait_lock : public ::testing::Test {
protected:
    [[nodiscard]] base::file_descriptor open() const {
        return base::open_file(scratch_.path() / "lock", O_RDWR | O_CREAT).value();
    }

private:
    base::temporary_directory scratch_ = base::temporary_directory::make().value();
};

}  // namespace

// Many wait for one that works: what they do meanwhile is taken from it.
TEST_F(wait_lock, asks_seldom_when_it_takes_long) {
    auto const holder = open(), waiter = open();
    ASSERT_EQ(try_flock(holder.get(), LOCK_EX), lock_attempt::taken);
    std::atomic<int> asked{0};
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which == call::flock) ++asked;
    };
    EXPECT_EQ(wait_flock(waiter.get(), LOCK_SH, base::clock::now() + 1s), lock_attempt::busy);
    EXPECT_LT(asked.load(), 60);  // every 5 ms would be 200
    EXPECT_GT(asked.load(), 5);
}

TEST_F(wait_lock, is_told_when_the_holder_lets_go_or_dies) {
    for (int round = 0; round < 3; ++round) {
        auto holder = open();
        auto const waiter = open();
        ASSERT_EQ(try_flock(holder.get(), LOCK_EX), lock_attempt::taken);
        std::atomic<int> asked{0};
        faulty_calls faults;
        faults.hook = [&](call which, char const*, int) {
            if (which == call::flock) ++asked;
        };
        std::thread letting_go{[&] {
            while (asked.load() < 11) std::this_thread::yield();  // by now it waits to be told
            holder.reset();
        }};
        EXPECT_EQ(wait_flock(waiter.get(), LOCK_EX, base::clock::now() + 60s), lock_attempt::taken);
        letting_go.join();
    }
}

}  // namespace kiln::test
