// SPDX-License-Identifier: Apache-2.0
#include "spatial/queue.hpp"

#include "base/fork_guard.hpp"
#include "spatial/host_sort.hpp"
#include "spatial/units.hpp"

#include <kiln/engine.hpp>
#include <kiln/prims/handles.hpp>
#include <kiln/runtime/pack_call.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>

namespace kiln::spatial {

// ---- Numbers of kernels ----

namespace {

struct numbered_names {
    base::forkable_mutex mutex;
    std::deque<char const*> names;  // never moved
};
numbered_names& numbered() {
    static constinit base::made_once<numbered_names> all;
    return all.get([] { return std::make_unique<numbered_names>(); });
}

}  // namespace

std::size_t queue::number_of(char const* kernel) {
    auto& all = numbered();
    std::scoped_lock const lock{all.mutex};
    // Two threads may ask for one at the same time.
    auto const at = std::ranges::find(all.names, std::string_view{kernel});
    auto const number = static_cast<std::size_t>(at - all.names.begin());
    if (at == all.names.end()) all.names.push_back(kernel);
    KILN_ASSERT(all.names.size() <= most_kernels);
    return number;
}
char const* queue::name_of(std::size_t number) {
    auto& all = numbered();
    std::scoped_lock const lock{all.mutex};
    return all.names[number];
}

// What the last one was is in no sum.
result<void> queue::sum(buffer<std::int64_t> const& counts) { return scan(counts); }

result<std::int64_t> queue::total_sync(buffer<std::int64_t> const& counts) {
    KILN_CHECK(sum(counts));
    std::int64_t out = 0;
    KILN_CHECK(read_sync({{counts.data() + counts.size() - 1, out}}));
    return out;
}

result<storage> queue::allocate_bounded(std::size_t bytes) {
    if (bytes > most_piece_)
        return fail(errc::out_of_memory, "spatial: a list of {} bytes where each may have {}", bytes, most_piece_);
    return allocate(bytes);
}

int bits_for(std::uint64_t most) noexcept { return std::max(1, static_cast<int>(std::bit_width(most))); }

// ---- On a device ----

namespace {

// Kernels and primitives, found at first use and kept.
struct device_handles {
    std::array<runtime::kept_handle<untyped_kernel>, queue::most_kernels> kernels;
    // In the order of all_units(): one load for all kernels of a unit.
    std::vector<runtime::kept_handle<ready_unit>> units{all_units().size()};
    runtime::kept_handle<scan_handle<std::int64_t>> scan;
    runtime::kept_handle<radix_sort_handle<std::uint64_t, std::int32_t>> sort_long;
    runtime::kept_handle<radix_sort_handle<std::int32_t, std::int32_t>> sort_short;
};
device_handles const& handles() {
    static constinit base::made_once<device_handles> all;  // streams may still run when statics die
    return all.get([] { return std::make_unique<device_handles>(); });
}

prim_options options_on(int device) {
    prim_options out;
    out.device = device;
    return out;
}

result<untyped_kernel> find_kernel(std::string_view name, int device) {
    auto const& of = unit_with(name);
    return handles().units[static_cast<std::size_t>(&of - all_units().data())].with(
        device, [&](int there) { return engine::process().get_sync(of, there); },
        [&](ready_unit const& ready) { return ready.kernel(name); });
}

template <class K, class V>
result<void> sort_on_device(queue& on_queue, stream_ref on, radix_sort_handle<K, V> const& by, buffer<K>& keys,
                            buffer<V>& values, int bits) {
    KILN_TRY(auto sorted_keys, on_queue.room<K>(keys.size()));
    KILN_TRY(auto sorted_values, on_queue.room<V>(values.size()));
    sort_arguments<K, V> what;
    what.keys_in = runtime::span_of(keys);
    what.keys_out = sorted_keys.data();
    what.values_in = values.data();
    what.values_out = sorted_values.data();
    what.last_bit = bits;
    KILN_CHECK(by(on, what));
    keys = std::move(sorted_keys), values = std::move(sorted_values);
    return {};
}

}  // namespace

result<storage> device_queue::allocate(std::size_t bytes) {
    return storage::on_device(on_, std::max<std::size_t>(bytes, 16), device_);
}

result<void> device_queue::run(task const& what, std::size_t items) {
    return handles().kernels[what.number].with(
        device_, [&](int device) { return find_kernel(name_of(what.number), device); },
        [&](untyped_kernel const& kernel) {
            auto const blocks = std::min<std::uint64_t>((items + what.block - 1) / what.block, 0x7fffffff);
            std::uint64_t count = items;
            void* arguments[] = {const_cast<void*>(what.what), &count};
            return kernel.launch(on_, {{static_cast<unsigned>(blocks)}, {what.block}}, arguments);
        });
}

result<void> device_queue::scan(buffer<std::int64_t> const& values) {
    return handles().scan.with(
        device_, [](int device) { return exclusive_scan<std::int64_t>(plus, options_on(device)); },
        [&](auto const& all) { return all(on_, runtime::span_of(values), runtime::span_of(values)); });
}

result<void> device_queue::sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) {
    if (keys.empty()) return {};
    return handles().sort_long.with(
        device_,
        [](int device) { return radix_sort<std::uint64_t, std::int32_t>(sort_order::ascending, options_on(device)); },
        [&](auto const& by) { return sort_on_device(*this, on_, by, keys, values, bits); });
}
result<void> device_queue::sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) {
    if (keys.empty()) return {};
    return handles().sort_short.with(
        device_,
        [](int device) { return radix_sort<std::int32_t, std::int32_t>(sort_order::ascending, options_on(device)); },
        [&](auto const& by) { return sort_on_device(*this, on_, by, keys, values, -1); });
}

