// SPDX-License-Identifier: Apache-2.0
#include "remote/shipping.hpp"
#include "remote/upkeep.hpp"

#include "age.hpp"
#include "engine/pack_verbs.hpp"
#include "making.hpp"
#include "misuse.hpp"
#include "progress.hpp"
#include "remote_remedies.hpp"
#include "store/bundle.hpp"
#include "store/maintenance.hpp"
#include "subcommands.hpp"
#include "warmup/profile_file.hpp"

#include <algorithm>
#include <iostream>
#include <random>
#include <set>

namespace kiln::cli {

namespace {

struct remote_arguments {
    bool as_json = false;
    bool dry_run = false;
    bool cache = false;
    std::string bundle;
    std::string url;
    std::string folder;
    std::string older_than;
    std::optional<std::int64_t> sample;
    std::vector<std::string> profiles;
    std::vector<std::string> archs;
    std::string output;
    std::string place;  // of a whole bundle
    std::string key;
    remote::shipping_options shipping;
};

using remote_ptr = std::shared_ptr<remote::remote_tier>;

struct chosen_remotes {
    std::vector<remote_ptr> usable;
    std::vector<remote::unusable_remote> off;
};

// Those of KILN_REMOTE, or the one whose URL is given.
chosen_remotes remotes(std::string const& url = {}) {
    auto list = remote::remotes_of(base::config::load());
    chosen_remotes out{.usable = {}, .off = std::move(list.off)};
    for (auto& o : list.usable) {
        if (!url.empty() && o.at.text() != url) continue;
        out.usable.push_back(std::make_shared<remote::remote_tier>(o, std::make_shared<store::event_outlet>(nullptr)));
    }
    if (!url.empty() && out.usable.empty())
        throw fail(errc::not_found, "{} is not a usable remote of KILN_REMOTE; 'kiln remote status' shows them", url);
    return out;
}

chosen_remotes some_remotes(std::string const& url = {}) {
    auto out = remotes(url);
    for (auto const& off : out.off) complain(fmt::format("{}: not used: {}; {}", off.url, off.why, off.remedy));
    if (out.usable.empty())
        throw fail(errc::not_found,
                   "there is no remote; set KILN_REMOTE, for example to 'redis://cache:6379 trust=server'");
    return out;
}

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

// Why a remote is no use now, and what to do; empty where it is.
struct plight {
    std::string why;
    std::string remedy;
};

plight plight_of(remote::remote_tier& r, remote::failure const& why) {
    if (!why) return {};
    if (auto keys = r.trouble_with_keys(); !keys.empty())
        return {std::move(keys), "correct keys= and sign= in KILN_REMOTE; 'kiln key FILE' makes a pair"};
    return {fmt::format("{}: {}", remote::name_of(why.what), why.detail), remedy_for(r.options(), why)};
}

int status(remote_arguments const& a) {
    auto const all = remotes(a.url);
    json out = json::array();
    bool good = all.off.empty();
    for (auto const& r : all.usable) {
        auto const& o = r->options();
        auto const seen = r->examine();
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
                       {"server", std::move(facts)}});
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
    if (a.as_json) print_json(out);
    else if (out.empty()) print("no remote: KILN_REMOTE is not set\n");
    return good ? ok : failed;
}

std::vector<store::entry_ptr> entries_of_bundle(std::string const& file) {
    auto const bundle = store::bundle_tier::open(file).value();
    std::vector<store::entry_ptr> out;
    std::vector<store::address> all;
    bundle->for_each([&](store::summary const& s) { all.push_back(s.about.at); }).value();
    for (auto const& at : all) {
        if (auto const found = bundle->find(at, {}).value(); found.hit) out.push_back(found.hit);
    }
    return out;
}

std::vector<store::entry_ptr> entries_of_cache() {
    auto const options = store::options_from(base::config::load());
    if (!options.disk) throw fail(errc::not_found, "nothing is kept on disk: there is no cache to push");
    store::maintenance cache{options.disk->root};
    store::disk_tier disk{{.root = options.disk->root, .mode = store::access::read_only},
                          std::make_shared<store::event_outlet>(nullptr)};
    std::vector<store::entry_ptr> out;
    for (auto const& c : cache.list().value()) {
        // What other programs asked their own compilers for ('kiln run') is this machine's business.
        if (c.what.about.kind != "cubin" && c.what.about.kind != "ptx" && c.what.about.kind != "ltoir") continue;
        if (auto const found = disk.find(c.what.about.at, {}).value(); found.hit) out.push_back(found.hit);
    }
    return out;
}

int ship(remote_arguments const& a) {
    (void)entries_of_bundle(a.bundle);  // nothing leaves that is no bundle
    auto data = base::read_file(a.bundle).value();
    if (!data) throw fail(errc::not_found, "{}: there is no such file", a.bundle);
    auto const bytes = data->size();
    auto const title = std::filesystem::path{a.bundle}.filename().native();
    auto const sent = remote::ship_bundle(a.place, *std::move(data), title, a.shipping).value();
    if (a.as_json)
        print_json(json{{"to", remote::shown_url(a.place)},
                        {"digest", "sha256:" + sent.of.hex()},
                        {"for_ever", sent.for_ever.empty() ? json(nullptr) : json(sent.for_ever)},
                        {"bytes", bytes},
                        {"there_already", sent.was_there}});
    else {
        print(fmt::format("{} {} ({}), sha256:{}\n", remote::shown_url(a.place),
                          sent.was_there ? "had it already" : "has it", bytes_text(bytes), sent.of.hex()));
        if (!sent.for_ever.empty()) print(fmt::format("  whatever becomes of the tag: {}\n", sent.for_ever));
    }
    return ok;
}

// Whole, whose it must be, and only then under its name.
int fetch(remote_arguments const& a) {
    if (a.output.empty()) throw misuse{std::string{"say with -o FILE where the bundle is to be"}};
    check_output(a.output).value();
    auto place = a.place;
    // What permits to read it is better not on a command line.
    if (place == "-" && !std::getline(std::cin, place)) throw fail(errc::invalid_argument, "no URL on standard input");
    store::signature_policy policy;
    if (!a.key.empty())
        policy = {.what = store::signature_policy::need::trusted, .keys = {store::public_key::load(a.key).value()}};
    auto const data = remote::fetch_bundle(place, a.shipping).value();
    auto const bundle = store::bundle_tier::from_memory(data, remote::shown_url(place), policy).value();
    if (auto const bad = bundle->verify().value(); !bad.empty())
        throw fail(errc::corrupt, "{}: {} of its entries are damaged; nothing was written", remote::shown_url(place),
                   bad.size());
    base::replace_file(a.output, data, 0644).value();
    auto const about = bundle->info();
    if (a.as_json)
        print_json(json{{"from", remote::shown_url(place)},
                        {"digest", "sha256:" + base::sha256_of(base::byte_span{data}).hex()},
                        {"bytes", data.size()},
                        {"entries", about.entries},
                        {"signature", store::name_of(about.signed_by)}});
    else
        print(fmt::format("{}: {}, {}, signature {}\n", a.output, count_of(about.entries, "entry", "entries"),
                          bytes_text(data.size()), store::name_of(about.signed_by)));
    return ok;
}

// What a profile names and nobody has. Why it is not compiled is this command's doing, and no setting's.
void tell_absent(std::vector<thing> const& things, std::string_view nobody_has_it) {
    std::vector<thing> others;
    for (auto const& t : things) {
        if (*t.answer) continue;
        // A demand keeps what was said, and not its code.
        bool const only_absent = t.answer->error().message().find("KILN_JIT=forbid") != std::string::npos;
        if (!only_absent) others.push_back(t);
        else complain(fmt::format("'{}' for {}: {}", t.by.name, t.for_target.arch.name(), nobody_has_it));
    }
    complain_about(others);
}

// What profiles name, for the architectures they were recorded on or for others.
std::vector<thing> things_of(std::vector<std::string> const& profiles, std::vector<std::string> const& archs) {
    warmup::profile from;
    for (auto const& file : profiles) from.merge(warmup::read_profile(file).value());
    std::vector<thing> out;
    std::set<std::tuple<base::digest, std::string, std::string>> done;
    for (auto const& u : from.uses) {
        for (auto const& arch : archs.empty() ? std::vector{u.arch} : archs) {
            if (!done.emplace(u.recipe, arch, u.kind).second) continue;
            auto const t = target::parse(arch, parse_kind(u.kind).value()).value();
            out.push_back({.by = from.recipes.at(u.recipe), .for_target = t});
        }
    }
    return out;
}

struct to_push {
    std::vector<store::entry_ptr> entries;
    std::size_t absent = 0;  // named by a profile, and not in the cache
};

// Only what this machine has: nothing is compiled for it, and nobody else asked.
to_push entries_of_profiles(remote_arguments const& a) {
    auto things = things_of(a.profiles, a.archs);
    engine e{{.settings = {{"KILN_JIT", "forbid"}, {"KILN_REMOTE", "off"}}}};
    to_push out{.entries = {}, .absent = make_all(e, things, "look")};
    for (auto const& t : things) {
        if (*t.answer) out.entries.push_back(engine_detail::entry_of(**t.answer, e.internals().producer()));
    }
    tell_absent(things, "not in the cache of this machine; 'kiln replay' makes it");
    return out;
}

to_push chosen_for_push(remote_arguments const& a) {
    if (!a.profiles.empty()) return entries_of_profiles(a);
    return {.entries = a.cache ? entries_of_cache() : entries_of_bundle(a.bundle)};
}

// An option that would have no effect is no option: who gave it expects one.
void refuse_what_has_no_effect(remote_arguments const& a) {
    auto const refuse = [](bool given, std::string_view option, std::string_view why) {
        if (given) throw misuse{fmt::format("{} has no effect here: {}", option, why)};
    };
    if (!a.place.empty()) {
        constexpr std::string_view whole = "a bundle goes to and comes from a place as it is";
        refuse(a.cache, "--cache", whole);
        refuse(!a.profiles.empty(), "--profile", whole);
        refuse(!a.archs.empty(), "--arch", whole);
        refuse(!a.url.empty(), "--to", whole);
        return;
    }
    constexpr std::string_view attribute =
        "it is for a place like oci://host/repository:tag; of a server of KILN_REMOTE it "
        "is an attribute there";
    auto const& s = a.shipping;
    refuse(!s.token_file.empty(), "--token-file", attribute);
    refuse(!s.ca.empty(), "--ca", attribute);
    refuse(!s.endpoint.empty(), "--endpoint", attribute);
    refuse(!s.credentials_file.empty(), "--credentials-file", attribute);
    refuse(!a.key.empty(), "--key", "whom to believe is said by keys= in KILN_REMOTE");
    refuse(!a.archs.empty() && a.profiles.empty(), "--arch", "bundles and caches are sent whole; it is for --profile");
}

int push(remote_arguments const& a) {
    refuse_what_has_no_effect(a);
    if (!a.place.empty()) return ship(a);
    if (a.bundle.empty() == (!a.cache && a.profiles.empty()))
        throw misuse{std::string{"name a bundle, or say --cache, or --profile for what a profile names"}};
    auto const all = some_remotes(a.url);
    auto const [entries, absent] = chosen_for_push(a);
    std::uint64_t kept = 0, lost = 0, writers = 0;
    std::map<std::string, std::uint64_t> reasons;
    std::map<std::string, std::string> details;  // of the first of each reason
    for (auto const& r : all.usable) {
        if (r->options().writes == remote::writing::never) continue;
        ++writers;
        // Thousands of entries are not carried to a closed door one by one.
        if (auto const why = r->examine().why) {
            auto const trouble = plight_of(*r, why);
            lost += entries.size();
            reasons[std::string{remote::name_of(why.what)}] += entries.size();
            details.emplace(remote::name_of(why.what),
                            fmt::format("{}: {}; {}", r->options().at.text(), trouble.why, trouble.remedy));
            continue;
        }
        progress bar{"push", entries.size(), a.as_json ? progress::style::silent : progress::style::automatic};
        for (auto const& e : entries) {
            auto const done = r->put(e);
            if (done && done->kept) ++kept;
            else {
                ++lost;
                auto const reason = done ? std::string{done->why} : std::string{done.error().message()};
                ++reasons[reason];
                if (done && !done->detail.empty())
                    details.emplace(reason, fmt::format("{}: {}", r->options().at.text(), done->detail));
            }
            bar.step(e->about.name);
        }
    }
    if (writers == 0) throw fail(errc::forbidden, "every remote is read-only");
    std::uint64_t uploads = 0, bytes = 0;
    for (auto const& r : all.usable) {
        auto const counts = r->take_counts();
        auto const of = [&](char const* name) {
            auto const at = counts.fleet.find(name);
            return at == counts.fleet.end() ? std::uint64_t{0} : at->second;
        };
        uploads += of("uploads");
        bytes += of("bytes_out");
    }
    if (a.as_json) {
        json why = json::object();
        for (auto const& [reason, n] : reasons) why[reason] = n;
        print_json(json{{"uploaded", uploads},
                        {"there_already", kept - uploads},
                        {"failed", lost},
                        {"absent", absent},
                        {"bytes", bytes},
                        {"reasons", why}});
    } else {
        for (auto const& [reason, n] : reasons) {
            auto const more = details.find(reason);
            complain(fmt::format("{} not sent: {}{}", n, reason,
                                 more == details.end() ? "" : fmt::format(" ({})", more->second)));
        }
        print(fmt::format("{} sent ({}), {} were there already, {} not sent\n", uploads, bytes_text(bytes),
                          kept - uploads, lost));
    }
    return lost == 0 && absent == 0 ? ok : failed;
}

// By the profile, from the remotes alone: what is not there is said and not compiled.
int pull(remote_arguments const& a) {
    refuse_what_has_no_effect(a);
    if (!a.place.empty()) return fetch(a);
    if (a.profiles.empty()) throw misuse{std::string{"name profiles with --profile, or where a bundle is"}};
    (void)some_remotes();
    auto things = things_of(a.profiles, a.archs);
    engine e{{.settings = {{"KILN_JIT", "forbid"}}}};
    auto const absent = make_all(e, things, "pull");
    bool const writes = !a.output.empty() && absent < things.size();
    if (writes) write_bundle(e, things, a.output, {}).value();
    (void)e.internals().store->flush(base::clock::now() + std::chrono::seconds{10});
    auto const from_fleet = e.internals().requests->status().from_fleet;
    if (a.as_json) {
        json list = json::array();
        for (auto const& t : things) list.push_back(describe(t));
        print_json(json{{"ready", things.size() - absent},
                        {"from_fleet", from_fleet},
                        {"absent", absent},
                        {"things", std::move(list)}});
    } else {
        tell_absent(things,
                    "neither here nor on a server; push it from where it was made, or let the program compile it");
        print(fmt::format("{}{} of {} are here, {} of them fetched now\n", writes ? a.output + ": " : "",
                          things.size() - absent, things.size(), from_fleet));
    }
    return absent == 0 ? ok : failed;
}

// A server that can be asked for what it has, as each remote that is there sees it: they may differ in whom they believe.
struct looked_through {
    std::string where;
    std::vector<remote::upkeep> by;
    bool is_written = false;  // by one of them
    std::size_t writer = 0;   // which of them that is, with a token of his own
};

looked_through folder_of(remote_arguments const& a) {
    auto const all = remotes(a.url);
    // Who may remove files is for the file system to say.
    looked_through out{.where = a.folder, .by = {}, .is_written = true};
    for (auto const& r : all.usable) out.by.push_back(remote::upkeep::of_folder(a.folder, r->options()));
    remote::remote_options const plain{.at = {}, .in = remote::belief::server, .space = {}};
    if (out.by.empty()) out.by.push_back(remote::upkeep::of_folder(a.folder, plain));
    return out;
}

std::vector<looked_through> servers_for(remote_arguments const& a) {
    std::vector<looked_through> out;
    if (!a.folder.empty()) {
        out.push_back(folder_of(a));
        return out;
    }
    std::optional<error> cannot;
    for (auto const& r : some_remotes(a.url).usable) {
        auto one = remote::upkeep::open(r->options());
        if (!one) {
            cannot = one.error();
            continue;
        }
        auto const where = r->options().at.text();
        auto at = std::ranges::find(out, where, &looked_through::where);
        if (at == out.end()) at = out.insert(at, {.where = where, .by = {}});
        bool const writes = r->options().writes == remote::writing::allowed;
        if (writes && !at->is_written) at->writer = at->by.size();
        at->is_written = at->is_written || writes;
        at->by.push_back(*std::move(one));
    }
    if (cannot && out.empty()) throw *cannot;
    if (cannot) complain(*cannot);
    return out;
}

int prune(remote_arguments const& a) {
    auto const age = age_in(a.older_than).count();
    std::uint64_t removed = 0, left = 0;
    auto servers = servers_for(a);
    // Who only reads there removes nothing either.
    auto const kept = std::ranges::stable_partition(servers, &looked_through::is_written);
    if (kept.size() == servers.size())
        throw fail(errc::forbidden,
                   "every remote is read-only; prune where one may write, or with --dir on the server");
    for (auto const& server : kept) complain(fmt::format("{}: read-only, left as it is", server.where));
    servers.erase(kept.begin(), kept.end());
    for (auto& server : servers) {
        auto& writer = server.by[server.writer];
        auto const all = writer.list().value();
        progress bar{"prune", all.size(), a.as_json ? progress::style::silent : progress::style::on_a_terminal};
        for (auto const& o : all) {
            if (!o.age)
                throw fail(errc::unsupported,
                           "{} does not say when its objects were used: its policy counts uses instead (allkeys-lfu), "
                           "or this user may "
                           "not ask (OBJECT); let the server evict by itself, or set ttl= for what is written",
                           server.where);
            bool const old = *o.age >= age;
            if (old && !a.dry_run) writer.remove(o).value();
            ++(old ? removed : left);
            bar.step(o.key);
        }
    }
    if (a.as_json) print_json(json{{"removed", removed}, {"left", left}, {"dry_run", a.dry_run}});
    else print(fmt::format("{} {}, {} left\n", removed, a.dry_run ? "would be removed" : "removed", left));
    return ok;
}

// Sound where one of those who are there believes it.
remote::checked_object checked(looked_through& server, remote::kept_object const& what) {
    remote::checked_object out;
    for (auto& one : server.by) {
        out = one.check(what).value();
        if (!out.why) break;
    }
    return out;
}

// Who signed how much, and how much of it nobody here believes.
struct signed_share {
    std::uint64_t packets = 0;
    std::uint64_t bad = 0;
};

int verify(remote_arguments const& a) {
    if (a.sample && *a.sample < 1) throw misuse{std::string{"--sample is the number of packets: 1 or more"}};
    auto servers = servers_for(a);
    struct item {
        looked_through* where;
        remote::kept_object what;
    };
    std::vector<item> all;
    for (auto& server : servers) {
        for (auto& o : server.by.front().list().value()) all.push_back({&server, std::move(o)});
    }
    if (a.sample && static_cast<std::size_t>(*a.sample) < all.size()) {
        std::ranges::shuffle(all, std::minstd_rand{std::random_device{}()});
        all.resize(static_cast<std::size_t>(*a.sample));
    }
    json bad = json::array();
    std::map<std::string, signed_share> signers;
    progress bar{"verify", all.size(), a.as_json ? progress::style::silent : progress::style::automatic};
    for (auto const& [where, what] : all) {
        auto const seen = checked(*where, what);
        json by = json::array();
        for (auto const& signer : seen.signers) {
            auto const id = store::to_hex(signer);
            by.push_back(id);
            ++signers[id].packets;
            signers[id].bad += seen.why ? 1 : 0;
        }
        if (seen.why) {
            if (!a.as_json)
                complain(fmt::format("{}: {}{}", what.key, store::name_of(*seen.why),
                                     by.empty() ? "" : ", signed by " + by.front().get<std::string>()));
            bad.push_back({{"url", where->where},
                           {"key", what.key},
                           {"reason", store::name_of(*seen.why)},
                           {"signed_by", std::move(by)}});
        }
        bar.step(what.key);
    }
    bool const good = bad.empty();
    json by_signer = json::object();
    for (auto const& [id, share] : signers) by_signer[id] = {{"packets", share.packets}, {"bad", share.bad}};
    if (a.as_json) {
        print_json(json{{"checked", all.size()}, {"bad", std::move(bad)}, {"signed_by", std::move(by_signer)}});
        return good ? ok : failed;
    }
    print(fmt::format("{} checked, {} bad\n", count_of(all.size(), "packet"), bad.size()));
    for (auto const& [id, share] : signers)
        print(fmt::format("  signed by {}: {}, {} bad\n", id, share.packets, share.bad));
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
    remote.add("push", push, [](CLI::App& app, remote_arguments& a) {
        app.add_option("BUNDLE", a.bundle, "a bundle");
        app.add_option("PLACE", a.place, "where the whole bundle goes: oci://, https://, s3://");
        add_shipping(app, a);
        app.add_flag("--cache", a.cache, "what the cache directory has");
        app.add_option("--profile", a.profiles, "of the cache only what profiles name");
        app.add_option("--arch", a.archs, "architectures")->delimiter(',');
        app.add_option("--to", a.url, "only to this one");
    });
    remote.add("pull", pull, [](CLI::App& app, remote_arguments& a) {
        app.add_option("PLACE", a.place,
                       "where a whole bundle is: oci://, https://, s3://, or - to read it from stdin");
        app.add_option("--key", a.key, "who must have signed the bundle");
        add_shipping(app, a);
        app.add_option("--profile", a.profiles, "profiles");
        app.add_option("--arch", a.archs, "architectures")->delimiter(',');
        app.add_option("-o,--output", a.output, "a bundle of it");
    });
    remote.add("prune", prune, [](CLI::App& app, remote_arguments& a) {
        app.add_option("--older-than", a.older_than, "age")->required();
        app.add_flag("--dry-run,-n", a.dry_run, "only say what would happen");
        app.add_option("--dir", a.folder, "the folder on the server's disk");
        app.add_option("URL", a.url, "only this one");
    });
    remote.add("verify", verify, [](CLI::App& app, remote_arguments& a) {
        app.add_option("--sample", a.sample, "so many of them");
        app.add_option("--dir", a.folder, "the folder on the server's disk");
        app.add_option("URL", a.url, "only this one");
    });
}

}  // namespace kiln::cli
