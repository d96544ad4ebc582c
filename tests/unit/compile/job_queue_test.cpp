// SPDX-License-Identifier: Apache-2.0
#include "compile/job_queue.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {
namespace {

queued_job make(worker_pool::ticket id, priority how) {
    return {id, how, {{}, compile_job{{.name = std::to_string(id), .source = ""}, target::parse("sm_90").value()}}, {}};
}

TEST(job_queue, pops_by_priority_then_by_ticket) {
    job_queue queue;
    for (auto const& [id, how] : {std::pair{1u, priority::declared},
                                  {2u, priority::blocking},
                                  {3u, priority::declared},
                                  {4u, priority::blocking}}) {
        queue.push(make(id, how));
    }
    for (auto const expected : {2u, 4u, 1u, 3u}) EXPECT_EQ(queue.pop()->id, expected);
    EXPECT_FALSE(queue.pop());
}

TEST(job_queue, of_the_most_urgent_the_lowest_rank_goes_first) {
    job_queue queue;
    for (auto const id : {1u, 2u, 3u, 4u}) queue.push(make(id, priority::planned));
    queue.push(make(5, priority::declared));
    auto const by = [](queued_job const& j) -> std::optional<int> {
        if (j.id == 1) return std::nullopt;
        return j.id == 3 || j.id == 5 ? 0 : 1;
    };
    for (auto const expected : {3u, 2u, 4u}) EXPECT_EQ(queue.pop(by)->id, expected);
    EXPECT_FALSE(queue.pop(by)) << "what is less urgent does not overtake what waits for somebody";
    EXPECT_EQ(queue.pop()->id, 1u);
    EXPECT_EQ(queue.pop(by)->id, 5u);
}

TEST(job_queue, raise_keeps_the_ticket_and_never_lowers) {
    job_queue queue;
    queue.push(make(1, priority::predicted));
    queue.push(make(2, priority::planned));
    queue.push(make(3, priority::planned));
    queue.raise(1, priority::planned);
    queue.raise(3, priority::predicted);
    queue.raise(99, priority::blocking);
    EXPECT_EQ(queue.size(), 3u);
    for (auto const expected : {1u, 2u, 3u}) EXPECT_EQ(queue.pop()->id, expected);
}

TEST(job_queue, take_removes_it_for_good) {
    job_queue queue;
    queue.push(make(1, priority::planned));
    queue.push(make(2, priority::planned));
    EXPECT_EQ(queue.take(1)->work.name(), "1");
    EXPECT_FALSE(queue.take(1));
    EXPECT_EQ(queue.pop()->id, 2u);
    EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace kiln::compile
