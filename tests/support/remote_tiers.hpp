// SPDX-License-Identifier: Apache-2.0
// Remotes as tests ask them: by the text of KILN_REMOTE, and for the first answer that lets a caller go on.
#pragma once

#include "remote/remote_tier.hpp"

#include <atomic>
#include <future>

namespace kiln::test {

inline std::shared_ptr<remote::remote_tier> tier_at(std::string const& remote, event_log* log = nullptr) {
    return std::make_shared<remote::remote_tier>(remote::parse_remotes(remote, {}).usable.at(0),
                                                 std::make_shared<store::event_outlet>(log));
}

struct answered_after {
    store::answer what;
    double ms = 0;
};

// Whoever is asked: the first of his answers, late or last, and when it came.
class first_of_answers {
public:
    [[nodiscard]] store::answered teller() {
        return [to = to_](store::answer a) {
            if (!to->told.exchange(true)) to->there.set_value({std::move(a), to->since.ms()});
        };
    }
    [[nodiscard]] std::future<answered_after> coming() { return to_->there.get_future(); }

private:
    struct state {
        base::stopwatch since;
        std::atomic<bool> told{false};
        std::promise<answered_after> there;
    };
    std::shared_ptr<state> to_ = std::make_shared<state>();
};

inline answered_after first_answer(remote::remote_tier& of, store::question const& what) {
    first_of_answers first;
    of.ask(what, first.teller());
    return first.coming().get();
}

}  // namespace kiln::test
