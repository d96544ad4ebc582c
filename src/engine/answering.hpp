// SPDX-License-Identifier: Apache-2.0
// For callbacks and tasks that owe somebody an answer.
#pragma once

#include "base/caught.hpp"

#include <kiln/pending.hpp>

namespace kiln::engine_detail {

// `body` answers `to`, or sees that it will be answered; what it throws is the answer, too: nobody is left waiting.
template <class State, class Body>
void answering(std::shared_ptr<State> const& to, Body&& body) noexcept {
    try {
        body();
    } catch (std::exception const&) {
        to->finish(base::caught_error());
    }
}

}  // namespace kiln::engine_detail
