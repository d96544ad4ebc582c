// SPDX-License-Identifier: Apache-2.0
// The pipeline of bench_warm with CUB as nvcc compiles it: what a program pays that compiles nothing at run time.
#include <cub/cub.cuh>

#include <cstdio>
#include <vector>

int main() {
    constexpr int n = 1 << 20;
    std::vector<int> in(n);
    for (long i = 0; i < n; ++i) in[i] = static_cast<int>((i * 7919) % 3);
    int *a, *b, *v, *w, *sum;
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (auto** p : {&a, &b, &v, &w}) cudaMalloc(p, n * sizeof(int));
    cudaMalloc(&sum, sizeof(int));
    cudaMemcpyAsync(a, in.data(), n * sizeof(int), cudaMemcpyHostToDevice, s);
    cudaMemcpyAsync(v, in.data(), n * sizeof(int), cudaMemcpyHostToDevice, s);
    void* scratch = nullptr;
    std::size_t most = 0, bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, a, b, v, w, n, 0, 32, s);
    most = bytes;
    cub::DeviceScan::ExclusiveSum(nullptr, bytes, b, a, n, s);
    most = bytes > most ? bytes : most;
    cub::DeviceReduce::Sum(nullptr, bytes, b, sum, n, s);
    most = bytes > most ? bytes : most;
    cudaMalloc(&scratch, most);
    bytes = most, cub::DeviceRadixSort::SortPairs(scratch, bytes, a, b, v, w, n, 0, 32, s);
    bytes = most, cub::DeviceScan::ExclusiveSum(scratch, bytes, b, a, n, s);
    bytes = most, cub::DeviceReduce::Sum(scratch, bytes, b, sum, n, s);
    std::vector<int> scanned(n);
    int total = 0;
    cudaMemcpyAsync(scanned.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost, s);
    cudaMemcpyAsync(&total, sum, sizeof(int), cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    long expected = 0;
    for (int const x : in) expected += x;
    bool const right = total == expected && scanned[0] == 0 && scanned[n - 1] == expected - 2;
    if (!right) std::fprintf(stderr, "wrong: %d, expected %ld\n", total, expected);
    return right ? 0 : 1;
}
