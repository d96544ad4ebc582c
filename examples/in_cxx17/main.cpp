// SPDX-License-Identifier: Apache-2.0
// Kiln from C++17, by its C interface: owners are a unique_ptr with the right function, a kernel is there before it is needed,
// and what happens is heard. Exits with 0 if what was computed is right, with 77 where there is no GPU to compute it.
#include <kiln/kiln.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#if __cplusplus >= 202002L
#error "this example shows that C++17 is enough"
#endif

namespace {

template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* what) const noexcept {
        Free(what);
    }
};
using loaded_unit = std::unique_ptr<kiln_loaded, freed_by<kiln_loaded_free>>;
using kernel = std::unique_ptr<kiln_kernel, freed_by<kiln_kernel_free>>;
using stream = std::unique_ptr<kiln_stream, freed_by<kiln_stream_free>>;
using memory = std::unique_ptr<kiln_memory, freed_by<kiln_memory_free>>;
using subscription = std::unique_ptr<kiln_subscription, freed_by<kiln_subscription_free>>;

struct failure : std::runtime_error {
    explicit failure(kiln_error* why)
        : runtime_error{std::string{kiln_error_message(why)} + "\n" + kiln_error_log(why)}, code{kiln_error_code(why)} {
        kiln_error_free(why);
    }
    kiln_code code;
};

void check(kiln_error* why) {
    if (why != nullptr) throw failure{why};
}

// Calls a function that makes something, and owns what it made.
template <class Owner, class Make, class... Args>
Owner make(Make function, Args... args) {
    typename Owner::pointer made = nullptr;
    check(function(args..., &made));
    return Owner{made};
}

char const* const source = R"(
    template <class T> __global__ void add(T const* a, T const* b, T* out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = a[i] + b[i];
    })";

int run() {
    std::atomic<int> heard{0};
    auto const listening = make<subscription>(
        kiln_subscribe,
        [](kiln_event const* e, void* count) {
            if (e->kind == KILN_EVENT_FOUND || e->kind == KILN_EVENT_COMPILED) ++*static_cast<std::atomic<int>*>(count);
        },
        static_cast<void*>(&heard));

    char const* const kernels[] = {"add<double>"};
    kiln_unit unit = KILN_UNIT_INIT;
    unit.name = "add";
    unit.source = source;
    unit.kernels = kernels;
    unit.kernel_count = 1;

    // Said early, it is compiled while the program does something else. Where there is no GPU, for the target that is named.
    char const* const archs[] = {"sm_90"};
    kiln_demand_options early = KILN_DEMAND_OPTIONS_INIT;
    early.consumer = "example";
    kiln_device_info device = KILN_DEVICE_INFO_INIT;
    kiln_error* const no_device = kiln_device(0, &device);
    if (no_device != nullptr) {
        kiln_error_free(no_device);
        early.archs = archs;
        early.arch_count = 1;
    }
    check(kiln_demand(nullptr, &unit, 1, nullptr, 0, &early, nullptr));

    if (no_device != nullptr) {
        kiln_artifact* made = nullptr;
        check(kiln_artifact_sync(nullptr, &unit, "sm_90", KILN_CUBIN, nullptr, &made));
        std::printf("no GPU; '%s' is compiled, heard %d events\n", kiln_artifact_unit(made), heard.load());
        kiln_artifact_free(made);
        return 77;
    }

    constexpr int n = 100'000;
    std::vector<double> a(n), b(n), sums(n);
    for (int i = 0; i < n; ++i) a[i] = i, b[i] = 0.5 * i;

    auto const on = make<stream>(kiln_stream_make, 0);
    auto* const queue = kiln_stream_handle(on.get());
    auto const bytes = n * sizeof(double);
    auto const first = make<memory>(kiln_memory_make, bytes, 0);
    auto const second = make<memory>(kiln_memory_make, bytes, 0);
    auto const out = make<memory>(kiln_memory_make, bytes, 0);
    check(kiln_memory_upload_sync(first.get(), queue, a.data(), bytes));
    check(kiln_memory_upload_sync(second.get(), queue, b.data(), bytes));

    auto const loaded = make<loaded_unit>(kiln_get_sync, nullptr, &unit, 0, nullptr);
    auto const add = make<kernel>(kiln_loaded_kernel, loaded.get(), "add<double>");
    void *x = kiln_memory_address(first.get()), *y = kiln_memory_address(second.get()),
         *z = kiln_memory_address(out.get());
    int count = n;
    void* arguments[] = {&x, &y, &z, &count};
    kiln_launch shape = KILN_LAUNCH_INIT;
    shape.grid[0] = (n + 255) / 256;
    shape.block[0] = 256;
    check(kiln_kernel_launch(add.get(), queue, &shape, arguments));
    check(kiln_memory_download_sync(out.get(), queue, sums.data(), bytes));

    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += sums[i] != 1.5 * i;
    std::printf("%d sums on %s, %d wrong; heard %d events\n", n, device.name, wrong, heard.load());
    return wrong == 0 && heard > 0 ? 0 : 1;
}

}  // namespace

int main() {
    try {
        return run();
    } catch (failure const& why) {
        std::fprintf(stderr, "%s: %s\n", kiln_code_name(why.code), why.what());
        return why.code == KILN_NO_DEVICE ? 77 : 1;
    }
}
