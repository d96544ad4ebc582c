// SPDX-License-Identifier: Apache-2.0
// kiln remote prune and verify: everything that a server has.
#include "remote_commands.hpp"

#include "age.hpp"
#include "misuse.hpp"
#include "progress.hpp"
#include "remote/upkeep.hpp"

#include <algorithm>
#include <random>

namespace kiln::cli {

namespace {

// A server that can be asked for what it has, as each remote that is there sees it: they may differ in whom they believe.
struct looked_through {
    std::string where;
    std::vector<remote::upkeep> by;
    bool is_written = false;  // by one of them
    std::size_t writer = 0;   // which of them that is, with a token of his own
};

looked_through folder_of(remote_arguments const& a) {
    auto const all = remotes(a.url, remote::purpose::upkeep);
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
    for (auto const& r : some_remotes(a.url, remote::purpose::upkeep).usable) {
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

error without_ages(std::string_view where) {
    if (where.starts_with("s3://"))
        return fail(errc::unsupported,
                    "{} does not say when its objects were written (LastModified, and Date of its answer); "
                    "give the bucket a lifecycle rule",
                    where);
    return fail(errc::unsupported,
                "{} does not say when its objects were used: its policy counts uses instead (allkeys-lfu), or this "
                "user may not ask (OBJECT); let the server evict by itself, or set ttl= for what is written",
                where);
}

}  // namespace

int remote_prune(remote_arguments const& a) {
    auto const age = age_in(a.older_than).count();
    std::uint64_t removed = 0, left = 0, foreign = 0;
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
            if (o.what == remote::kind_of_object::foreign) {
                ++foreign;
                bar.step(o.key);
                continue;
            }
            // What a clock that was wrong wrote may have a time to come.
            bool const everything = age == 0;
            if (!o.age && !everything) throw without_ages(server.where);
            bool const old = everything || *o.age >= age;
            if (old && !a.dry_run) writer.remove(o).value();
            ++(old ? removed : left);
            bar.step(o.key);
        }
    }
    if (foreign > 0)
        complain(fmt::format("{} named like packets and not Kiln's: left as they are; is {} the right folder?",
                             count_of(foreign, "file"), a.folder));
    if (a.as_json) print_json(json{{"removed", removed}, {"left", left}, {"foreign", foreign}, {"dry_run", a.dry_run}});
    else print(fmt::format("{} {}, {} left\n", removed, a.dry_run ? "would be removed" : "removed", left));
    return ok;
}

namespace {

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

}  // namespace

int remote_verify(remote_arguments const& a) {
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
    std::uint64_t probes = 0;
    std::map<std::string, signed_share> signers;
    progress bar{"verify", all.size(), a.as_json ? progress::style::silent : progress::style::automatic};
    for (auto const& [where, what] : all) {
        auto const seen = checked(*where, what);
        probes += seen.is_probe ? 1 : 0;
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
        print_json(json{
            {"checked", all.size()}, {"probes", probes}, {"bad", std::move(bad)}, {"signed_by", std::move(by_signer)}});
        return good ? ok : failed;
    }
    print(fmt::format("{} checked, {} bad\n", count_of(all.size(), "packet"), bad.size()));
    for (auto const& [id, share] : signers)
        print(fmt::format("  signed by {}: {}, {} bad\n", id, share.packets, share.bad));
    if (probes > 0) print(fmt::format("  left by 'kiln doctor': {}\n", probes));
    return good ? ok : failed;
}

}  // namespace kiln::cli
