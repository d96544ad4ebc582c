// SPDX-License-Identifier: Apache-2.0
// odd-names: prints where each kernel came from and its name.
#include <cerrno>

#include "odd_names_kernels.hpp"

#include <kiln/engine.hpp>

#include <cstdio>

int main() try {
    namespace kernels = odd_names_kernels;
    auto const target = kiln::target::parse("sm_80").value();
    for (auto const* unit :
         {&kernels::c__(), &kernels::v_1(), &kernels::v_2(), &kernels::linux_(), &kernels::errno_()}) {
        auto const got = kiln::engine::process().artifact_sync(*unit, target).value();
        std::printf("%s %s\n", name_of(got.from).data(), got.what->kernels.at(0).name.c_str());
    }
    return 0;
} catch (kiln::error const& e) {
    std::printf("%s: %s\n", name_of(e.code()).data(), e.what());
    return 1;
}
