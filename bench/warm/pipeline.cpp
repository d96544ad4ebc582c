// SPDX-License-Identifier: Apache-2.0
#include "warm/pipeline.hpp"

#include <kiln/prims/handles.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <unistd.h>
#include <vector>

extern "C" bool kiln_profile_is_on();

namespace kiln::bench_warm {

namespace {

constexpr std::size_t n = 1 << 20;

// Where the time went, for whoever asks: "stamped" prints milliseconds since the process began.
class stamps {
public:
    explicit stamps(bool wanted) : wanted_{wanted} {}
    void operator()(char const* what) const {
        if (wanted_) std::fprintf(stderr, "%8.2f ms  %s\n", since_start_ms(), what);
    }

private:
    [[nodiscard]] static double since_start_ms() {
        std::ifstream stat{"/proc/self/stat"};
        std::string word;
        for (int i = 0; i < 22; ++i) stat >> word;  // the program's name has no space
        timespec now{};
        ::clock_gettime(CLOCK_BOOTTIME, &now);
        auto const ticks = static_cast<double>(std::stoull(word)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
        return (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - ticks) * 1e3;
    }
    bool wanted_;
};

struct operators {
    bool stamped = false;
    op sum = plus;
    bool by_comparison = false;
    prim_route route = prim_route::automatic;
};

int run_pipeline(operators const& with) {
    stamps const stamp{with.stamped};
    stamp("main");
    prim_options how;
    how.route = with.route;
    if (with.stamped) (void)devices(), stamp("devices known");
    if (with.stamped) (void)stream::make(), stamp("context made");
    auto const scan = exclusive_scan<int>(with.sum, how).value();
    stamp("scan");
    auto const total = reduce<int>(with.sum, how).value();
    stamp("reduce");
    std::vector<int> in(n);
    for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<int>((i * 7919) % 3);
    auto const s = stream::make().value();
    auto a = device_memory::make(n * sizeof(int)).value();
    auto b = device_memory::make(n * sizeof(int)).value();
    auto v = device_memory::make(n * sizeof(int)).value();
    auto w = device_memory::make(n * sizeof(int)).value();
    auto sum = device_memory::make(sizeof(int)).value();
    stamp("memory");
    a.upload_sync(s, in).value();
    v.upload_sync(s, in).value();
    stamp("data there");
    sort_arguments<int, int> const what{
        .keys_in = {a.as<int>(), n}, .keys_out = b.as<int>(), .values_in = v.as<int>(), .values_out = w.as<int>()};
    if (with.by_comparison) merge_sort<int, int>(op{"a < b ? true : false"}, how).value()(s, what).value();
    else radix_sort<int, int>(sort_order::ascending, how).value()(s, what).value();
    stamp("sort queued");
    scan(s, {b.as<int>(), n}, {a.as<int>(), n}).value();
    total(s, {b.as<int>(), n}, sum.as<int>()).value();
    std::vector<int> scanned(n), result(1);
    a.download_sync(s, scanned).value();
    sum.download_sync(s, result).value();
    stamp("result there");
    long expected = 0;
    for (auto const x : in) expected += x;
    bool const right = result[0] == expected && scanned[0] == 0 && scanned[n - 1] == expected - 2;
    if (!right) std::fprintf(stderr, "wrong: %d, expected %ld\n", result[0], expected);
    return right ? 0 : 1;
}

}  // namespace

int run_child(std::string const& mode) {
    (void)kiln_profile_is_on();
    if (mode == "context") return stream::make() ? 0 : 1;
    if (mode == "named" || mode == "stamped") return run_pipeline({.stamped = mode == "stamped"});
    operators own{.sum = op{"a + b + 0"}, .by_comparison = true};
    if (mode == "plain") own.route = prim_route::full;
    return run_pipeline(own);
}

}  // namespace kiln::bench_warm
