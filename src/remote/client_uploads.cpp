// SPDX-License-Identifier: Apache-2.0
// Putting: the first slot that is empty or has the same key, and nothing is ever read, changed and written back.
#include "remote/client.hpp"

namespace kiln::remote {

namespace {

constexpr std::chrono::seconds writing_rests{30};
// Every slot, each replaced once: who still says that something is there, and does not give it, is not reasoned with.
constexpr unsigned most_attempts = 2 * slots;

}  // namespace

struct client::upload {
    parcel what;
    std::function<void(result<store::put_outcome>)> then;
    unsigned slot = 0;
    digest name;
    unsigned attempts = 0;
};

void client::put(parcel what, std::function<void(result<store::put_outcome>)> then) {
    note_token();
    auto u = std::make_shared<upload>();
    u->what = std::move(what);
    u->then = std::move(then);
    if (of_.guard.is_open()) return not_uploaded(u, {trouble::busy, "the server does not answer"});
    if (writing_denied_ && !has_another_token())
        return not_uploaded(u, {trouble::denied, "the server does not let us write"});
    if (base::clock::now() < writing_rests_until_) return not_uploaded(u, {trouble::full, "the server is full"});
    try_slot(u, put_rule::create);
}

void client::try_slot(std::shared_ptr<upload> const& u, put_rule rule) {
    if (++u->attempts > most_attempts)
        return not_uploaded(
            u, {trouble::protocol, "the server has what it does not give, and does not let it be replaced"});
    u->name = object_name(of_.rules.options.space, u->what.about.at.request, u->slot);
    // What failed a check is replaced, also where otherwise only what is not there is made.
    if (bad_.contains(u->name)) rule = put_rule::replace;
    of_.bytes.put(u->name, u->what.packet, rule, [this, u, alive = alive_](put_answer a) {
        if (!*alive) return;
        if (a.state != put_state::failed) of_.guard.took();
        switch (a.state) {
            case put_state::stored: return uploaded(u);
            case put_state::failed: return not_uploaded(u, a.why);
            case put_state::exists: break;
        }
        of_.bytes.get({u->name}, [this, u, alive](std::size_t, got g) {
            if (*alive) settle(u, std::move(g));
        });
    });
}

// Something is there already: the same, another's, or nothing that counts.
void client::settle(std::shared_ptr<upload> const& u, got there) {
    auto const& at = u->what.about.at;
    if (there.state == presence::failed) return not_uploaded(u, there.why);
    if (there.state != presence::here) return try_slot(u, put_rule::replace);
    auto found = open_packet(std::move(there.packet), of_.rules.believed,
                             {.family = at.family, .request = at.request, .key = {}, .expected = {}},
                             of_.rules.options.most_entry);
    if (!found.what) return try_slot(u, put_rule::replace);
    if (found.what->about.at.key != at.key) {
        if (++u->slot < slots) return try_slot(u, put_rule::create);
        u->slot = last_resort(at.key);
        return try_slot(u, put_rule::replace);
    }
    bool const differs = found.payload != u->what.payload;
    if (of_.rules.replaces || of_.refused.has(at.key, found.payload)) return try_slot(u, put_rule::replace);
    if (differs) of_.counts.divergent();
    if (claims_.contains(at.request)) end_claim(at.request);
    u->then(store::put_outcome{});
}

void client::uploaded(std::shared_ptr<upload> const& u) {
    auto const& about = u->what.about;
    of_.counts.add("uploads");
    of_.counts.add("bytes_out", u->what.packet->size());
    of_.events.emit({.kind = event_kind::published,
                     .unit = about.name,
                     .target = about.target,
                     .reason = "fleet",
                     .key = about.at.key.prefix(),
                     .value = static_cast<std::int64_t>(u->what.packet->size())});
    absent_.erase(u->name);
    bad_.erase(u->name);
    if (claims_.contains(about.at.request)) end_claim(about.at.request);
    put_by_family(u);
    u->then(store::put_outcome{});
}

// For machines without a compiler. What it costs is known: nobody waits for it, and the caller is not told of its end. The first stays,
// unless nobody believes it any more: those who would find out cannot put another.
void client::put_by_family(std::shared_ptr<upload> const& u) {
    auto const& about = u->what.about;
    auto const name = family_name(of_.rules.options.space, about.at.family, about.target, about.kind);
    of_.bytes.put(name, u->what.packet, put_rule::create, [this, u, name, alive = alive_](put_answer const& a) {
        if (!*alive || a.state != put_state::exists) return;
        of_.bytes.get({name}, [this, u, name, alive](std::size_t, got g) {
            if (!*alive || g.state == presence::failed || is_sound(*u, std::move(g))) return;
            of_.bytes.put(name, u->what.packet, put_rule::replace, [](put_answer const&) {});
        });
    });
}

// What is there serves whoever asks for the family.
bool client::is_sound(upload const& u, got there) const {
    if (there.state != presence::here) return false;
    auto const& about = u.what.about;
    wanted const asked_for{.family = about.at.family,
                           .expected = {.target = about.target, .kind = about.kind, .toolchain = {}}};
    auto const& how = of_.rules;
    return open_packet(std::move(there.packet), how.believed, asked_for, how.options.most_entry).what != nullptr;
}

void client::not_uploaded(std::shared_ptr<upload> const& u, failure const& why) {
    auto const& at = u->what.about.at;
    auto const claim = claims_.find(at.request);
    bool const only_writing = why.what == trouble::full || why.what == trouble::denied;
    bool const was_told = why.what == trouble::full ? base::clock::now() < writing_rests_until_ : writing_denied_;
    of_.counts.add("dropped");
    if (why.what == trouble::full && !was_told) writing_rests_until_ = base::clock::now() + writing_rests;
    if (why.what == trouble::denied) writing_denied_ = true;
    if (only_writing && !was_told) {
        of_.counts.error(name_of(why.what));
        of_.events.emit({.kind = event_kind::fault,
                         .reason = "fleet",
                         .detail = fmt::format("{}: {}: nothing is written: {}", name_of(why.what),
                                               of_.rules.options.at.text(), why.detail)});
    }
    // The others are sent all the same.
    bool const only_this = why.what == trouble::too_large;
    if (only_this) {
        of_.counts.error(name_of(why.what));
        of_.events.emit({.kind = event_kind::fault,
                         .unit = u->what.about.name,
                         .target = u->what.about.target,
                         .reason = "fleet",
                         .detail = fmt::format("{}: {} takes nothing of {} bytes: {}", name_of(why.what),
                                               of_.rules.options.at.text(), u->what.packet->size(), why.detail)});
    }
    if (!only_writing && !only_this && !of_.guard.is_open()) failed(why);
    if (claim != claims_.end()) {
        if (only_writing || only_this) cannot_publish(at.request, name_of(why.what));
        else end_claim(at.request);
    }
    u->then(store::put_outcome{.kept = false, .why = name_of(why.what), .detail = why.detail});
}

}  // namespace kiln::remote
