// SPDX-License-Identifier: Apache-2.0
#include "compile/precompiled_headers.hpp"

#include <algorithm>

namespace kiln::compile {

namespace {

constexpr double worth_ms = 200;
constexpr std::size_t most_remembered = 1024;

}  // namespace

bool precompiled_headers::works_with(cuda::nvrtc_api const& api) {
    auto const [at, is_new] = works_.try_emplace(&api, false);
    if (is_new && most_ > 0 && api.set_pch_heap_size != nullptr && api.get_pch_create_status != nullptr)
        at->second = api.set_pch_heap_size(most_) == NVRTC_SUCCESS;
    return at->second;
}

precompiled_header const* precompiled_headers::find(base::digest const& prefix) {
    auto const at = std::ranges::find(kept_, prefix, &decltype(kept_)::value_type::first);
    if (at == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, at);
    return &at->second;
}

void precompiled_headers::keep(base::digest const& prefix, precompiled_header made) {
    drop(prefix);
    if (made.bytes > most_) return refuse(prefix);
    while (bytes_ + made.bytes > most_) {
        bytes_ -= kept_.back().second.bytes;
        kept_.pop_back();
    }
    bytes_ += made.bytes;
    kept_.emplace_front(prefix, std::move(made));
}

void precompiled_headers::drop(base::digest const& prefix) {
    auto const at = std::ranges::find(kept_, prefix, &decltype(kept_)::value_type::first);
    if (at == kept_.end()) return;
    bytes_ -= at->second.bytes;
    kept_.erase(at);
}

void precompiled_headers::refuse(base::digest const& prefix) {
    drop(prefix);
    if (refused_.size() >= most_remembered) refused_.clear();
    refused_.insert(prefix);
}

void precompiled_headers::took(base::digest const& prefix, double ms) {
    if (took_ms_.size() >= most_remembered) took_ms_.clear();
    took_ms_[prefix] = ms;
}

bool precompiled_headers::is_worth_making(base::digest const& prefix, headers of) const {
    if (refused_.contains(prefix)) return false;
    auto const before = took_ms_.find(prefix);
    return of == headers::of_toolkit || (before != took_ms_.end() && before->second >= worth_ms);
}

}  // namespace kiln::compile
