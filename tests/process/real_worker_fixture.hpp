// SPDX-License-Identifier: Apache-2.0
// The real kiln-worker with the real compiler. Skipped, by name, where there is no NVRTC.
#pragma once

#include "compile/toolchain.hpp"
#include "pool_fixture.hpp"

namespace kiln::compile::testing {

class real_worker_test : public worker_pool_test {
protected:
    toolchain_paths tools_;

    void SetUp() override {
        auto environment = cuda::search_environment::process(base::config::load());
        environment.kiln_cuda_path = KILN_TEST_CUDA_PATH;
        tools_ = find_toolchain(cuda::library_search{environment});
        if (tools_.nvrtc.empty()) GTEST_SKIP() << "NVRTC is not installed";
    }
    void open_real(int workers, std::uint64_t memory = std::uint64_t{4} << 30) {
        auto o = options(workers);
        o.worker = KILN_TEST_WORKER;
        o.worker_memory = memory;
        open(std::move(o));
    }
};

}  // namespace kiln::compile::testing
