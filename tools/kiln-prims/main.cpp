// SPDX-License-Identifier: Apache-2.0
//
// kiln-prims FOLDER CUBIN_ARCHS TEMPLATE_ARCHS: a step of Kiln's own build, not a tool for users. Architectures are numbers
// with commas; "-" stands for none.
#include "product_builder.hpp"

#include "base/clock.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

kiln::result<std::vector<kiln::arch>> archs_of(std::string_view text) {
    std::vector<kiln::arch> out;
    while (!text.empty() && text != "-") {
        auto const comma = std::min(text.find(','), text.size());
        KILN_TRY(auto const a, kiln::arch::parse(text.substr(0, comma)));
        out.push_back(a);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return out;
}

kiln::result<void> build(char const* const* arguments) {
    kiln::prims_tool::product_plan plan;
    plan.folder = arguments[1];
    KILN_TRY(plan.cubin_archs, archs_of(arguments[2]));
    KILN_TRY(plan.template_archs, archs_of(arguments[3]));
    plan.threads = std::max(2U, std::thread::hardware_concurrency());
    kiln::base::stopwatch const watch;
    auto& engine = kiln::engine::process();
    KILN_TRY(auto const reports, kiln::prims_tool::build_products(engine, plan));
    engine.flush_sync();
    for (auto const& r : reports) std::printf("%-20s %4zu entries %8zu bytes\n", r.name.c_str(), r.entries, r.bytes);
    auto const status = engine.status();
    std::printf("%llu found, %llu compiled, %.1f s\n",
                static_cast<unsigned long long>(status.from_disk + status.from_memory),
                static_cast<unsigned long long>(status.compiled), watch.ms() / 1000);
    return {};
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: kiln-prims FOLDER CUBIN_ARCHS TEMPLATE_ARCHS\n");
        return 2;
    }
    auto const built = build(arguments);
    if (built) return 0;
    std::fprintf(stderr, "kiln-prims: %s\n%s\n", built.error().what(), built.error().log().c_str());
    std::fprintf(stderr,
                 "-DKILN_PRIMS_PRODUCTS=OFF builds Kiln without them: everything is then compiled at first use\n");
    return 1;
}
