// SPDX-License-Identifier: Apache-2.0
#include "spatial/pipeline.hpp"

#include "spatial/generators.hpp"

#include <kiln/activity.hpp>
#include <kiln/event.hpp>
#include <kiln/prims/once.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/wkb.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace kiln::spatial_bench {

namespace {

using namespace spatial;
using bytes = column<std::uint8_t>;

constexpr double least_area = 1e-3;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Read, make_valid, overlay, area, filter, dissolve by right row, to_wkb. The bytes go there and come back; between that nothing
// does but sizes.
bytes on_the_device(stream const& on, bytes const& left, bytes const& right) {
    auto const read = [&](bytes const& b) { return made(from_wkb_sync(on, made(b.to_device(on)))); };
    auto const a = made(make_valid(on, read(left))), b = made(make_valid(on, read(right)));
    auto const parts = made(overlay(on, a, b, overlay_kind::intersection));
    auto const n = parts.size();
    auto const areas = made(area(on, parts.rows));
    auto const keep = made(buffer<std::uint8_t>::on_device(on, n));
    auto const keys = made(buffer<std::int32_t>::on_device(on, n));
    auto const count = made(buffer<std::uint64_t>::on_device(on, 1));
    once::transform<double, std::uint8_t>(on, {areas.data(), n}, {keep.data(), n}, op{"a >= s"}.with(least_area))
        .value();
    once::select<std::int32_t>(on, {parts.right.data(), n}, keep.data(), keys.data(), count.data()).value();
    auto const large = made(filter_sync(on, parts.rows, keep));
    auto const merged = made(dissolve(on, large, keys.first(large.rows()), b.rows()));
    return made(made(to_wkb_sync(on, merged)).to_host_sync(on));
}

// The same of rows that are at home on the host, where the mode says.
bytes from_the_host(stream const& on, bytes const& left, bytes const& right, std::size_t most) {
    auto const a = made(make_valid(on, made(from_wkb(left)), {.most_bytes = most}));
    auto const b = made(make_valid(on, made(from_wkb(right)), {.most_bytes = most}));
    auto const there = made(overlay(on, a, b, overlay_kind::intersection, {.most_bytes = most}));
    auto const rows = made(there.rows.to_host_sync(on));
    auto const number = made(there.right.to_host_sync(on));
    auto const areas = made(made(area(on, rows)).to_host_sync(on));
    auto const keep = buffer<std::uint8_t>::on_host(number.size());
    std::vector<std::int32_t> keys;
    for (std::size_t i = 0; i < number.size(); ++i) {
        keep.data()[i] = areas.data()[i] >= least_area ? 1 : 0;
        if (keep.data()[i] != 0) keys.push_back(number.data()[i]);
    }
    auto const large = made(filter_sync(on, rows, keep));
    auto const merged = made(dissolve(on, large, buffer<std::int32_t>::copy_of(keys), b.rows(), {.most_bytes = most}));
    return made(to_wkb(made(merged.to_host_sync(on))));
}

bool are_same(bytes const& a, bytes const& b) {
    return std::ranges::equal(a.values().host_span(), b.values().host_span()) &&
           std::ranges::equal(a.offsets()->host_span(), b.offsets()->host_span());
}
// So that two processes can be compared.
std::uint64_t digest_of(bytes const& of) {
    std::uint64_t out = 14695981039346656037U;
    for (auto const byte : of.values().host_span()) out = (out ^ byte) * 1099511628211U;
    return out;
}

struct timed {
    bytes made;
    double ms = 0;
};
template <class Run>
timed take_time(Run const& run) {
    auto const start = std::chrono::steady_clock::now();
    timed out{run(), 0};
    out.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return out;
}
// What a run did, in a line.
class watched_run {
public:
    ~watched_run() {
        auto const did = activity_so_far().since(before_);
        std::printf(
            "    to the device %.1f MiB in %llu, back %.1f MiB in %llu, %llu waits; calls on the GPU %llu, on the CPU "
            "%llu; %lld chunks\n",
            static_cast<double>(did.bytes_to_device) / mebibyte, as_number(did.transfers_to_device),
            static_cast<double>(did.bytes_to_host) / mebibyte, as_number(did.transfers_to_host),
            as_number(did.synchronisations), as_number(did.dispatched_to_gpu), as_number(did.dispatched_to_cpu),
            static_cast<long long>(chunks_));
    }

private:
    static unsigned long long as_number(std::uint64_t v) { return v; }
    activity before_ = activity_so_far();
    std::int64_t chunks_ = 0;
    event_log::subscription token_ = event_log::process().subscribe([this](event const& e) {
        if (e.reason.view() == "in-chunks") chunks_ += e.value;
    });
};

struct trial {
    std::string name;
    std::size_t most;  // bytes, in chunks
    enum class cpu : std::uint8_t { yes, no } on_cpu;
};
void measure(stream const& on, geometries const& a, geometries const& b, trial const& how) {
    auto const left = made(to_wkb(a)), right = made(to_wkb(b));
    std::printf("%s: %zu and %zu rows, %zu vertices\n", how.name.c_str(), a.rows(), b.rows(),
                a.vertices() + b.vertices());
    // First, so that the most that was held is its own, if this process has done nothing else.
    auto const held_before = memory_of().peak;
    timed chunked;
    {
        scoped_execution_mode const mode{execution_mode::gpu};
        watched_run const watch;
        chunked = take_time([&] { return from_the_host(on, left, right, how.most); });
    }
    auto const peak = memory_of().peak;
    (void)on_the_device(on, left, right);  // kernels are loaded
    timed whole;
    {
        watched_run const watch;
        whole = take_time([&] { return on_the_device(on, left, right); });
    }
    bool const same = are_same(chunked.made, whole.made);
    row({how.name + ", seven operations at once", whole.ms, "ms", 0, better::lower, same});
    row({how.name + fmt::format(", in chunks of {} MiB", how.most / mebibyte), chunked.ms, "ms", 0, better::lower,
         same && (peak <= how.most || peak == held_before)});
    if (held_before > how.most) std::printf("    other rows held more before: --only pipeline tells the most memory\n");
    std::printf("    the most memory: %.1f MiB in chunks, %.1f MiB at once; %zu bytes, digest %016llx\n",
                static_cast<double>(peak) / mebibyte, static_cast<double>(memory_of().peak) / mebibyte,
                whole.made.values().size(), static_cast<unsigned long long>(digest_of(whole.made)));
    if (how.on_cpu == trial::cpu::no) return;
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const here = take_time([&] { return from_the_host(on, left, right, 0); });
    row({how.name + ", on the CPU", here.ms, "ms", 0, better::lower, are_same(here.made, whole.made)});
}

}  // namespace

// A process has one most that it held: of several trials, each holds more than the one before.
void pipeline(stream const& on, options const& how) {
    auto const before = read_layer(how.data + "/county2010.layer"), after = read_layer(how.data + "/county2016.layer");
    using cpu = trial::cpu;
    extent const moved{world.x0 + 0.5, world.y0 + 0.5, world.x1, world.y1};
    if (before && after) measure(on, *before, *after, {"counties 2010 x 2016", 512 * mebibyte, cpu::yes});
    else
        measure(on, tiling({40, 30, 6, 3, world}), tiling({35, 36, 6, 8, moved}),
                {"small tilings", 128 * mebibyte, cpu::yes});
    if (how.quick) return;
    measure(on, tiling({100, 100, 8, 3, world}), tiling({90, 120, 8, 8, moved}),
            {"tilings 10,000 x 10,800 of 1024", 4096 * mebibyte, cpu::no});
}

}  // namespace kiln::spatial_bench
