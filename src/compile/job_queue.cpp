// SPDX-License-Identifier: Apache-2.0
#include "compile/job_queue.hpp"

namespace kiln::compile {

void job_queue::push(queued_job&& j) {
    jobs_.reserve(jobs_.size() + 1);
    auto const id = j.id;
    auto const at = order_.insert({j.how, id}).first;
    try {
        jobs_.try_emplace(id, std::move(j));
    } catch (...) {
        order_.erase(at);
        throw;
    }
}

std::optional<queued_job> job_queue::pop() {
    if (order_.empty()) return std::nullopt;
    return take(order_.begin()->id);
}

std::optional<queued_job> job_queue::pop(rank const& by) {
    constexpr int most_looked_at = 256;
    std::optional<std::pair<int, worker_pool::ticket>> best;
    int looked_at = 0;
    for (auto const& [how, id] : order_) {
        if (how != order_.begin()->how || ++looked_at > most_looked_at) break;
        auto const ranked = by(jobs_.at(id));
        if (ranked && (!best || *ranked < best->first)) best.emplace(*ranked, id);
    }
    if (!best) return std::nullopt;
    return take(best->second);
}

std::optional<queued_job> job_queue::take(worker_pool::ticket id) {
    auto const at = jobs_.find(id);
    if (at == jobs_.end()) return std::nullopt;
    auto out = std::move(at->second);
    order_.erase({out.how, id});
    jobs_.erase(at);
    return out;
}

bool job_queue::raise(worker_pool::ticket id, priority how) {
    auto const at = jobs_.find(id);
    if (at == jobs_.end()) return false;
    if (at->second.how >= how) return true;
    auto moved = order_.extract({at->second.how, id});
    moved.value().how = at->second.how = how;
    order_.insert(std::move(moved));
    return true;
}

int job_queue::count_blocking(int most) const noexcept {
    int out = 0;
    for (auto at = order_.begin(); at != order_.end() && at->how == priority::blocking && out < most; ++at) ++out;
    return out;
}

}  // namespace kiln::compile
