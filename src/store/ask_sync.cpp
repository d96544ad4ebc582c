// SPDX-License-Identifier: Apache-2.0
#include "store/ask_sync.hpp"

#include <future>

namespace kiln::store {

far_answer ask_sync(store& where, question const& what, base::time_point deadline) {
    auto const there = std::make_shared<std::promise<far_answer>>();
    auto answer = there->get_future();
    where.ask(what, [there](far_answer const& a) {
        if (a.is_last) there->set_value(a);
    });
    if (answer.wait_until(deadline) == std::future_status::ready) return answer.get();
    return {.said = "no answer in time"};
}

}  // namespace kiln::store
