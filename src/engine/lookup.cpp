// SPDX-License-Identifier: Apache-2.0
#include "engine/lookup.hpp"

#include "engine/embedded_bundles.hpp"

#include <algorithm>

namespace kiln::engine_detail {

provenance provenance_of(std::string_view tier) {
    if (tier == "memory") return provenance::memory;
    return tier == "bundle" ? provenance::bundle : provenance::disk;
}

namespace {

using store::listed;

compile::absent_headers absent_rule(std::string_view tier) {
    // A bundle is shipped to machines that lack its headers; what it holds was sealed when it was built.
    return tier == "bundle" ? compile::absent_headers::are_sealed : compile::absent_headers::are_misses;
}

std::optional<kiln::target> target_of(store::label const& l) {
    auto const kind = parse_kind(l.kind);
    if (!kind) return std::nullopt;
    auto const t = target::parse(l.target, *kind);
    return t ? std::optional{*t} : std::nullopt;
}

// Reads, decodes and checks the headers of one entry. On a miss `out.reason` and `out.detail` say why.
bool take(store::store& where, store::address const& at, store::expectation const& expected, subject const& what,
          std::optional<compile::absent_headers> headers, found_artifact& out) {
    auto const found = where.find(at, expected);
    if (!found) {
        out.reason = store::name_of(found.why);
        return false;
    }
    auto decoded = compile::decode_artifact(found.hit->payload);
    if (!decoded) {
        where.reject(at);
        out.reason = "bad-artifact";
        out.detail = decoded.error().message();
        return false;
    }
    auto const rule = headers.value_or(absent_rule(found.tier));
    if (auto change = compile::first_change(decoded->dependencies, what.roots, rule); !change.empty()) {
        out.reason = "header-changed";
        out.detail = std::move(change);
        return false;
    }
    out.what = std::make_shared<artifact const>(*std::move(decoded));
    out.from = provenance_of(found.tier);
    out.at = at;
    return true;
}

bool look_exactly(store::store& where, subject const& what, found_artifact& out) {
    store::expectation const expected{what.target.arch.name(), std::string{name_of(what.target.kind)}, what.toolchain};
    if (what.id.self_contained) {
        return take(where, {what.id.family, what.id.request, compile::seal(what.id.request, {})}, expected, what, {},
                    out);
    }
    out.reason = "absent";
    for (auto const& candidate : where.list(what.id.family, what.id.request)) {
        if (take(where, candidate.what.about.at, expected, what, {}, out)) return true;
    }
    return false;
}

// Bundles count whoever compiled them: shipping one is a decision. Other tiers only where there is no compiler to ask.
bool may_use_other_compilers(listed const& candidate, subject const& what) {
    return candidate.tier == "bundle" || candidate.tier == "memory" || what.toolchain.empty();
}

// In memory an entry keeps the rule of the tier it came from only by its toolchain: another compiler's came from a bundle.
std::optional<compile::absent_headers> rule_for(listed const& candidate, subject const& what) {
    if (candidate.tier == "memory" && candidate.what.about.toolchain != what.toolchain)
        return compile::absent_headers::are_sealed;
    return std::nullopt;
}

std::string described(listed const& l) {
    return fmt::format("{} {} ({}, in {})", l.what.about.target, l.what.about.kind,
                       l.what.about.toolchain.substr(0, 20), l.tier);
}

}  // namespace

std::string describe_tiers(store::store& where) {
    std::string out = "memory";
    if (auto const directory = where.directory()) out += fmt::format(", disk ({})", directory->root.native());
    if (!where.options().read_only_roots.empty())
        out += fmt::format(", {} read-only caches", where.options().read_only_roots.size());
    std::string bundles;
    auto const add = [&](std::string_view name) { bundles += (bundles.empty() ? "" : ", ") + std::string{name}; };
    for (auto const& b : where.bundles()) add(b->info().origin);
    for (auto const& b : embedded_bundles()) add(b.name + " (embedded)");
    out += bundles.empty() ? ", no bundle" : ", bundles (" + bundles + ")";
    std::uint64_t refused = 0;
    for (auto const& [reason, times] : where.counts().rejected) refused += times;
    if (refused > 0) out += fmt::format(", {} refused ('kiln doctor' tells why)", refused);
    return out;
}

namespace {

bool look_nearby(store::store& where, subject const& what, found_artifact& out) {
    auto candidates = where.list(what.id.family);
    // The same target first, then the highest that may run.
    std::ranges::stable_sort(candidates, std::ranges::greater{}, [&](listed const& c) {
        auto const t = target_of(c.what.about);
        return std::pair{t && *t == what.target, t ? t->arch.number() : 0};
    });
    for (auto const& candidate : candidates) {
        auto const t = target_of(candidate.what.about);
        if (!t) continue;
        if (out.nearest.empty()) out.nearest = described(candidate);
        bool const fits = *t == what.target || (what.device && t->kind == artifact_kind::cubin &&
                                                what.target.kind == t->kind && can_run(*t, *what.device));
        if (!fits || !may_use_other_compilers(candidate, what)) continue;
        store::expectation const expected{candidate.what.about.target, candidate.what.about.kind, {}};
        if (take(where, candidate.what.about.at, expected, what, rule_for(candidate, what), out)) {
            if (*t != what.target) out.detail = fmt::format("{} serves {}", t->arch.name(), what.target.arch.name());
            else out.detail = "made by another compiler";
            return true;
        }
    }
    return false;
}

}  // namespace

found_artifact look_up(store::store& where, subject const& what) {
    found_artifact out;
    if (!what.toolchain.empty() && look_exactly(where, what, out)) return out;
    auto const reason = std::exchange(out.reason, {});
    auto const detail = out.detail;
    if (look_nearby(where, what, out)) return out;
    if (!reason.empty()) {
        out.reason = reason;
        out.detail = detail;
    } else if (out.reason.empty()) {
        out.reason = "absent";
    }
    return out;
}

found_artifact look_up_portable(store::store& where, subject const& what, artifact_kind kind) {
    found_artifact out;
    auto candidates = where.list(what.id.family);
    std::ranges::stable_sort(candidates, std::ranges::greater{}, [](listed const& c) {
        auto const t = target_of(c.what.about);
        return t ? t->arch.number() : 0;
    });
    for (auto const& candidate : candidates) {
        auto const t = target_of(candidate.what.about);
        if (!t || t->kind != kind || !what.device || !can_run(*t, *what.device)) continue;
        store::expectation const expected{candidate.what.about.target, candidate.what.about.kind, {}};
        if (take(where, candidate.what.about.at, expected, what, rule_for(candidate, what), out)) return out;
    }
    return out;
}

}  // namespace kiln::engine_detail
