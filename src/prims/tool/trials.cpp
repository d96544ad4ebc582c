// SPDX-License-Identifier: Apache-2.0
#include "prims/tool/prims_tool.hpp"
#include "workshop/settled.hpp"

#include <kiln/prims/run.hpp>
#include <kiln/prims/sum.hpp>

#include <random>

namespace kiln::prims {

namespace {

// Sixty megabytes: made when the first trial runs.
struct bench_data {
    bench_data() {
        constexpr auto most = workshop::most_trial_items;
        std::minstd_rand random{11};
        keys = buffer<int>::on_host(most);
        floats = buffer<float>::on_host(most);
        sorted = buffer<int>::on_host(most);
        mask = buffer<std::uint8_t>::on_host(most);
        offsets = buffer<std::int32_t>::on_host(most / 16 + 1);
        for (std::size_t i = 0; i < most; ++i) {
            keys.data()[i] = static_cast<int>(random());
            floats.data()[i] = static_cast<float>(i % 1000);
            sorted.data()[i] = static_cast<int>(i / 4);
            mask.data()[i] = static_cast<std::uint8_t>(random() % 2);
        }
        for (std::size_t i = 0; i < offsets.size(); ++i) offsets.data()[i] = static_cast<std::int32_t>(i * 16);
    }
    buffer<int> keys, sorted;
    buffer<float> floats;
    buffer<std::uint8_t> mask;
    buffer<std::int32_t> offsets;
};

class lazy_data {
public:
    bench_data const* operator->() {
        if (!made_) made_ = std::make_unique<bench_data>();
        return made_.get();
    }

private:
    std::unique_ptr<bench_data> made_;
};

}  // namespace

std::vector<workshop::trial> prims_tool::trials() const {
    auto const lazy = std::make_shared<lazy_data>();
    auto const exclusive = std::make_shared<run::exclusive_scan<int>>(plus);
    auto const inclusive = std::make_shared<run::inclusive_scan<int>>(plus);
    auto const reduce = std::make_shared<run::reduce<int>>(plus);
    auto const sum = std::make_shared<run::sum<float>>();
    auto const segmented = std::make_shared<run::segmented_reduce<int>>(plus);
    auto const select = std::make_shared<run::select<int>>();
    auto const lower = std::make_shared<run::lower_bound<int>>();
    auto const upper = std::make_shared<run::upper_bound<int>>();
    auto const radix = std::make_shared<run::radix_sort<int>>();
    auto const merge = std::make_shared<run::merge_sort<int>>();
    auto const unique = std::make_shared<run::unique_by_key<int, int>>();
    return {
        {&exclusive_scan_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*exclusive)(on, (*lazy)->keys.first(n)), on); }},
        {&inclusive_scan_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*inclusive)(on, (*lazy)->keys.first(n)), on); }},
        {&reduce_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*reduce)(on, (*lazy)->keys.first(n)), on); }},
        {&sum_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*sum)(on, (*lazy)->floats.first(n)), on); }},
        {&segmented_reduce_operation,
         [=](stream_ref on, std::size_t n) -> result<void> {
             KILN_TRY(auto const out,
                      (*segmented)(on, column<int>::lists((*lazy)->keys.first(n), (*lazy)->offsets.first(n / 16 + 1))));
             return workshop::settled(result<buffer<int>>{out.values()}, on);
         }},
        {&select_operation,
         [=](stream_ref on, std::size_t n) {
             return workshop::settled((*select)(on, (*lazy)->keys.first(n), (*lazy)->mask.first(n)), on);
         }},
        {&lower_bound_operation,
         [=](stream_ref on, std::size_t n) {
             return workshop::settled((*lower)(on, (*lazy)->sorted.first(n), (*lazy)->keys.first(n)), on);
         }},
        {&upper_bound_operation,
         [=](stream_ref on, std::size_t n) {
             return workshop::settled((*upper)(on, (*lazy)->sorted.first(n), (*lazy)->keys.first(n)), on);
         }},
        {&radix_sort_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*radix)(on, (*lazy)->keys.first(n)), on); }},
        {&merge_sort_operation,
         [=](stream_ref on, std::size_t n) { return workshop::settled((*merge)(on, (*lazy)->keys.first(n)), on); }},
        {&unique_by_key_operation,
         [=](stream_ref on, std::size_t n) -> result<void> {
             KILN_TRY(auto const out, (*unique)(on, (*lazy)->sorted.first(n), (*lazy)->keys.first(n)));
             return workshop::settled(result<buffer<int>>{out.keys}, on);
         }},
    };
}

}  // namespace kiln::prims