result<void> device_queue::read_sync(std::initializer_list<wish> wishes) {
    KILN_TRY(auto waits, fence::make(on_, device_));
    std::vector<std::size_t> at;
    for (auto const& w : wishes) {
        KILN_TRY(auto const position, waits.add(w.from));
        at.push_back(position);
    }
    KILN_CHECK(waits.wait_sync());
    auto next = at.begin();
    for (auto const& w : wishes) *w.to = waits.get<std::int64_t>(*next++);
    return {};
}

// ---- On the host ----

result<storage> host_queue::allocate(std::size_t bytes) {
    auto out = storage::on_host(std::max<std::size_t>(bytes, 16));
    if (order_ == item_order::scrambled) std::memset(out.data(), 0xcd, out.bytes());  // what nobody wrote shows
    return out;
}

result<void> host_queue::run(task const& what, std::size_t items) {
    if (order_ == item_order::ascending) {
        for (std::size_t i = 0; i < items; ++i) what.item(what.what, i);
        return {};
    }
    // Every item once: a stride that has no divisor in common with their number.
    std::size_t stride = items * 5 / 8 + 1;
    while (std::gcd(stride, items) != 1) ++stride;
    for (std::size_t k = 0, i = items / 3; k < items; ++k, i = (i + stride) % items) what.item(what.what, i);
    return {};
}

result<void> host_queue::scan(buffer<std::int64_t> const& values) {
    std::uint64_t sum = 0;  // it may begin anew, as on a device
    auto const sum_until_now = [&] { return static_cast<std::int64_t>(sum); };
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
        sum += static_cast<std::uint64_t>(std::exchange(values.data()[i], sum_until_now()));
    values.data()[values.size() - 1] = sum_until_now();
    return {};
}

namespace {

template <class K>
void sort_on_host(buffer<K>& keys, buffer<std::int32_t>& values, int bits) {
    std::vector<keyed_value<K>> all(keys.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {keys.data()[i], values.data()[i]};
    sort_by_key(all, bits);
    keys = buffer<K>::on_host(all.size()), values = buffer<std::int32_t>::on_host(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) keys.data()[i] = all[i].key, values.data()[i] = all[i].value;
}

}  // namespace

result<void> host_queue::sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) {
    sort_on_host(keys, values, bits);
    return {};
}
result<void> host_queue::sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) {
    sort_on_host(keys, values, 32);
    return {};
}

result<void> host_queue::read_sync(std::initializer_list<wish> wishes) {
    for (auto const& w : wishes) *w.to = *w.from;
    return {};
}

}  // namespace kiln::spatial
