// SPDX-License-Identifier: Apache-2.0
#include "making.hpp"

#include "arch_words.hpp"
#include "engine/pack_verbs.hpp"
#include "progress.hpp"
#include "warmup/director.hpp"

#include <kiln/plan.hpp>

#include <map>
#include <set>

namespace kiln::cli {

namespace {

using engine_detail::made_artifact;
using engine_detail::recipe;

result<made_artifact> fetch(engine& e, thing const& t) {
    if (t.by.kind != "unit") {
        auto const* const p = engine_detail::find_pack(t.by.kind);
        if (p == nullptr) return fail(errc::not_found, "'{}': there is no pack '{}' here", t.by.name, t.by.kind);
        return p->make(e, t.by, t.for_target, {});
    }
    KILN_TRY(auto const u, engine_detail::unit_of(t.by));
    return engine_detail::make_unit(e, u, t.for_target, {});
}

result<want> want_of(recipe const& r) {
    if (r.kind != "unit") return want::from_recipe(std::make_shared<recipe const>(r));
    KILN_TRY(auto u, engine_detail::unit_of(r));
    return want{std::make_shared<unit const>(std::move(u))};
}

std::string in_words(progress_report const& r) {
    auto out = fmt::format("{} {}", r.name, name_of(r.state));
    if (r.remaining_ms >= 500) out += fmt::format(", about {:.0f} s left", r.remaining_ms * 1e-3);
    return out;
}

base::digest identity_of(engine& e, thing const& t) {
    auto const u = t.by.kind == "unit" ? engine_detail::unit_of(t.by) : result<unit>{error{errc::not_found, {}}};
    auto const order = u ? e.internals().order_for(*u, t.for_target) : result<engine_detail::order>{u.error()};
    return order ? engine_detail::identity_of(order->subject) : base::digest{};
}

void take_status(engine& e, thing& t) {
    auto const seen = e.internals().book.find({t.by.name, identity_of(e, t)}, t.for_target.arch.name());
    if (!seen) return;
    t.from = seen->from;
    t.ready_ms = seen->ready_ms;
    t.compile_ms = seen->compile_ms;
}

}  // namespace

result<std::vector<recipe>> recipes_named(std::vector<std::string> const& names) {
    std::vector<recipe> out;
    for (auto const& n : names) {
        auto r = engine_detail::find_recipe(n);
        if (!r) return fail(errc::invalid_argument, "{}", r.error().message());
        out.push_back(*std::move(r));
    }
    return out;
}

result<std::vector<recipe>> recipes_of_pack(std::string const& pack) {
    KILN_TRY(auto const* const p, engine_detail::pack_named(pack));
    return p->recipes();
}

std::vector<recipe> recipes_of_everything() {
    std::vector<recipe> out;
    for (auto const* p : engine_detail::packs()) {
        for (auto& r : p->recipes()) out.push_back(std::move(r));
    }
    return out;
}

namespace {

// Where a cubin was used, a word may ask for PTX instead. Any other kind is what the program needs.
result<std::vector<target>> targets_for(warmup::profile_use const& u, std::vector<std::string> const& archs) {
    KILN_TRY(auto const kind, parse_kind(u.kind));
    if (!archs.empty())
        return targets_of_words(archs, kind == artifact_kind::cubin ? std::nullopt : std::optional{kind});
    KILN_TRY(auto const recorded, target::parse(u.arch, kind));
    return std::vector{recorded};
}

}  // namespace

result<std::vector<thing>> things_of(warmup::profile const& from, std::vector<std::string> const& archs) {
    std::vector<thing> out;
    std::set<std::tuple<base::digest, std::string, artifact_kind>> done;
    std::map<std::pair<std::string, std::string>, std::vector<target>> targets;  // by architecture and kind of a use
    auto const costs = from.costs_ms();
    for (auto const& u : from.uses) {
        auto const [known, is_new] = targets.try_emplace({archs.empty() ? u.arch : "", u.kind});
        if (is_new) {
            KILN_TRY(known->second, targets_for(u, archs));
        }
        for (auto const& t : known->second) {
            if (!done.emplace(u.recipe, t.arch.name(), t.kind).second) continue;
            out.push_back({.by = from.recipes.at(u.recipe), .for_target = t, .expected_ms = costs.at(u.recipe)});
        }
    }
    return out;
}

namespace {

// Each thing is demanded by itself: names are for people, and what becomes of one says nothing about another.
void bring_in(engine& e, std::vector<thing>& things, std::string const& title) {
    auto const by = warmup::director::of(e);
    auto const bar = std::make_shared<progress>(title, things.size());
    auto const token = on_progress([bar](progress_report const& r) { bar->step(in_words(r)); }, e);
    for (auto const& t : things) by->progress().expect(t.by.name, t.expected_ms);
    std::vector<std::pair<thing*, demanded>> under_way;
    for (auto& t : things) {
        auto w = want_of(t.by);
        if (!w) {
            t.answer = std::move(w).error();
            bar->step(t.by.name + " failed");
            continue;
        }
        demand_options how;
        how.targets = {t.for_target};
        how.how = priority::blocking;  // whoever runs this waits for it
        how.consumer = "kiln " + title;
        how.engine = &e;
        under_way.emplace_back(&t, demand({*std::move(w)}, std::move(how)));
    }
    for (auto const& [t, batch] : under_way) {
        (void)by->wait_until(*batch.internals(), base::clock::now() + std::chrono::hours{24});
        auto const report = by->cold(*batch.internals());
        if (!report.cold.empty())
            t->answer =
                error{report.cold[0].code.value_or(errc::internal), report.cold[0].why}.with_log(report.cold[0].log);
    }
}

}  // namespace

std::size_t make_all(engine& e, std::vector<thing>& things, std::string const& title) {
    bring_in(e, things, title);
    std::size_t bad = 0;
    for (auto& t : things) {
        take_status(e, t);
        if (!t.answer) t.answer = fetch(e, t);
        if (*t.answer && !t.from) t.from = (*t.answer)->got.from;
        bad += *t.answer ? 0 : 1;
    }
    return bad;
}

result<void> write_bundle(engine& e, std::vector<thing> const& things, std::string const& file,
                          std::string const& sign) {
    auto& s = e.internals();
    store::bundle_writer writer;
    writer.set("title", file);
    writer.set("producer", s.producer());
    for (auto const& t : things) {
        if (!*t.answer) continue;
        KILN_CHECK(writer.add(*engine_detail::entry_of(**t.answer, s.producer())));
    }
    if (sign.empty()) return writer.write(file);
    KILN_TRY(auto const key, store::private_key::load(sign));
    return writer.write(file, &key);
}

json describe(thing const& t) {
    json out{{"name", t.by.name}, {"kind", t.by.kind}, {"target", t.for_target.arch.name()}};
    if (*t.answer) {
        out.update({{"from", t.from ? json(name_of(*t.from)) : json()},
                    {"ready_ms", t.ready_ms},
                    {"compile_ms", t.compile_ms},
                    {"bytes", (*t.answer)->got.what->image.size()},
                    {"key", (*t.answer)->got.what->key}});
    } else {
        auto const& why = t.answer->error();
        out.update({{"error", why.message()}, {"code", name_of(why.code())}});
        if (!why.log().empty()) out["log"] = why.log();
    }
    return out;
}

std::string table_of(std::vector<thing> const& things) {
    std::vector<std::vector<std::string>> rows{{"name", "target", "from", "ready ms", "compile ms", "size"}};
    for (auto const& t : things) {
        if (!*t.answer) continue;
        rows.push_back({t.by.name, t.for_target.arch.name(), t.from ? std::string{name_of(*t.from)} : "-",
                        fmt::format("{:.1f}", t.ready_ms), fmt::format("{:.0f}", t.compile_ms),
                        bytes_text((*t.answer)->got.what->image.size())});
    }
    return rows.size() > 1 ? table(rows) : std::string{};
}

void complain_about(std::vector<thing> const& things) {
    for (auto const& t : things) {
        if (*t.answer) continue;
        auto why = t.answer->error();
        bool const named = why.message().find(t.by.name) != std::string::npos;
        complain(named ? why : std::move(why).within(t.by.name));
    }
}

}  // namespace kiln::cli
