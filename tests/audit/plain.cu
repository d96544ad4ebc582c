// SPDX-License-Identifier: Apache-2.0
// Programs for `kiln audit`: plain NAME [TIMES]. "embedded_ptx" wants a build with PTX alone, the others one for the GPU.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define MUST(call)                                                            \
    if (auto const status = (call); status != cudaSuccess) {                  \
        std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(status));    \
        return 1;                                                             \
    }

__global__ void nothing() {}
__global__ void spin(long long cycles) {
    long long const begin = clock64();
    while (clock64() - begin < cycles) {}
}
__global__ void long_text(float* values) {
    float a = values[threadIdx.x], b = a + 1;
#pragma unroll
    for (int i = 0; i < 4000; ++i) {
        a = a * b + static_cast<float>(i);
        b = b * a + 0.5f * static_cast<float>(i);
    }
    values[threadIdx.x] = a + b;
}

static int embedded_ptx(int) {
    float* values = nullptr;
    float host[32];
    MUST(cudaMalloc(&values, sizeof host));
    long_text<<<1, 32>>>(values);
    MUST(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
    return 0;
}

static int synchronous(int times) {
    float *values = nullptr, host[1024];
    cudaStream_t streams[2];
    MUST(cudaMalloc(&values, sizeof host));
    for (auto& stream : streams) MUST(cudaStreamCreate(&stream));
    for (int i = 0; i < times; ++i) {
        for (auto stream : streams) {
            spin<<<8, 100, 0, stream>>>(200000);
            MUST(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
        }
        spin<<<1, 256>>>(100000);
    }
    MUST(cudaDeviceSynchronize());
    return 0;
}

static int launches(int times) {
    double best = 1e9;
    for (int i = 0; i < 200; ++i) nothing<<<1, 32>>>();
    MUST(cudaDeviceSynchronize());
    for (int round = 0; round < 5; ++round) {
        auto const begin = std::chrono::steady_clock::now();
        for (int i = 0; i < times; ++i) nothing<<<1, 32>>>();
        MUST(cudaDeviceSynchronize());
        auto const took = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
        best = took < best ? took : best;
    }
    std::printf("one launch %.3f us\n", best / times);
    return 0;
}

int main(int count, char** words) {
    char const* const name = count > 1 ? words[1] : "synchronous";
    int const times = count > 2 ? std::atoi(words[2]) : 100;
    int const status = !std::strcmp(name, "embedded_ptx") ? embedded_ptx(times) : !std::strcmp(name, "launches") ? launches(times) : synchronous(times);
    std::printf("done %s\n", name);
    return status;
}
