// SPDX-License-Identifier: Apache-2.0
#include "age.hpp"
#include "misuse.hpp"

#include "base/config.hpp"
#include "capsule.hpp"
#include "fleet_counts.hpp"
#include "intercept/foreign_store.hpp"
#include "standin_copies.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "subcommands.hpp"

#include <ctime>
#include <fmt/chrono.h>

namespace kiln::cli {

namespace {

struct cache_arguments {
    bool as_json = false;
    bool dry_run = false;
    bool zero = false;
    bool repair = false;
    std::string older_than;
    std::string to_size;
};

struct opened {
    store::maintenance cache;
    std::uint64_t max_bytes = 0;
};

enum class purpose { look, change };

opened open(purpose what = purpose::look) {
    auto const config = base::config::load();
    auto const options = store::options_from(config);
    if (what == purpose::change && config.flag("KILN_READONLY"))
        throw fail(errc::forbidden, "nothing is removed from a cache that is only read; unset KILN_READONLY");
    if (!options.disk) {
        throw fail(errc::not_found, "nothing is kept on disk{}{}; set KILN_CACHE_DIR, or unset KILN_DISABLE",
                   options.no_disk_reason.empty() ? "" : ": ", options.no_disk_reason);
    }
    return {store::maintenance{options.disk->root}, config.size("KILN_MAX_SIZE").value_or(0)};
}

json counts_of(store::counter_map const& m) {
    json out = json::object();
    for (auto const& [name, n] : m) out[name] = n;
    return out;
}

std::uint64_t sum_of(store::counter_map const& m) {
    std::uint64_t out = 0;
    for (auto const& [name, n] : m) out += n;
    return out;
}

// Every tier there may be, also while it is zero: whoever reads this by a program need not ask first.
store::counter_map hits_of(store::statistics const& s) {
    store::counter_map out{{"memory", 0}, {"disk", 0}, {"bundle", 0}, {"fleet", 0}};
    for (auto const& [tier, n] : s.hits) out[tier] = n;
    return out;
}

double rate_of(store::statistics const& s) { return static_cast<double>(s.found()) / static_cast<double>(s.requests); }

// "2026-11-16 15:40:07 UTC"
std::string time_text(std::uint64_t seconds) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

json since_of(store::statistics const& s) { return s.since == 0 ? json() : json(time_text(s.since)); }

int stats(cache_arguments const& a) {
    auto o = open(a.zero ? purpose::change : purpose::look);
    if (a.zero) o.cache.zero_counters().value();
    auto const s = o.cache.counters().value();
    auto const use = o.cache.count().value();
    auto const served = s.requests - std::min(s.requests, s.blocked);
    if (a.as_json) {
        print_json(json{{"requests", s.requests},
                        {"found", s.found()},
                        {"hit_rate", s.requests == 0 ? json() : json(rate_of(s))},
                        {"since", since_of(s)},
                        {"served_without_waiting", served},
                        {"blocked", s.blocked},
                        {"blocked_ms", s.blocked_ms},
                        {"hits", counts_of(hits_of(s))},
                        {"compiled", s.compiled},
                        {"failed", s.failed},
                        {"rejected", counts_of(s.rejected)},
                        {"errors", counts_of(s.errors)},
                        {"fleet", fleet_json(s)},
                        {"published", s.published},
                        {"evicted", s.evicted},
                        {"dropped", s.dropped},
                        {"divergent", s.divergent},
                        {"entries", use.entries},
                        {"bytes", use.bytes},
                        {"max_bytes", o.max_bytes},
                        {"path", o.cache.path().native()}});
        return ok;
    }
    std::vector<std::vector<std::string>> rows{
        {"served without waiting", fmt::format("{} of {}", served, s.requests)},
        {"blocked", std::to_string(s.blocked)},
        {"time blocked", fmt::format("{:.1f} s", static_cast<double>(s.blocked_ms) / 1000)},
        {"found", s.requests == 0 ? "nothing asked for yet"
                                  : fmt::format("{} of {} ({:.2f} %)", s.found(), s.requests, 100 * rate_of(s))},
        {"compiled, failed", fmt::format("{}, {}", s.compiled, s.failed)}};
    if (s.since != 0) rows.push_back({"since", time_text(s.since)});
    for (auto const& [tier, n] : hits_of(s)) rows.push_back({"hits: " + tier, std::to_string(n)});
    for (auto const& [name, n] : s.rejected) rows.push_back({"rejected: " + name, std::to_string(n)});
    for (auto const& [name, n] : s.errors) rows.push_back({"errors: " + name, std::to_string(n)});
    for (auto const& row : fleet_rows(s)) rows.push_back({"fleet: " + row[0], row[1]});
    rows.push_back({"rejected, errors", fmt::format("{}, {}", sum_of(s.rejected), sum_of(s.errors))});
    rows.push_back({"published, evicted", fmt::format("{}, {}", s.published, s.evicted)});
    rows.push_back({"size", fmt::format("{}, {} of {}", count_of(use.entries, "entry", "entries"),
                                        bytes_text(use.bytes), bytes_text(o.max_bytes))});
    rows.push_back({"path", o.cache.path().native()});
    print(table(rows));
    return ok;
}

std::string age_text(std::chrono::seconds age) {
    auto const s = age.count();
    if (s < 120) return fmt::format("{} s", s);
    if (s < 7'200) return fmt::format("{} min", s / 60);
    return s < 172'800 ? fmt::format("{} h", s / 3'600) : fmt::format("{} days", s / 86'400);
}

int list(cache_arguments const& a) {
    auto o = open();
    auto const all = o.cache.list().value();
    if (a.as_json) {
        json out = json::array();
        for (auto const& c : all) {
            auto const& l = c.what.about;
            out.push_back({{"unit", l.name},
                           {"target", l.target},
                           {"kind", l.kind},
                           {"bytes", c.what.bytes},
                           {"toolchain", l.toolchain},
                           {"producer", l.producer},
                           {"key", l.at.key.hex()},
                           {"unused_seconds", c.unused_for.count()},
                           {"path", c.path.native()}});
        }
        print_json(out);
        return ok;
    }
    std::vector<std::vector<std::string>> rows{{"unit", "target", "kind", "size", "unused for", "key"}};
    for (auto const& c : all) {
        auto const& l = c.what.about;
        // What 'kiln run' kept for a program that knows nothing of Kiln.
        auto const program = intercept::program_in(l.producer);
        auto const unit = program.empty() ? l.name : fmt::format("{} ({})", l.name, program);
        rows.push_back(
            {unit, l.target, l.kind, bytes_text(c.what.bytes), age_text(c.unused_for), l.at.key.hex().substr(0, 16)});
    }
    print(all.empty() ? fmt::format("{} is empty\n", o.cache.path().native()) : table(rows));
    return ok;
}

// Capsules that are unpacked are counted apart: they are no entries, and KILN_MAX_SIZE does not bound them.
int report(cache_arguments const& a, store::prune_report const& r, unpacked_capsules const& capsules = {}) {
    if (a.as_json) {
        print_json(json{{"removed", r.removed},
                        {"removed_bytes", r.removed_bytes},
                        {"entries", r.left.entries},
                        {"bytes", r.left.bytes},
                        {"capsules", capsules.count},
                        {"capsule_bytes", capsules.bytes},
                        {"dry_run", a.dry_run}});
    } else {
        auto const unpacked =
            capsules.count == 0
                ? std::string{}
                : fmt::format(" and {} ({})", count_of(capsules.count, "unpacked capsule"), bytes_text(capsules.bytes));
        print(fmt::format("{} {} ({}){}; {} left ({})\n", a.dry_run ? "would remove" : "removed",
                          count_of(r.removed, "entry", "entries"), bytes_text(r.removed_bytes), unpacked,
                          r.left.entries, bytes_text(r.left.bytes)));
    }
    return ok;
}

int prune(cache_arguments const& a) {
    store::prune_options options;
    if (a.dry_run) options.mode = store::prune_options::run::dry;
    if (!a.older_than.empty()) options.older_than = age_in(a.older_than);
    auto o = open(a.dry_run ? purpose::look : purpose::change);
    if (!a.to_size.empty()) {
        options.to_bytes = base::parse_size(a.to_size);
        if (!options.to_bytes) throw misuse{fmt::format("'{}' is not a size; write for example 500M or 2G", a.to_size)};
    } else if (a.older_than.empty()) options.to_bytes = o.max_bytes;
    return report(a, o.cache.prune(options).value());
}

int clear(cache_arguments const& a) {
    auto o = open(a.dry_run ? purpose::look : purpose::change);
    unpacked_capsules capsules;
    if (auto const options = store::options_from(base::config::load()); options.disk) {
        capsules = unpacked_capsules_in(options.disk->root);
        if (!a.dry_run) {
            remove_unpacked_capsules(options.disk->root);
            remove_standins(options.disk->root);
        }
    }
    if (!a.dry_run) return report(a, o.cache.clear().value(), capsules);
    return report(a, o.cache.prune({.older_than = {}, .to_bytes = 0, .mode = store::prune_options::run::dry}).value(),
                  capsules);
}

int verify(cache_arguments const& a) {
    auto o = open(a.repair ? purpose::change : purpose::look);
    auto const r =
        o.cache.verify(a.repair ? store::maintenance::bad_entries::remove : store::maintenance::bad_entries::report)
            .value();
    struct bad_file {
        std::string path;
        std::string_view why;
    };
    std::vector<bad_file> all;
    for (auto const& b : r.bad) all.push_back({b.path.native(), store::name_of(b.why)});
    // Whoever loads a stand-in looks at it, too; but not at those nobody loads.
    if (auto const options = store::options_from(base::config::load()); options.disk) {
        for (auto const& file : damaged_standins(options.disk->root)) {
            std::error_code ignored;
            if (a.repair) std::filesystem::remove_all(file, ignored);
            all.push_back({file.native(), "damaged stand-in"});
        }
    }
    if (a.as_json) {
        json bad = json::array();
        for (auto const& b : all) bad.push_back({{"path", b.path}, {"reason", b.why}});
        print_json(json{{"checked", r.checked},
                        {"bytes", r.checked_bytes},
                        {"newer_format", r.newer},
                        {"bad", std::move(bad)},
                        {"removed", a.repair}});
    } else {
        for (auto const& b : all) complain(fmt::format("{}: {}{}", b.path, b.why, a.repair ? ", removed" : ""));
        print(fmt::format("{} checked ({}), {} bad\n", count_of(r.checked, "entry", "entries"),
                          bytes_text(r.checked_bytes), all.size()));
    }
    return all.empty() || a.repair ? ok : failed;
}

}  // namespace

void add_cache(CLI::App& root, std::vector<command>& commands) {
    subcommands<cache_arguments> cache{root, commands, "cache"};
    cache.add("stats", stats, [](CLI::App& app, cache_arguments& a) {
        app.add_flag("--zero", a.zero, "set the counters to zero first");
    });
    cache.add("list", list, [](CLI::App&, cache_arguments&) {});
    cache.add(
        "path",
        [](cache_arguments const& a) {
            auto const path = open().cache.path().native();
            if (a.as_json) print_json(json{{"path", path}});
            else print(path + "\n");
            return ok;
        },
        [](CLI::App&, cache_arguments&) {});
    cache.add("prune", prune, [](CLI::App& app, cache_arguments& a) {
        app.add_option("--older-than", a.older_than, "age");
        app.add_option("--to-size", a.to_size, "size");
        app.add_flag("--dry-run,-n", a.dry_run, "only say what would happen");
    });
    cache.add("clear", clear, [](CLI::App& app, cache_arguments& a) {
        app.add_flag("--dry-run,-n", a.dry_run, "only say what would happen");
    });
    cache.add("verify", verify,
              [](CLI::App& app, cache_arguments& a) { app.add_flag("--repair", a.repair, "remove bad entries"); });
}

}  // namespace kiln::cli
