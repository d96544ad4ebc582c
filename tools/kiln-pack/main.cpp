// SPDX-License-Identifier: Apache-2.0
//
// kiln-pack PACK INSIDE BESIDE ARCHS ARCHS_BESIDE [SUFFIX]: makes what ships of a pack, as a step of Kiln's own build and not a tool
// for users. INSIDE is the folder for what becomes part of libkiln, BESIDE the one for bundles beside it; architectures are
// numbers with commas; SUFFIX tells bundles beside it apart that another CUDA made. The build links it once per pack (cmake/KilnPacks.cmake), without what it makes.
#include "base/clock.hpp"
#include "workshop/pack_tool.hpp"

#include <cstdio>
#include <thread>

namespace {

using namespace kiln;

result<std::vector<arch>> archs_of(std::string_view text) {
    std::vector<arch> out;
    while (!text.empty()) {
        auto const comma = std::min(text.find(','), text.size());
        KILN_TRY(auto const a, arch::parse(text.substr(0, comma)));
        out.push_back(a);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return out;
}

result<void> build(char const* const* arguments) {
    KILN_TRY(auto const* const pack, engine_detail::pack_named(arguments[1]));
    workshop::product_plan plan;
    KILN_TRY(plan.archs, archs_of(arguments[4]));
    KILN_TRY(plan.archs_beside, archs_of(arguments[5]));
    plan.threads = std::max(2U, std::thread::hardware_concurrency());
    workshop::product_files::places const to{
        .inside = arguments[2], .beside = arguments[3], .suffix = arguments[6] != nullptr ? arguments[6] : ""};
    // What an earlier build left would be found as shipped, and shipped things do not tell what they were made from.
    std::error_code ignored;
    for (auto const a : plan.archs_beside)
        std::filesystem::remove(to.beside / workshop::name_beside(pack->name(), a, to.suffix), ignored);
    base::stopwatch const watch;
    auto& engine = engine::process();
    workshop::product_files files;
    KILN_CHECK(workshop::tool_of(*pack).make_products(engine, *pack, plan, files));
    KILN_TRY(auto const reports, files.write(pack->name(), to));
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
    if (count != 6 && count != 7) {
        std::fprintf(stderr, "usage: kiln-pack PACK INSIDE BESIDE ARCHS ARCHS_BESIDE [SUFFIX]\n");
        return 2;
    }
    auto const built = build(arguments);
    if (built) return 0;
    std::fprintf(stderr, "kiln-pack %s: %s\n%s\n", arguments[1], built.error().what(), built.error().log().c_str());
    std::fprintf(stderr,
                 "-DKILN_PRODUCTS=OFF builds Kiln without what ships: everything is then compiled at first use\n");
    return 1;
}
