// SPDX-License-Identifier: Apache-2.0
// The pipeline of bench_warm with CUB as nvcc compiles it: what a program pays that compiles nothing at run time.
#include <cub/cub.cuh>

#include <chrono>
#include <cstdio>
#include <vector>

int main(int count, char**) {
    // With any argument: where the time went since main.
    auto const begin = std::chrono::steady_clock::now();
    auto const stamp = [&](char const* what) {
        std::chrono::duration<double, std::milli> const ms = std::chrono::steady_clock::now() - begin;
        if (count > 1) std::fprintf(stderr, "%8.2f ms  %s\n", ms.count(), what);
    };
    constexpr int n = 1 << 20;
    std::vector<int> in(n);
    for (long i = 0; i < n; ++i) in[i] = static_cast<int>((i * 7919) % 3);
    int *a, *b, *v, *w, *sum;
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    stamp("context made");
    for (auto** p : {&a, &b, &v, &w}) cudaMalloc(p, n * sizeof(int));
    cudaMalloc(&sum, sizeof(int));
    stamp("memory");
    cudaMemcpyAsync(a, in.data(), n * sizeof(int), cudaMemcpyHostToDevice, s);
    cudaMemcpyAsync(v, in.data(), n * sizeof(int), cudaMemcpyHostToDevice, s);
    stamp("data there");
    void* scratch = nullptr;
    std::size_t most = 0, bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, a, b, v, w, n, 0, 32, s);
    most = bytes;
    cub::DeviceScan::ExclusiveSum(nullptr, bytes, b, a, n, s);
    most = bytes > most ? bytes : most;
    cub::DeviceReduce::Sum(nullptr, bytes, b, sum, n, s);
    most = bytes > most ? bytes : most;
    cudaMalloc(&scratch, most);
    stamp("scratch there");
    bytes = most, cub::DeviceRadixSort::SortPairs(scratch, bytes, a, b, v, w, n, 0, 32, s);
    stamp("sort queued");
    bytes = most, cub::DeviceScan::ExclusiveSum(scratch, bytes, b, a, n, s);
    bytes = most, cub::DeviceReduce::Sum(scratch, bytes, b, sum, n, s);
    std::vector<int> scanned(n);
    int total = 0;
    cudaMemcpyAsync(scanned.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost, s);
    cudaMemcpyAsync(&total, sum, sizeof(int), cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    stamp("result there");
    long expected = 0;
    for (int const x : in) expected += x;
    bool const right = total == expected && scanned[0] == 0 && scanned[n - 1] == expected - 2;
    if (!right) std::fprintf(stderr, "wrong: %d, expected %ld\n", total, expected);
    return right ? 0 : 1;
}
