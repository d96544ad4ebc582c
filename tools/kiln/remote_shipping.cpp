// SPDX-License-Identifier: Apache-2.0
// kiln remote push and pull: entries to and from the remotes, whole bundles to and from a place.
#include "remote_commands.hpp"

#include "engine/pack_verbs.hpp"
#include "making.hpp"
#include "misuse.hpp"
#include "progress.hpp"
#include "store/bundle.hpp"
#include "store/maintenance.hpp"
#include "warmup/profile_file.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

namespace kiln::cli {

namespace {

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

std::vector<thing> things_in(std::vector<std::string> const& profiles, std::vector<std::string> const& archs) {
    warmup::profile from;
    for (auto const& file : profiles) from.merge(warmup::read_profile(file).value());
    return things_of(from, archs).value();
}

struct to_push {
    std::vector<store::entry_ptr> entries;
    std::size_t absent = 0;  // named by a profile, and not in the cache
};

// Only what this machine has: nothing is compiled for it, and nobody else asked.
to_push entries_of_profiles(remote_arguments const& a) {
    auto things = things_in(a.profiles, a.archs);
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

struct sent_so_far {
    std::uint64_t kept = 0, lost = 0;
    std::map<std::string, std::uint64_t> reasons;
    std::map<std::string, std::string> details;  // of the first of each reason

    void note_lost(std::size_t n, std::string const& reason, std::string detail) {
        lost += n;
        reasons[reason] += n;
        if (!detail.empty()) details.emplace(reason, std::move(detail));
    }
};

std::string named(remote::remote_tier const& server, std::string_view said) {
    return fmt::format("{}: {}", server.options().at.text(), said);
}

// A server that has asked for a pause is left alone until somebody looks for something there that nothing else will give.
bool answers_again(remote::remote_tier& to) {
    constexpr std::chrono::seconds longest{90};
    constexpr std::chrono::milliseconds between{250};
    for (auto const until = base::clock::now() + longest; base::clock::now() < until;) {
        std::this_thread::sleep_for(between);
        auto const nobody_has_it = base::sha256_of("kiln push " + base::random_name());
        auto const seen = to.find({nobody_has_it, nobody_has_it, nobody_has_it}, {});
        if (seen && seen->why == store::miss::absent) return true;
    }
    return false;
}

// What it had no time for is sent once more when it has. Given up where it takes none of it three times running, where it is gone, and
// where it refuses what it had time for.
void push_all(remote::remote_tier& to, std::vector<store::entry_ptr> left, sent_so_far& sent, progress& bar) {
    auto const busy = std::string{remote::name_of(remote::trouble::busy)};
    std::string said;  // at the first of these
    bool is_told = false;
    for (int in_vain = 0; !left.empty();) {
        auto const before = sent;
        std::vector<store::entry_ptr> again;
        for (auto const& e : left) {
            auto const done = to.put(e);
            auto const reason = !done ? std::string{done.error().message()} : std::string{done->why};
            if (done && done->kept) ++sent.kept;
            else if (reason == busy) {
                if (again.empty()) said = done->detail;
                again.push_back(e);
                continue;
            } else sent.note_lost(1, reason, done && !done->detail.empty() ? named(to, done->detail) : "");
            bar.step(e->about.name);
        }
        left = std::move(again);
        if (left.empty()) return;
        bool const takes_some = sent.kept > before.kept;
        if (takes_some) in_vain = 0;
        else if (++in_vain == 3 || sent.lost > before.lost) return sent.note_lost(left.size(), busy, named(to, said));
        if (auto const why = to.examine().why; why && why.what != remote::trouble::busy) {
            auto const trouble = plight_of(to, why);
            return sent.note_lost(left.size(), std::string{remote::name_of(why.what)},
                                  named(to, fmt::format("{}; {}", trouble.why, trouble.remedy)));
        }
        if (!is_told) complain(fmt::format("{}; {} not sent yet, once more in a moment", named(to, said), left.size()));
        is_told = true;
        if (!answers_again(to)) return sent.note_lost(left.size(), busy, named(to, said));
    }
}

}  // namespace

int remote_push(remote_arguments const& a) {
    refuse_what_has_no_effect(a);
    if (!a.place.empty()) return ship(a);
    if (a.bundle.empty() == (!a.cache && a.profiles.empty()))
        throw misuse{std::string{"name a bundle, or say --cache, or --profile for what a profile names"}};
    auto const all = some_remotes(a.url);
    auto const [entries, absent] = chosen_for_push(a);
    sent_so_far sent;
    std::uint64_t writers = 0;
    for (auto const& r : all.usable) {
        if (r->options().writes == remote::writing::never) continue;
        ++writers;
        // Thousands of entries are not carried to a closed door one by one.
        if (auto const why = r->examine().why) {
            auto const trouble = plight_of(*r, why);
            sent.note_lost(entries.size(), std::string{remote::name_of(why.what)},
                           named(*r, fmt::format("{}; {}", trouble.why, trouble.remedy)));
            continue;
        }
        progress bar{"push", entries.size(), a.as_json ? progress::style::silent : progress::style::automatic};
        push_all(*r, entries, sent, bar);
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
    // What a slow server took when nobody waited for it any more is not among what was kept.
    auto const there_already = sent.kept - std::min(sent.kept, uploads);
    if (a.as_json) {
        json why = json::object();
        for (auto const& [reason, n] : sent.reasons) why[reason] = n;
        print_json(json{{"uploaded", uploads},
                        {"there_already", there_already},
                        {"failed", sent.lost},
                        {"absent", absent},
                        {"bytes", bytes},
                        {"reasons", why}});
    } else {
        for (auto const& [reason, n] : sent.reasons) {
            auto const more = sent.details.find(reason);
            complain(fmt::format("{} not sent: {}{}", n, reason,
                                 more == sent.details.end() ? "" : fmt::format(" ({})", more->second)));
        }
        print(fmt::format("{} sent ({}), {} were there already, {} not sent\n", uploads, bytes_text(bytes),
                          there_already, sent.lost));
    }
    return sent.lost == 0 && absent == 0 ? ok : failed;
}

namespace {

// Those that could not be asked, a line each.
bool complain_of_unreachable(std::vector<remote_ptr> const& all) {
    bool any = false;
    for (auto const& r : all) {
        auto const why = r->examine().why;
        if (!why) continue;
        auto const trouble = plight_of(*r, why);
        complain(fmt::format("{}: {}; {}", r->options().at.text(), trouble.why, trouble.remedy));
        any = true;
    }
    return any;
}

}  // namespace

// By the profile, from the remotes alone: what is not there is said and not compiled.
int remote_pull(remote_arguments const& a) {
    refuse_what_has_no_effect(a);
    if (!a.place.empty()) return fetch(a);
    if (a.profiles.empty()) throw misuse{std::string{"name profiles with --profile, or where a bundle is"}};
    auto const remotes = some_remotes();
    auto things = things_in(a.profiles, a.archs);
    engine e{{.settings = {{"KILN_JIT", "forbid"}}}};
    auto const absent = make_all(e, things, "pull");
    bool const writes = !a.output.empty() && absent < things.size();
    if (writes) write_bundle(e, things, a.output, {}).value();
    (void)e.internals().store->flush(base::clock::now() + std::chrono::seconds{10});
    auto const from_fleet = e.internals().requests->status().from_fleet;
    // What a server that is down has is not known.
    bool const unasked = absent > 0 && complain_of_unreachable(remotes.usable);
    if (a.as_json) {
        json list = json::array();
        for (auto const& t : things) list.push_back(describe(t));
        print_json(json{{"ready", things.size() - absent},
                        {"from_fleet", from_fleet},
                        {"absent", absent},
                        {"things", std::move(list)}});
    } else {
        tell_absent(things, unasked ? "neither here nor on a server that answers"
                                    : "neither here nor on a server; push it from where it was made, or let the "
                                      "program compile it");
        print(fmt::format("{}{} of {} are here, {} of them fetched now\n", writes ? a.output + ": " : "",
                          things.size() - absent, things.size(), from_fleet));
    }
    return absent == 0 ? ok : failed;
}

}  // namespace kiln::cli
