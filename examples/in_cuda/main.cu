// SPDX-License-Identifier: Apache-2.0
// Kiln inside a program of CUDA's own: its kernels, compiled by nvcc and launched with <<<>>>, in turn with Kiln's primitives
// and products, on one stream. Towns lie on a ring, a road of length 1 between neighbours. Which towns are near which?
//
//     road lengths (ours) -> all distances (min-plus products) -> how many are near (ours) -> offsets (scan) -> lists (ours)
//
//     cmake -S examples/in_cuda -B build/in_cuda -DCMAKE_PREFIX_PATH=<where Kiln is> && cmake --build build/in_cuda
#include <kiln/prims/handles.hpp>
#include <kiln/tropical/product.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

__global__ void write_roads(float* length, int towns) {
    int const i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= towns * towns) return;
    int const apart = abs(i / towns - i % towns);
    bool const neighbours = apart == 1 || apart == towns - 1;
    length[i] = apart == 0 ? 0.0F : neighbours ? 1.0F : INFINITY;
}

__global__ void count_near(float const* distance, int towns, float limit, int* count) {
    int const from = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (from > towns) return;
    count[from] = 0;  // one more than there are towns: the scan then ends with the sum
    for (int to = 0; from < towns && to < towns; ++to) count[from] += distance[from * towns + to] <= limit ? 1 : 0;
}

__global__ void list_near(float const* distance, int towns, float limit, int const* offset, int* list) {
    int const from = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (from >= towns) return;
    int at = offset[from];
    for (int to = 0; to < towns; ++to)
        if (distance[from * towns + to] <= limit) list[at++] = to;
}

// CUDA's statuses as the exceptions the rest of this program has.
void check(cudaError_t status) {
    if (status != cudaSuccess) throw kiln::error{kiln::errc::driver, cudaGetErrorString(status)};
}

template <class T>
class device_array {
public:
    explicit device_array(std::size_t n) : size_{n} { check(cudaMalloc(&data_, n * sizeof(T))); }
    ~device_array() { cudaFree(data_); }
    device_array(device_array const&) = delete;
    device_array& operator=(device_array const&) = delete;
    [[nodiscard]] T* data() const { return static_cast<T*>(data_); }
    [[nodiscard]] std::vector<T> on_host_sync(cudaStream_t stream) const {
        std::vector<T> out(size_);
        check(cudaMemcpyAsync(out.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        return out;
    }

private:
    std::size_t size_;
    void* data_ = nullptr;
};

unsigned blocks_for(int threads) { return static_cast<unsigned>((threads + 255) / 256); }

int run(cudaStream_t stream) {
    constexpr int towns = 500, near = 3;
    constexpr auto cells = std::size_t{towns} * towns;
    // Found, or compiled if need be, before anything is queued.
    auto const shorter = kiln::tropical::product<float>(kiln::tropical::semiring::min_plus).value();
    auto const scan = kiln::exclusive_scan<int>(kiln::plus).value();

    device_array<float> distance{cells}, next{cells};
    device_array<int> count{towns + 1}, offset{towns + 1};
    write_roads<<<blocks_for(towns * towns), 256, 0, stream>>>(distance.data(), towns);
    float *from = distance.data(), *to = next.data();
    for (int roads = 1; roads < towns; roads *= 2, std::swap(from, to))
        shorter(stream, {.m = towns, .n = towns, .k = towns}, {from}, {from}, {to}).value();
    count_near<<<blocks_for(towns + 1), 256, 0, stream>>>(from, towns, float{near}, count.data());
    scan(stream, {count.data(), towns + 1}, {offset.data(), towns + 1}).value();

    auto const offsets = offset.on_host_sync(stream);
    device_array<int> list{static_cast<std::size_t>(offsets.back())};
    list_near<<<blocks_for(towns), 256, 0, stream>>>(from, towns, float{near}, offset.data(), list.data());
    check(cudaGetLastError());
    auto const lists = list.on_host_sync(stream);

    bool right = offsets.back() == towns * (2 * near + 1);
    for (int i = 0; right && i < towns; ++i) {
        for (int at = offsets[i]; at < offsets[i + 1]; ++at) {
            int const apart = std::abs(lists[at] - i);
            right = right && std::min(apart, towns - apart) <= near;
        }
    }
    std::printf("%d towns, %d pairs no more than %d apart (expected %d): %s\n", towns, offsets.back(), near,
                towns * (2 * near + 1), right ? "right" : "WRONG");
    return right ? 0 : 1;
}

}  // namespace

int main() try {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("no GPU here: nothing was run\n");
        return 0;
    }
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream));
    int const status = run(stream);
    cudaStreamDestroy(stream);
    return status;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "in_cuda: %s\n%s", e.what(), e.log().c_str());
    return 1;
}
