// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"
#include "keeping.hpp"
#include "prims/catalogue.hpp"
#include "prims/routes.hpp"
#include "progress.hpp"
#include "tropical/units.hpp"
#include "unit_arguments.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace kiln::cli {

namespace {

struct build_arguments {
    unit_arguments what;
    std::string output;
    std::string sign;
    std::string title;
    std::vector<std::string> packs;
    bool as_json = false;
};

// A file, or a spec of a pack, for one target.
struct item {
    unit const* of = nullptr;
    prims::named_request const* spec = nullptr;
    target for_target;
    std::optional<result<obtained>> answer;
    store::address at{};  // of a spec

    [[nodiscard]] std::string const& name() const { return of != nullptr ? of->name : spec->about.name; }
};

result<store::entry_ptr> entry_of(engine::state& s, item const& i) {
    auto copy = *(*i.answer)->what;
    if (i.of != nullptr) {
        KILN_TRY(auto const order, s.order_for(*i.of, i.for_target));
        return store::entry_ptr{engine_detail::entry_for(order, copy, s.producer())};
    }
    auto out = std::make_shared<store::entry>();
    out->about = {.at = i.at,
                  .name = copy.unit,
                  .target = copy.target.arch.name(),
                  .kind = std::string{name_of(copy.target.kind)},
                  .toolchain = copy.toolchain,
                  .producer = s.producer(),
                  .licence = {}};
    out->payload = compile::encode(copy);
    return store::entry_ptr{std::move(out)};
}

// Specs take several steps each (template, operator, link), so they are driven by as many threads as there are workers.
void make_specs(engine& e, std::vector<item*> const& specs, std::shared_ptr<progress> const& bar) {
    std::atomic<std::size_t> next{0};
    auto const drive = [&] {
        for (auto n = next++; n < specs.size(); n = next++) {
            auto& i = *specs[n];
            auto found =
                prims::obtain(e, i.spec->what, i.for_target, prims::closeness::exact, prim_route::automatic, {});
            bar->step(fmt::format("{} {} {}", i.name(), i.for_target.arch.name(),
                                  found ? name_of(found->got.from) : "failed"));
            if (found) {
                i.at = found->at;
                i.answer = std::move(found->got);
            } else i.answer = std::move(found).error();
        }
    };
    std::vector<std::thread> threads;
    for (int n = 0; n < e.internals().pool->capacity(); ++n) threads.emplace_back(drive);
    for (auto& t : threads) t.join();
}

void make_units(engine& e, std::vector<item*> const& units, std::shared_ptr<progress> const& bar) {
    std::vector<pending<obtained>> waiting;
    for (auto const* i : units) {
        waiting.push_back(e.artifact(*i->of, i->for_target));
        waiting.back().then([bar, name = i->name(), arch = i->for_target.arch.name()](result<obtained> const& got) {
            bar->step(fmt::format("{} {} {}", name, arch, got ? name_of(got->from) : "failed"));
        });
    }
    for (std::size_t n = 0; n < units.size(); ++n) units[n]->answer = waiting[n].wait_sync(std::chrono::hours{24});
}

result<std::vector<prims::named_request const*>> specs_of(std::vector<std::string> const& packs) {
    std::vector<prims::named_request const*> out;
    for (auto const& pack : packs) {
        if (pack == "tropical") continue;  // plain units
        auto const before = out.size();
        for (auto const& r : prims::named_requests()) {
            if (r.about.pack == pack) out.push_back(&r);
        }
        if (out.size() == before)
            return fail(errc::not_found, "there is no pack '{}'; 'kiln list' shows what there is", pack);
    }
    return out;
}

json describe(item const& i) {
    json out{{"unit", i.name()}, {"target", i.for_target.arch.name()}, {"kind", name_of(i.for_target.kind)}};
    auto const& answer = *i.answer;
    if (answer)
        out.update({{"from", name_of(answer->from)},
                    {"ms", answer->ms},
                    {"bytes", answer->what->image.size()},
                    {"key", answer->what->key}});
    else out["error"] = answer.error().message();
    return out;
}

result<void> write_bundle(build_arguments const& a, engine::state& s, std::vector<item> const& items) {
    store::bundle_writer writer;
    writer.set("title", a.title.empty() ? a.output : a.title);
    writer.set("producer", s.producer());
    for (auto const& i : items) {
        if (!*i.answer) continue;
        KILN_TRY(auto const entry, entry_of(s, i));
        KILN_CHECK(writer.add(*entry));
    }
    if (a.sign.empty()) return writer.write(a.output);
    KILN_TRY(auto const key, store::private_key::load(a.sign));
    return writer.write(a.output, &key);
}

int run(build_arguments const& a) {
    if (a.what.files.empty() && a.packs.empty()) {
        complain("nothing to build: name files, or packs with --pack");
        return misused;
    }
    check_output(a.output).value();
    auto units = a.what.units().value();
    if (std::ranges::find(a.packs, "tropical") != a.packs.end())
        units.insert(units.end(), tropical::all_units().begin(), tropical::all_units().end());
    auto const targets = a.what.targets().value();
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();  // before the work, not after it
    auto const specs = specs_of(a.packs).value();
    std::vector<item> items;
    for (auto const& t : targets) {
        for (auto const& u : units) items.push_back({.of = &u, .spec = nullptr, .for_target = t, .answer = {}});
        for (auto const* r : specs) items.push_back({.of = nullptr, .spec = r, .for_target = t, .answer = {}});
    }
    std::vector<item*> of_files, of_packs;
    for (auto& i : items) (i.of != nullptr ? of_files : of_packs).push_back(&i);
    engine e{a.what.engine()};
    {
        auto const bar = std::make_shared<progress>("build", items.size());
        make_units(e, of_files, bar);
        if (!of_packs.empty()) make_specs(e, of_packs, bar);
    }
    std::size_t bad = 0;
    for (auto const& i : items) {
        if (*i.answer) continue;
        ++bad;
        complain(i.answer->error());
    }
    // A bundle with what did succeed is still of use; the exit status and the report say that it is not whole.
    if (bad < items.size()) write_bundle(a, e.internals(), items).value();
    keeping made;
    for (auto const& i : items) {
        if (*i.answer && i.of != nullptr) made.expect(e, *i.of, **i.answer);
    }
    made.complain_of_lost(e, keeping::chosen::silent);
    if (a.as_json) {
        json list = json::array();
        for (auto const& i : items) list.push_back(describe(i));
        print_json(
            json{{"bundle", a.output}, {"artifacts", items.size() - bad}, {"failed", bad}, {"items", std::move(list)}});
    } else {
        print(fmt::format("{}: {} of {} artifacts ({} units and specs, {} targets){}\n",
                          bad < items.size() ? a.output : "no bundle written", items.size() - bad, items.size(),
                          units.size() + specs.size(), targets.size(), a.sign.empty() ? "" : ", signed"));
    }
    return bad == 0 ? ok : failed;
}

}  // namespace

void add_build(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<build_arguments>();
    auto* const app = add_command(root, "build");
    arguments->what.add_to(*app, unit_arguments::files_are::optional);
    app->add_option("--pack", arguments->packs, "packs");
    app->add_option("-o,--output", arguments->output, "bundle to write")->required();
    app->add_option("--sign", arguments->sign, "private key");
    app->add_option("--title", arguments->title, "what the bundle is called");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
