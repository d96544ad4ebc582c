// SPDX-License-Identifier: Apache-2.0
#include "prims/arena.hpp"

namespace kiln::bench {

namespace {

unit const filler{.name = "bench_fill",
                  .source = R"(
typedef unsigned long long u64;
extern "C" __global__ void bench_fill(void* to, int width, int how, u64 n, u64 by) {
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) {
        u64 m = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull + 0x9e3779b97f4a7c15ull;
        m = (m ^ (m >> 27)) * 0x94d049bb133111ebull;
        m ^= m >> 31;
        u64 const v = how == 0 ? m : how == 1 ? i : how == 2 ? m % by : how == 3 ? i * by : how == 4 ? i * by + 3 : i / by;
        if (width == 0) static_cast<double*>(to)[i] = double(v);
        if (width == 1) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(v);
        if (width == 4) static_cast<unsigned*>(to)[i] = unsigned(v);
        if (width == 8) static_cast<u64*>(to)[i] = v;
    }
}
)",
                  .kernels = {"bench_fill"}};

}  // namespace

arena::arena(std::size_t n)
    : most{n},
      on{stream::make().value()},
      keys{device_memory::make(n * 8).value()},
      values{device_memory::make(n * 8).value()},
      keys_out{device_memory::make(n * 8).value()},
      values_out{device_memory::make(n * 8).value()},
      mask{device_memory::make(n).value()},
      offsets{device_memory::make((n + 1) * 4).value()},
      count{device_memory::make(256).value()},
      scratch{device_memory::make(n * 16 + (std::size_t{64} << 20)).value()},
      fill_{engine::process()
                .get_sync(filler)
                .value()
                .kernel<void(void*, int, int, unsigned long long, unsigned long long)>("bench_fill")
                .value()} {}

void arena::run_fill(void* to, std::size_t width, pattern how, std::size_t n, std::uint64_t by) {
    if (n == 0) return;
    fill_(on, {{static_cast<unsigned>(std::min<std::size_t>((n + 255) / 256, 4096))}, {256}}, to,
          static_cast<int>(width), static_cast<int>(how), n, by)
        .value();
}

}  // namespace kiln::bench
