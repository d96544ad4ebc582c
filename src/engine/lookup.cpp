// SPDX-License-Identifier: Apache-2.0
#include "engine/lookup.hpp"

#include "engine/embedded_bundles.hpp"

#include <algorithm>
#include <new>

namespace kiln::engine_detail {

namespace {

using store::listed;
using store::visit;

std::optional<kiln::target> target_of(store::label const& l) {
    auto const kind = parse_kind(l.kind);
    if (!kind) return std::nullopt;
    auto const t = target::parse(l.target, *kind);
    return t ? std::optional{*t} : std::nullopt;
}

// One search: where, for what, and what has come of it.
struct search {
    store::store& where;
    subject const& what;
    purpose why;
    found_artifact& out;

    // Decodes an entry and checks its headers by the rules of the tier it came from. Only what passes counts as found. On a
    // miss `out.reason` and `out.detail` say why.
    bool take(store::found const& found) const;

private:
    // Empty, or what else may be meant where headers that would tell are not here.
    [[nodiscard]] std::string rival_of(artifact const& a) const;
};

using compile::absent_headers;

result<artifact> decoded(store::found const& found) {
    try {
        return compile::decode_artifact(found.hit->payload);
    } catch (std::bad_alloc const&) {
        return fail(errc::out_of_memory, "no memory left to decode '{}'", found.hit->about.name);
    }
}

store::expectation expected_of(listed const& candidate) {
    return {candidate.what.about.target, candidate.what.about.kind, {}};
}

std::string search::rival_of(artifact const& a) const {
    // A unit that brings its headers says itself which it means, and so do headers that are all here.
    auto const of_toolkit = [](dependency const& d) { return d.from == dependency::root::toolkit; };
    if (what.roots.all_known || std::ranges::all_of(a.dependencies, of_toolkit)) return {};
    if (compile::first_change(a.dependencies, what.roots, absent_headers::are_misses).empty()) return {};
    std::string out;
    where.candidates(what.id.family, {}, [&](listed const& candidate) {
        if (rule_for(candidate.what.from) != absent_headers::are_sealed || candidate.what.about.at.key.hex() == a.key)
            return visit::go_on;
        auto const found = where.peek(candidate, expected_of(candidate));
        auto const other = found ? decoded(found) : result<artifact>{fail(errc::not_found, "gone")};
        if (!other) return visit::go_on;
        auto const header = compile::first_contradiction(a.dependencies, other->dependencies);
        if (header.empty()) return visit::go_on;
        if (!compile::first_change(other->dependencies, what.roots, absent_headers::are_sealed).empty())
            return visit::go_on;
        out = fmt::format(
            "there are two of '{}' ({} and {}), made from different {}, which is not here to tell which is meant; "
            "ship one of them, or units with their headers (kiln_add_kernels, kiln build --embed)",
            what.name, a.target.arch.name(), other->target.arch.name(), header);
        return visit::stop;
    });
    return out;
}

bool search::take(store::found const& found) const {
    if (!found) {
        out.reason = store::name_of(found.why);
        return false;
    }
    auto const& at = found.hit->about.at;
    auto a = decoded(found);
    if (!a) {
        out.detail = a.error().message();
        bool const no_memory = a.error().code() == errc::out_of_memory;
        if (!no_memory && why == purpose::serve) where.reject(at);
        out.reason = no_memory ? "out-of-memory" : "bad-artifact";
        return false;
    }
    auto const rule = rule_for(found.hit->from);
    if (auto change = compile::first_change(a->dependencies, what.roots, rule); !change.empty()) {
        out.reason = "header-changed";
        out.detail = std::move(change);
        return false;
    }
    if (auto rival = rule == absent_headers::are_sealed ? rival_of(*a) : std::string{}; !rival.empty()) {
        out.reason = "headers-unknown";
        out.detail = std::move(rival);
        return false;
    }
    if (why == purpose::serve) where.used(found);
    out.what = std::make_shared<artifact const>(*std::move(a));
    out.from = provenance_of(found.where);
    out.at = at;
    return true;
}

bool look_exactly(search const& s) {
    auto const& id = s.what.id;
    store::expectation const expected{s.what.target.arch.name(), std::string{name_of(s.what.target.kind)},
                                      s.what.toolchain};
    if (id.self_contained)
        return s.take(s.where.peek(store::address{id.family, id.request, compile::seal(id.request, {})}, expected));
    s.out.reason = "absent";
    bool taken = false;
    s.where.candidates(id.family, id.request, [&](listed const& candidate) {
        taken = s.take(s.where.peek(candidate, expected));
        return taken ? visit::stop : visit::go_on;
    });
    return taken;
}

// What another compiler made serves where its tier says so, and where there is no compiler to ask.
bool may_serve(listed const& candidate, subject const& what) {
    return candidate.what.from.any_compiler || what.toolchain.empty();
}

}  // namespace

std::string describe_tiers(store::store& where) {
    std::string out = "memory";
    if (auto const directory = where.directory()) out += fmt::format(", disk ({})", directory->root.native());
    if (!where.options().read_only_roots.empty())
        out += fmt::format(", {} read-only caches", where.options().read_only_roots.size());
    std::vector<std::string> bundles;
    for (auto const& b : where.bundles()) bundles.push_back(b->info().origin);
    // Packs bring theirs, whoever asks for what.
    auto const embedded = embedded_bundles().size();
    if (embedded > 0) bundles.push_back(fmt::format("{} embedded", embedded));
    out += bundles.empty() ? ", no bundle" : fmt::format(", bundles ({})", fmt::join(bundles, ", "));
    std::vector<std::string> refused;
    auto counted = where.counts().rejected;
    for (auto const& bundle : where.refused_bundles()) {
        refused.push_back(bundle.why);
        if (auto const at = counted.find(bundle.reason); at != counted.end())
            at->second -= std::min<std::uint64_t>(1, at->second);
    }
    for (auto const& [reason, times] : counted) {
        if (times > 0) refused.push_back(fmt::format("{} {}", times, reason));
    }
    if (!refused.empty()) out += fmt::format(", refused: {}", fmt::join(refused, "; "));
    return out;
}

namespace {

void highest_first(std::vector<std::pair<kiln::target, listed>>& some) {
    std::ranges::stable_sort(some, std::ranges::greater{}, [](auto const& one) { return one.first.arch.number(); });
}

// The same target, in order of tiers; then, of all that may run in its place, the highest.
bool look_nearby(search const& s) {
    auto& out = s.out;
    std::vector<std::pair<kiln::target, listed>> others;
    bool taken = false;
    s.where.candidates(s.what.id.family, {}, [&](listed const& candidate) {
        auto const t = target_of(candidate.what.about);
        if (!t) return visit::go_on;
        if (!may_serve(candidate, s.what)) return visit::go_on;
        if (*t == s.what.target) {
            taken = s.take(s.where.peek(candidate, expected_of(candidate)));
            if (taken) out.detail = "made by another compiler";
            return taken ? visit::stop : visit::go_on;
        }
        bool const fits = s.what.device && t->kind == artifact_kind::cubin && s.what.target.kind == t->kind &&
                          can_run(*t, *s.what.device);
        if (fits) others.emplace_back(*t, candidate);
        return visit::go_on;
    });
    if (taken) return true;
    highest_first(others);
    for (auto const& [t, candidate] : others) {
        if (!s.take(s.where.peek(candidate, expected_of(candidate)))) continue;
        out.detail = fmt::format("{} serves {}", t.arch.name(), s.what.target.arch.name());
        return true;
    }
    return false;
}

}  // namespace

compile::absent_headers rule_for(store::origin const& from) noexcept {
    if (!from.headers_sealed) return absent_headers::are_misses;
    return from.where == store::location::fleet ? absent_headers::toolkits_are_sealed : absent_headers::are_sealed;
}

provenance provenance_of(store::location where) noexcept {
    switch (where) {
        case store::location::process: return provenance::memory;
        case store::location::machine: return provenance::disk;
        case store::location::shipped: return provenance::bundle;
        case store::location::fleet: return provenance::fleet;
    }
    return provenance::disk;
}

found_artifact look_up(store::store& where, subject const& what, purpose why) {
    found_artifact out;
    search const s{where, what, why, out};
    if (!what.toolchain.empty() && look_exactly(s)) return out;
    auto const reason = std::exchange(out.reason, {});
    auto const detail = out.detail;
    if (look_nearby(s)) return out;
    if (!reason.empty()) {
        out.reason = reason;
        out.detail = detail;
    } else if (out.reason.empty()) {
        out.reason = "absent";
    }
    return out;
}

found_artifact accept(store::store& where, subject const& what, store::found const& found) {
    found_artifact out;
    search const s{where, what, purpose::explain, out};
    if (!s.take(found) && out.reason == "bad-artifact") where.reject(found.hit->about.at);
    return out;
}

found_artifact look_up_shipped(store::store& where, subject const& what) {
    found_artifact out;
    out.reason = "absent";
    search const s{where, what, purpose::serve, out};
    where.candidates(what.id.family, {}, [&](listed const& candidate) {
        if (!candidate.what.from.any_compiler || target_of(candidate.what.about) != what.target) return visit::go_on;
        return s.take(where.peek(candidate, expected_of(candidate))) ? visit::stop : visit::go_on;
    });
    return out;
}

found_artifact look_up_portable(store::store& where, subject const& what, artifact_kind kind) {
    found_artifact out;
    search const s{where, what, purpose::serve, out};
    std::vector<std::pair<kiln::target, listed>> able;
    where.candidates(what.id.family, {}, [&](listed const& candidate) {
        auto const t = target_of(candidate.what.about);
        if (t && t->kind == kind && what.device && can_run(*t, *what.device)) able.emplace_back(*t, candidate);
        return visit::go_on;
    });
    highest_first(able);
    for (auto const& [t, candidate] : able) {
        if (s.take(where.peek(candidate, expected_of(candidate)))) return out;
    }
    return out;
}

}  // namespace kiln::engine_detail
