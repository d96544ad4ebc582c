// SPDX-License-Identifier: Apache-2.0
// A program that links libkiln.a and the toy pack and calls neither: it knows a name of each pack, and what it was linked with
// must have them. Compiling is forbidden by whoever runs it.
#include <kiln/catalogue.hpp>

#include <cstdio>

int main() {
    auto const sm90 = kiln::target::parse("sm_90").value();
    int missing = 0;
    for (auto const* const name : {"toy_double_f32", "exclusive_scan_i32", "tropical_maxplus_f32_nn"}) {
        auto const got = kiln::artifact_of_sync(name, sm90);
        std::printf("%s: %s\n", name, got ? std::string{kiln::name_of(got->from)}.c_str() : got.error().what());
        if (!got || got->from != kiln::provenance::bundle) ++missing;
    }
    return missing;
}
