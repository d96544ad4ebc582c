// SPDX-License-Identifier: Apache-2.0
// Waits, streams, copies and memory (R20 to R46).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

namespace {

using enum direction;

body waits(char const* call) {
    return [=](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait(call).passes(30); };
}
body times(char const* call) {
    return [=](s y, int) {
        y.on("a.py:1").launch("k").on("a.py:2").wait(call).call("cudaEventElapsedTime", 1);
        y.passes(30);
    };
}
void tries_then_runs(s x) {
    x.repeat(60, [](s y, int i) { y.launch(fmt::format("variant{}", i)).wait("cudaStreamSynchronize").passes(30); });
    x.repeat(200, [](s y, int i) {
        y.launch("mul").launch("add").passes(94);
        if (i % 20 == 0) y.wait("cudaStreamSynchronize").passes(30);
    });
}

body reads(std::uint64_t bytes) {
    return [=](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(bytes).passes(30); };
}
body reads_a_count() {
    return [](s y, int i) {
        y.on("a.py:1")
            .launch("DeviceReduce")
            .on("a.py:2")
            .read(8)
            .on("a.py:3")
            .launch("fill", {.takes = 20, .blocks = 500 + static_cast<std::uint32_t>(i)})
            .passes(10);
    };
}
body reads_between(std::uint64_t bytes) {
    return [=](s y, int) {
        y.on("a.py:1")
            .launch("k")
            .on("a.py:2")
            .read(bytes)
            .on("a.py:3")
            .launch("l")
            .on("a.py:4")
            .copy(to_device, 16)
            .passes(30);
    };
}
body reads_from(int step, std::uint64_t bytes) {
    return [=](s y, int i) {
        plain_step(y);
        if (i >= step) y.on("a.py:3").read(bytes);
    };
}
body reads_then_new_input() {
    return [](s y, int) {
        y.on("a.py:2").launch("k").read(4096).on("a.py:1").copy(to_device, 2048).on("a.py:2").passes(30);
    };
}

body copies(direction way, std::uint64_t bytes, copy_options const& how) {
    return [=](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").copy(way, bytes, how); };
}

struct two_streams {
    std::uint32_t flag = 2, other = 9, blocks = 8;
};
making on_streams(two_streams const& t) {
    return [=](s x) {
        x.stream_flag(8, t.flag).stream_flag(9, t.flag);
        x.repeat(60, [&](s y, int) {
            y.on("a.py:1")
                .launch("left", {.takes = 60, .blocks = t.blocks, .on_stream = 8})
                .on("a.py:2")
                .launch("right", {.takes = 60, .blocks = t.blocks, .on_stream = t.other})
                .passes(110);
        });
    };
}
body next_to_nothing_on_streams() {
    return [](s y, int) {
        y.on("a.py:1")
            .launch("k", {.takes = 2, .blocks = 8, .on_stream = 8})
            .passes(20000)
            .on("a.py:2")
            .copy(to_device, 16, {.takes = 1, .on_stream = 9});
    };
}

enum class afterwards { launches, waits };
body uploads_from(memory_kind host, afterwards then = afterwards::launches) {
    return [=](s y, int) {
        y.on("a.py:1").copy(to_device, 1 << 20, {.takes = 40, .host = host});
        if (then == afterwards::waits) y.wait("cudaStreamSynchronize");
        y.on("a.py:2").launch("k");
    };
}
body uploads(std::vector<std::uint64_t> sizes) {
    return [=](s y, int) {
        for (auto const bytes : sizes) y.on("a.py:1").copy(to_device, bytes);
        y.on("a.py:2").launch("k");
    };
}

body there_and_back(std::uint64_t changed_by, std::uint64_t buffer = 0) {
    return [=](s y, int i) {
        auto const h = 100u + static_cast<std::uint64_t>(i);
        y.on("a.py:1")
            .launch("k")
            .on("a.py:2")
            .copy(to_host, 8192, {.hash = h, .pointer = buffer})
            .wait("cudaStreamSynchronize")
            .on("a.py:3")
            .copy(to_device, 8192, {.hash = h + changed_by, .pointer = buffer});
    };
}
// Two arrays of one size come to the host together, and go back together.
void two_there_and_back(s x) {
    x.repeat(20, [](s y, int i) {
        auto const h = 100u + 2 * static_cast<std::uint64_t>(i);
        y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 8192, {.hash = h}).copy(to_host, 8192, {.hash = h + 1});
        y.wait("cudaStreamSynchronize").on("a.py:3");
        y.copy(to_device, 8192, {.hash = h}).copy(to_device, 8192, {.hash = h + 1}).passes(100);
    });
}
// One goes back, and others are read and uploaded in between.
body there_and_back_beside_others() {
    return [](s y, int i) {
        auto const h = 100u + static_cast<std::uint64_t>(i);
        y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 8192, {.hash = h}).wait("cudaStreamSynchronize");
        y.on("a.py:3").read(2048).on("a.py:4").copy(to_device, 8192, {.hash = h + 1000});
        y.on("a.py:5").copy(to_device, 8192, {.hash = h}).passes(100);
    };
}
// Two are read, what is known of the last is that it is not what is uploaded then.
body reads_two_then_new_input() {
    return [](s y, int i) {
        auto const h = 100u + 2 * static_cast<std::uint64_t>(i);
        y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 8192).copy(to_host, 8192, {.hash = h});
        y.wait("cudaStreamSynchronize").on("a.py:3").copy(to_device, 8192, {.hash = h + 1}).passes(100);
    };
}
// What was computed goes to the host while new input, as large, comes from it: the upload begins before the read has ended.
body streams_through(double later) {
    return [=](s y, int) {
        y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 8192, {.takes = 500, .on_stream = 8});
        auto const read = y.p().copies.back();
        y.on("a.py:3").copy(to_device, 8192, {.takes = 500, .on_stream = 9});
        y.p().copies.back().start = read.start + scene::ns(later);
        y.p().copies.back().end = read.end + scene::ns(later);
        y.wait("cudaStreamSynchronize").passes(25'000);
    };
}
// As much as an optimiser keeps: all of it is read, and then all of it goes back.
void many_there_and_back(s x) {
    x.repeat(20, [](s y, int i) {
        auto const h = 1000u * static_cast<std::uint64_t>(i + 1);
        y.on("a.py:1").launch("k").on("a.py:2");
        for (std::uint64_t n = 0; n < 200; ++n) y.copy(to_host, 8192, {.hash = h + n});
        y.wait("cudaStreamSynchronize").on("a.py:3");
        for (std::uint64_t n = 0; n < 200; ++n) y.copy(to_device, 8192, {.hash = h + n});
        y.passes(100);
    });
}
void twice_there_and_back(s x) {
    x.repeat(2, [](s y, int) {
        y.on("a.py:2")
            .copy(to_host, 8192, {.hash = 9})
            .wait("cudaStreamSynchronize")
            .on("a.py:3")
            .copy(to_device, 8192, {.hash = 9});
    });
}
// The content of a step is `hash` and `by` more in each.
body uploads_content(std::uint64_t bytes, std::uint64_t by) {
    return [=](s y, int i) {
        y.on("a.py:1")
            .copy(to_device, bytes, {.hash = 7u + by * static_cast<std::uint64_t>(i)})
            .on("a.py:2")
            .launch("k");
    };
}
making uploads_before_a_compile(copy_options const& how) {
    return then_plain(40, [=](s x) {
        x.repeat(40, [&](s y, int) { y.on("a.py:9").copy(to_device, 8192, how); });
        x.on("a.py:9").compile(1000);
    });
}
making uploads_alike_before_a_compile() {
    return then_plain(40, [](s x) {
        x.repeat(20, [](s y, int) { y.on("a.py:9").copy(to_device, 8192, {.hash = 7}).passes(10); });
        x.on("a.py:9").compile(1000);
    });
}

