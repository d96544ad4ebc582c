// SPDX-License-Identifier: Apache-2.0
#include "remote_commands.hpp"

#include "base/quiet_thread.hpp"
#include "fleet_counts.hpp"
#include "remote/rules.hpp"
#include "remote_remedies.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "subcommands.hpp"

namespace kiln::cli {

chosen_remotes remotes(std::string const& url, remote::purpose what_for) {
    auto list = remote::remotes_of(base::config::load(), what_for);
    chosen_remotes out{.usable = {}, .off = std::move(list.off)};
    for (auto& o : list.usable) {
        if (!url.empty() && o.at.text() != url) continue;
        out.usable.push_back(std::make_shared<remote::remote_tier>(o, std::make_shared<store::event_outlet>(nullptr)));
    }
    if (!url.empty() && out.usable.empty())
        throw fail(errc::not_found, "{} is not a usable remote of KILN_REMOTE; 'kiln remote status' shows them", url);
    return out;
}

chosen_remotes some_remotes(std::string const& url, remote::purpose what_for) {
    auto out = remotes(url, what_for);
    for (auto const& off : out.off) complain(fmt::format("{}: not used: {}; {}", off.url, off.why, off.remedy));
    if (out.usable.empty() && !out.off.empty()) throw fail(errc::not_found, "no remote of KILN_REMOTE can be used");
    if (out.usable.empty())
        throw fail(errc::not_found,
                   "there is no remote; set KILN_REMOTE, for example to 'redis://cache:6379 trust=server'");
    return out;
}

plight plight_of(remote::remote_tier& r, remote::failure const& why) {
    if (!why) return {};
    if (auto keys = r.trouble_with_keys(); !keys.empty())
        return {std::move(keys), "correct keys= and sign= in KILN_REMOTE; 'kiln key FILE' makes a pair"};
    return {fmt::format("{}: {}", remote::name_of(why.what), why.detail), remedy_for(r.options(), why)};
}

namespace {

// Who is believed and who signs, by the ids that 'kiln key' and 'kiln remote verify' show.
struct who_counts {
    std::vector<std::string> keys;
    std::string signs;  // empty: nobody does
};

who_counts who_counts_for(remote::remote_options const& o) {
    who_counts out;
    if (auto const believed = remote::trust_of(o); believed && o.in == remote::belief::signatures) {
        for (auto const& key : believed->keys) out.keys.push_back(store::to_hex(key.id()));
    }
    if (o.writes == remote::writing::never || o.sign.empty()) return out;
    if (auto const key = store::private_key::load(o.sign)) out.signs = store::to_hex(key->public_half().id());
    return out;
}

std::string trust_in_words(remote::remote_options const& o, who_counts const& who) {
    if (o.in == remote::belief::server) return "the server, and whoever may write there";
    std::string files;
    for (auto const& key : o.keys) files += (files.empty() ? "" : ",") + key.native();
    auto const since = o.least_epoch > 0 ? fmt::format(", epoch {} or later", o.least_epoch) : std::string{};
    return fmt::format("what is signed by {} ({}){}",
                       who.keys.empty() ? "keys that cannot be read" : fmt::format("{}", fmt::join(who.keys, " or ")),
                       files, since);
}

std::string writing_in_words(remote::remote_options const& o, who_counts const& who) {
    if (o.writes == remote::writing::never) return "no, read-only";
    return who.signs.empty() ? "yes, unsigned" : fmt::format("yes, signed by {}, epoch {}", who.signs, o.epoch);
}

using condition = remote::remote_tier::condition;

// All at the same time: one that hangs keeps nobody waiting for the next.
std::vector<condition> examined(std::vector<remote_ptr> const& all) {
    std::vector<condition> out(all.size());
    std::vector<std::thread> threads;
    threads.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto const ask = [&to = out[i], &r = *all[i]] { to = r.examine(); };
        auto thread = base::start_quiet_thread(ask);
        if (thread) threads.push_back(*std::move(thread));
        else ask();
    }
    for (auto& t : threads) t.join();
    return out;
}

// By all processes of the cache directory, of all remotes together. Nothing where there is no such directory.
std::optional<store::statistics> counted_here() {
    auto const options = store::options_from(base::config::load());
    if (!options.disk) return std::nullopt;
    auto counts = store::maintenance{options.disk->root}.counters();
    return counts ? std::optional{*std::move(counts)} : std::nullopt;
}

void print_counted(std::optional<store::statistics> const& counted) {
    if (!counted) return;
    std::vector<std::vector<std::string>> rows;
    for (auto const& row : fleet_rows(*counted)) rows.push_back({"", row[0], row[1]});
    if (rows.empty()) return;
    print(fmt::format("of all of them, by this cache directory\n{}", table(rows)));
}

int status(remote_arguments const& a) {
    auto const all = remotes(a.url);
    auto const conditions = examined(all.usable);
    auto const counted = counted_here();
    json out = json::array();
    bool good = all.off.empty();
    for (std::size_t i = 0; i < all.usable.size(); ++i) {
        auto const& r = all.usable[i];
        auto const& seen = conditions[i];
        auto const& o = r->options();
        auto const trouble = plight_of(*r, seen.why);
        auto const who = who_counts_for(o);
        // Who only reads takes none.
        auto const leases = o.writes == remote::writing::never ? std::string{"none, read-only"} : seen.leases;
        good = good && !seen.why;
        json facts = json::object();
        for (auto const& [name, value] : seen.said) facts[name] = value;
        out.push_back({{"url", o.at.text()},
                       {"namespace", o.space},
                       {"reachable", !seen.why},
                       {"error", seen.why ? json(trouble.why) : json(nullptr)},
                       {"remedy", seen.why ? json(trouble.remedy) : json(nullptr)},
                       {"round_trip_ms", seen.round_trip_ms},
                       {"trust", o.in == remote::belief::server ? "server" : "signed"},
                       {"keys", who.keys},
                       {"min_epoch", o.least_epoch},
                       {"writes", o.writes == remote::writing::allowed},
                       {"signs", who.signs.empty() ? json(nullptr) : json(who.signs)},
                       {"epoch", o.epoch},
                       {"leases", leases},
                       {"breaker_open", seen.breaker_open},
                       {"certificate_days", seen.certificate_days ? json(*seen.certificate_days) : json(nullptr)},
                       {"server", std::move(facts)},
                       {"fleet", counted ? fleet_json(*counted) : json(nullptr)}});
        if (a.as_json) continue;
        print(fmt::format("{}\n", o.at.text()));
        std::vector<std::vector<std::string>> rows;
        if (seen.why) {
            rows.push_back({"", "unusable", trouble.why});
            rows.push_back({"", "remedy", trouble.remedy});
        } else rows.push_back({"", "reachable", fmt::format("{:.2f} ms there and back", seen.round_trip_ms)});
        rows.push_back({"", "believed", trust_in_words(o, who)});
        rows.push_back({"", "writes", writing_in_words(o, who)});
        rows.push_back({"", "leases", leases});
        rows.push_back({"", "namespace", o.space});
        if (seen.certificate_days)
            rows.push_back({"", "certificate", fmt::format("{} days left", *seen.certificate_days)});
        for (auto const& [name, value] : seen.said) rows.push_back({"", name, value});
        print(table(rows));
    }
    for (auto const& off : all.off) {
        out.push_back({{"url", off.url}, {"reachable", false}, {"error", off.why}, {"remedy", off.remedy}});
        if (!a.as_json) print(fmt::format("{}\n  not used: {}; {}\n", off.url, off.why, off.remedy));
    }
    if (!a.as_json && !all.usable.empty()) print_counted(counted);
    if (a.as_json) print_json(out);
    else if (out.empty()) print("no remote: KILN_REMOTE is not set\n");
    return good ? ok : failed;
}

void add_shipping(CLI::App& app, remote_arguments& a) {
    app.add_option("--token-file", a.shipping.token_file, "who we are there");
    app.add_option("--ca", a.shipping.ca, "whose certificates are believed");
    app.add_option("--endpoint", a.shipping.endpoint, "of S3");
    app.add_option("--credentials-file", a.shipping.credentials_file, "of S3");
}

}  // namespace

