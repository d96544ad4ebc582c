// SPDX-License-Identifier: Apache-2.0
// carries ARCH [KIND]: prints where the kernel came from and the step it was compiled with.
#ifdef IMAGES_ONLY
#include "sealed.hpp"
namespace shipped = sealed;
#else
#include "odd.hpp"
#include "shipped.hpp"
#endif

#include <kiln/engine.hpp>

#include <cstdio>
#include <cstring>

int main(int count, char** arguments) try {
    auto& engine = kiln::engine::process();
    auto const kind = kiln::parse_kind(count > 2 ? arguments[2] : "cubin").value();
    auto const target = kiln::target::parse(arguments[1], kind).value();
    auto const got = engine.artifact_sync(shipped::advance(), target).value();
    int step = 0;
    if (auto const* const found = got.what->find_constant("step")) std::memcpy(&step, found->bytes.data(), sizeof step);
    std::printf("%s %d\n", name_of(got.from).data(), step);
#ifndef IMAGES_ONLY
    if (got.from == kiln::provenance::bundle && kind == kiln::artifact_kind::cubin) {
        for (auto const* unit : {&odd::a_k(), &odd::b_k(), &odd::float_()}) {
            auto const odd = engine.artifact_sync(*unit, target).value();
            std::printf("%s %s\n", name_of(odd.from).data(), odd.what->kernels.at(0).name.c_str());
        }
    }
#endif
    return 0;
} catch (kiln::error const& e) {
    std::printf("%s: %s\n", name_of(e.code()).data(), e.what());
    return 1;
}