body moves_on_device(double kernel, double copy) {
    return [=](s y, int) {
        y.on("a.py:1").launch("k", {.takes = kernel}).on("a.py:2").copy(on_device, 1 << 20, {.takes = copy});
    };
}

making allocates(std::uint64_t bytes, memory_kind kind) {
    return then_plain(10, [=](s x) {
        x.on("a.py:1").allocate(10, 0, bytes);
        x.p().memory.back().memory = static_cast<std::uint8_t>(kind);
    });
}
// One call of the 39th step takes so long.
body allocates_and_frees(double slowest = 20) {
    return [=](s y, int i) {
        y.on("a.py:1").allocate(i == 38 ? slowest : 20).on("a.py:2").launch("k").on("a.py:3").release();
    };
}
body takes_from_a_pool() {
    return [](s y, int) {
        y.on("a.py:1").call("cudaMallocAsync", 5);
        y.on("a.py:2").launch("k").on("a.py:3").call("cudaFreeAsync", 5);
    };
}
body trims(int blocks) {
    return [=](s y, int) {
        y.repeat(blocks, [](s z, int) { z.on("a.py:1").allocate(); });
        y.on("a.py:2").launch("k");
        y.repeat(blocks, [](s z, int) { z.on("a.py:3").release(); });
    };
}
void frees_at_the_end(s x) {
    plain_steps(20)(x);
    x.repeat(30, [](s z, int) { z.on("a.py:3").release(); });
}