void add_remote(CLI::App& root, std::vector<command>& commands) {
    subcommands<remote_arguments> remote{root, commands, "remote"};
    remote.add("status", status,
               [](CLI::App& app, remote_arguments& a) { app.add_option("URL", a.url, "only this one"); });
    remote.add("push", remote_push, [](CLI::App& app, remote_arguments& a) {
        app.add_option("BUNDLE", a.bundle, "a bundle");
        app.add_option("PLACE", a.place, "where the whole bundle goes: oci://, https://, s3://");
        add_shipping(app, a);
        app.add_flag("--cache", a.cache, "what the cache directory has");
        app.add_option("--profile", a.profiles, "of the cache only what profiles name");
        app.add_option("--arch", a.archs, "architectures")->delimiter(',');
        app.add_option("--to", a.url, "only to this one");
    });
    remote.add("pull", remote_pull, [](CLI::App& app, remote_arguments& a) {
        app.add_option("PLACE", a.place,
                       "where a whole bundle is: oci://, https://, s3://, or - to read it from stdin");
        app.add_option("--key", a.key, "who must have signed the bundle");
        add_shipping(app, a);
        app.add_option("--profile", a.profiles, "profiles");
        app.add_option("--arch", a.archs, "architectures")->delimiter(',');
        app.add_option("-o,--output", a.output, "a bundle of it");
    });
    remote.add("prune", remote_prune, [](CLI::App& app, remote_arguments& a) {
        app.add_option("--older-than", a.older_than, "age")->required();
        app.add_flag("--dry-run,-n", a.dry_run, "only say what would happen");
        app.add_option("--dir", a.folder, "the folder on the server's disk");
        app.add_option("URL", a.url, "only this one");
    });
    remote.add("verify", remote_verify, [](CLI::App& app, remote_arguments& a) {
        app.add_option("--sample", a.sample, "so many of them");
        app.add_option("--dir", a.folder, "the folder on the server's disk");
        app.add_option("URL", a.url, "only this one");
    });
}

}  // namespace kiln::cli
