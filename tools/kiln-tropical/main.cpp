// SPDX-License-Identifier: Apache-2.0
//
// kiln-tropical BUNDLE ARCHS: a step of Kiln's own build, not a tool for users. Compiles every unit of the tropical pack for
// the architectures, numbers with commas, through the cache, and writes the bundle that libkiln carries.
#include "base/clock.hpp"
#include "engine/engine_state.hpp"
#include "store/bundle.hpp"
#include "tropical/units.hpp"

#include <cstdio>
#include <filesystem>

namespace {

using namespace kiln;

result<std::vector<target>> targets_of(std::string_view text) {
    std::vector<target> out;
    while (!text.empty()) {
        auto const comma = std::min(text.find(','), text.size());
        KILN_TRY(auto const t, target::parse(text.substr(0, comma)));
        out.push_back(t);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return out;
}

result<void> build(std::string const& file, std::string_view archs) {
    KILN_TRY(auto const targets, targets_of(archs));
    base::stopwatch const watch;
    auto& engine = kiln::engine::process();
    struct item {
        unit const* of;
        target for_target;
        pending<obtained> made;
    };
    std::vector<item> items;
    for (auto const& t : targets) {
        for (auto const& u : tropical::all_units()) items.push_back({&u, t, engine.artifact(u, t)});
    }
    store::bundle_writer writer{store::packing::where_it_pays};
    writer.set("title", "tropical");
    writer.set("producer", engine.internals().producer());
    std::size_t bytes = 0;
    for (auto const& i : items) {
        KILN_TRY(auto const got, i.made.wait_sync(std::chrono::hours{1}));
        KILN_TRY(auto const order, engine.internals().order_for(*i.of, i.for_target));
        auto copy = *got.what;
        bytes += copy.image.size();
        KILN_CHECK(writer.add(*engine_detail::entry_for(order, copy, engine.internals().producer())));
    }
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path{file}.parent_path(), failed);
    KILN_CHECK(writer.write(file));
    engine.flush_sync();
    std::printf("%zu artifacts, %zu bytes of images, %llu compiled, %.1f s\n", items.size(), bytes,
                static_cast<unsigned long long>(engine.status().compiled), watch.ms() / 1000);
    return {};
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: kiln-tropical BUNDLE ARCHS\n");
        return 2;
    }
    auto const built = build(arguments[1], arguments[2]);
    if (built) return 0;
    std::fprintf(stderr, "kiln-tropical: %s\n%s\n", built.error().what(), built.error().log().c_str());
    return 1;
}