enum class copied { yes, no };
making grows(int times, copied how) {
    return then_plain(10, [=](s x) {
        double bytes = 1 << 20;
        for (int i = 0; i < times; ++i, bytes *= 1.5) {
            x.on("a.py:4").allocate(10, 0, static_cast<std::uint64_t>(bytes));
            if (how == copied::yes) x.copy(on_device, 1 << 20);
        }
    });
}

}  // namespace

std::vector<rule_case> cases_of_waits() {
    using enum expected;
    using enum memory_kind;
    char const *const stream = "cudaStreamSynchronize", *const whole = "cudaDeviceSynchronize";
    copy_options const synchronous{.takes = 30, .async = false};
    rule_options const half_may_move{.numbers = {{"R36.share", 0.5}}};
    return {
        {"R20", "fires", fires, loop(40, waits(stream))},
        {"R20", "few", below, loop(19, waits(stream))},
        {"R20", "timing", exempt, loop(40, times(stream))},
        {"R20", "tried_out", exempt, tries_then_runs},
        {"R21", "fires", fires, loop(40, waits(whole))},
        {"R21", "few", below, loop(19, waits(whole))},
        {"R21", "timing", exempt, loop(40, times(whole))},
        {"R22", "fires", fires, loop(40, reads(4))},
        {"R22", "few", below, loop(19, reads(4))},
        {"R22", "fence", exempt, loop(40, reads_a_count())},
        {"R23", "fires", fires, loop(40, reads_between(4096))},
        {"R23", "few", below, loop(50, reads_from(43, 4096))},
        {"R23", "scalar", passes, loop(40, reads_between(64))},
        {"R23", "then_new_input", exempt, loop(40, reads_then_new_input())},
        {"R24", "fires", fires, loop(40, copies(to_host, 4096, synchronous))},
        {"R24", "few", below, loop(19, copies(to_host, 4096, synchronous))},
        {"R24", "on_the_device", passes, loop(40, copies(on_device, 4096, synchronous))},
        {"R24", "before_the_steady_state", exempt, uploads_before_a_compile(synchronous)},
        {"R27", "fires", fires, on_streams({.flag = 1, .other = scene::null_stream})},
        {"R27", "no_null_stream", below, on_streams({.flag = 1})},
        {"R27", "non_blocking", passes, on_streams({.other = scene::null_stream})},
        {"R28", "fires", fires, on_streams({})},
        {"R28", "one_stream", below, on_streams({.other = 8})},
        {"R28", "full_kernels", exempt, on_streams({.blocks = 1000})},
        {"R28", "next_to_nothing", exempt, loop(60, next_to_nothing_on_streams())},
        {"R30", "fires", fires, loop(20, uploads_from(pageable))},
        {"R30", "pinned", below, loop(20, uploads_from(pinned))},
        {"R30", "waits_itself", exempt, loop(20, uploads_from(pageable, afterwards::waits))},
        {"R31", "fires", fires, loop(40, uploads({4, 8, 12}))},
        {"R31", "two_per_step", below, loop(40, uploads({4, 8}))},
        {"R31", "large", passes, loop(40, uploads({1 << 17, 1 << 17, 1 << 17}))},
        {"R32", "fires", fires, loop(20, there_and_back(0))},
        {"R32", "two", below, then_plain(20, twice_there_and_back)},
        {"R32", "in_one_buffer", fires, loop(20, there_and_back(0, 77))},
        {"R32", "two_arrays", fires, two_there_and_back, {}, 40},
        {"R32", "beside_others", fires, loop(20, there_and_back_beside_others()), {}, 20},
        {"R32", "many_arrays", fires, many_there_and_back, {}, 4000},
        {"R32", "both_ways_at_once", passes, loop(20, streams_through(100))},
        {"R32", "as_soon_as_it_was_there", fires, loop(20, streams_through(500)), {}, 20},
        {"R32", "two_then_new_input", passes, loop(20, reads_two_then_new_input())},
        {"R32", "other_content", passes, loop(20, there_and_back(1000))},
        {"R32", "other_content_in_one_buffer", passes, loop(20, there_and_back(1000, 77))},
        {"R33", "fires", fires, loop(20, uploads_content(8192, 0))},
        {"R33", "small", below, loop(20, uploads_content(2048, 0))},
        {"R33", "new_content", passes, loop(20, uploads_content(8192, 1))},
        {"R33", "begin_alike", exempt, uploads_alike_before_a_compile()},
        {"R36", "fires", fires, loop(60, moves_on_device(80, 30))},
        {"R36", "little", below, loop(60, moves_on_device(90, 10))},
        {"R36", "budget_allows", passes, loop(60, moves_on_device(80, 30)), half_may_move},
        {"R37", "fires", fires, allocates(1 << 20, managed)},
        {"R37", "small", below, allocates(1 << 19, managed)},
        {"R37", "device_memory", passes, allocates(1 << 20, memory_kind::device)},
        {"R40", "fires", fires, loop(40, allocates_and_frees())},
        {"R40", "few", below, loop(19, allocates_and_frees())},
        {"R40", "one_slow_call", fires, loop(40, allocates_and_frees(60000))},
        {"R40", "from_a_pool", passes, loop(40, takes_from_a_pool())},
        {"R41", "fires", fires, loop(20, trims(6)), {}, 20},
        {"R41", "four_frees", below, loop(20, trims(4))},
        {"R41", "at_the_end", passes, frees_at_the_end},
        {"R42", "fires", fires, then_plain(10, [](s x) { x.on("a.py:1").allocate(10, 2).release().allocate(); })},
        {"R42", "nothing_freed", below, then_plain(10, [](s x) { x.on("a.py:1").allocate(10, 2).allocate(); })},
        {"R42", "no_failure", passes, then_plain(10, [](s x) { x.on("a.py:1").allocate().release().allocate(); })},
        {"R46", "fires", fires, grows(6, copied::yes)},
        {"R46", "three_times", below, grows(4, copied::yes)},
        {"R46", "nothing_copied", exempt, grows(6, copied::no)},
    };
}

}  // namespace kiln::audit::testing
