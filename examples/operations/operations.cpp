// SPDX-License-Identifier: Apache-2.0
// Operations decide where they run, once and visibly. Try it with KILN_EXECUTION_MODE=cpu, gpu and auto, and with
// KILN_EVENTS=events.jsonl followed by `kiln events events.jsonl --summary`.
#include <kiln/event.hpp>
#include <kiln/prims/run.hpp>

#include <cstdio>
#include <optional>

namespace {

void tell_last_dispatch() {
    for (auto const& e : kiln::event_log::process().recent(64)) {
        if (e.kind != kiln::event_kind::dispatched) continue;
        std::printf("%-16s %9lld items  on the %s  (%s; %s)\n", std::string{e.unit.view()}.c_str(),
                    static_cast<long long>(e.value), std::string{e.target.view()}.c_str(),
                    std::string{e.reason.view()}.c_str(), std::string{e.detail.view()}.c_str());
    }
}

}  // namespace

int main() try {
    // No stream is needed where nothing runs on a GPU.
    std::optional<kiln::stream> made;
    if (kiln::requested_mode() != kiln::execution_mode::cpu && kiln::usable_gpu())
        made.emplace(kiln::stream::make().value());
    kiln::stream_ref const stream = made ? kiln::stream_ref{*made} : kiln::stream_ref{};

    kiln::run::exclusive_scan<int> const scan{kiln::plus};
    kiln::run::radix_sort<int> const sort{kiln::sort_order::descending};
    kiln::run::reduce<int> const most{kiln::max};

    int answer = 0;
    for (std::size_t const n : {std::size_t{1000}, std::size_t{1} << 20}) {
        auto values = kiln::buffer<int>::on_host(n);
        for (std::size_t i = 0; i < n; ++i) values.data()[i] = static_cast<int>(i * 7919 % 1000);
        auto const sums = scan(stream, values).value();
        auto const sorted = sort(stream, values).value();
        auto const top = most(stream, sorted).value().to_host_sync(stream).value();
        answer += top.data()[0];
    }
    tell_last_dispatch();
    auto const moved = kiln::activity_so_far();
    std::printf("moved to the GPU: %llu bytes in %llu transfers; back: %llu bytes; fallbacks: %llu\n",
                static_cast<unsigned long long>(moved.bytes_to_device),
                static_cast<unsigned long long>(moved.transfers_to_device),
                static_cast<unsigned long long>(moved.bytes_to_host), static_cast<unsigned long long>(moved.fallbacks));
    std::printf("answer %d (expected 1998)\n", answer);
    return answer == 1998 ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "operations: %s\n", e.what());
    return 1;
}
