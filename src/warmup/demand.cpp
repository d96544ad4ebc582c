// SPDX-License-Identifier: Apache-2.0
#include "warmup/director.hpp"

#include <algorithm>

namespace kiln {

demanded demand(std::vector<want> what, demand_options how) {
    auto const by = warmup::director::of(warmup::engine_of(how));
    auto batch = std::make_shared<demanded::state>();
    batch->by = by;
    batch->what = std::move(what);
    batch->how = std::move(how);
    // So that each can be called hopeless also when there is no memory left.
    batch->hopeless.reserve(batch->what.size() * std::max<std::size_t>(1, batch->how.targets.size()));
    if (by) by->add(batch);
    return demanded{std::move(batch)};
}

demanded demand(std::initializer_list<want> what, demand_options how) {
    return demand(std::vector<want>{what}, std::move(how));
}

void demanded::raise(priority how) const {
    if (auto const by = state_->by.lock()) by->raise(state_, how);
}

void demanded::cancel() const {
    if (auto const by = state_->by.lock()) by->cancel(state_);
}

demanded requirement::demand(demand_options how) const {
    if (how.consumer.empty()) how.consumer = consumer_;
    return kiln::demand(wants(), std::move(how));
}

demanded demand_present(std::span<std::string_view const> facts, demand_options how) {
    std::vector<want> all;
    for (auto const* r : requirements()) {
        auto const& when = r->more().when;
        bool const fits =
            std::ranges::any_of(when, [&](std::string_view f) { return std::ranges::find(facts, f) != facts.end(); });
        if (!fits && !when.empty()) continue;
        auto more = r->wants();
        all.insert(all.end(), more.begin(), more.end());
    }
    return demand(std::move(all), std::move(how));
}

warm_status status(engine& of) { return of.internals().book.report(); }

progress_token on_progress(std::function<void(progress_report const&)> callback, engine& of) {
    auto const by = warmup::director::of(of);
    return by ? by->progress().on_progress(std::move(callback)) : progress_token{};
}

}  // namespace kiln
