// SPDX-License-Identifier: Apache-2.0
//
// What a store tier is. A tier finds and keeps immutable entries: named bytes under digests. It knows
// nothing of CUDA. Three outcomes of a lookup are kept apart: a hit, a miss (with a reason), and a fault,
// which is an error of the tier itself and never of the caller. All functions are safe from any thread.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/digest.hpp"
#include "store/statistics.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::store {

using base::digest;

// Where an entry lives. Three digests, from coarse to exact:
//   family   what was asked for, whoever compiles it and for whatever target: source, names, options, headers in memory
//   request  family + target + artifact kind + compiler identity: what is known before compiling
//   key      request + every header that was really read: what the bytes depend on
// A unit that reads no file has its key known in advance and is found directly; for the others a tier lists
// the few entries of the request and the caller checks their headers.
struct address {
    digest family;
    digest request;
    digest key;
    bool operator==(address const&) const = default;
};

// The plain facts kept beside the payload: readable without decoding it, checked against what is expected.
struct label {
    address at;
    std::string name;       // unit or spec name
    std::string target;     // "sm_90"
    std::string kind;       // "cubin", "ptx", "ltoir"
    std::string toolchain;  // "nvrtc 31b78904... builtins 84f1c503..."
    std::string producer;   // "kiln 0.1.0": nothing that differs between hosts
    std::string licence;    // of the sources, where given
};

// How far from the caller a tier is. Ordered: what is nearer is asked first.
enum class location { process, machine, shipped, fleet };
[[nodiscard]] std::string_view name_of(location where) noexcept;

// What an entry may be used for because of where it came from. It stays with the entry wherever the entry is kept in this
// process: what a bundle served once is served the second time, from memory, by the bundle's rules. As made here by default.
struct origin {
    location where = location::process;
    bool headers_sealed =
        false;                 // it serves where headers it was made from are absent; one that differs is always a miss
    bool any_compiler = true;  // it serves whichever compiler this machine has
    bool operator==(origin const&) const = default;
};
// Everything that `less` allows, `more` allows too. Where they are from does not matter.
[[nodiscard]] constexpr bool allows(origin const& more, origin const& less) noexcept {
    return (more.headers_sealed || !less.headers_sealed) && (more.any_compiler || !less.any_compiler);
}

struct entry {
    label about;
    base::bytes payload;
    origin from{};  // not part of the stored bytes
};
using entry_ptr = std::shared_ptr<entry const>;

struct summary {
    label about;
    std::uint64_t bytes = 0;  // as stored
    origin from{};
};

// What the caller knows must be true of a hit. Empty text = not checked.
struct expectation {
    std::string target;
    std::string kind;
    std::string toolchain;
};

// Stable codes: they appear in events, counters and JSON.
enum class miss {
    absent,
    disabled,   // KILN_DISABLE, or the tier is resting after faults
    truncated,  // shorter than it says
    trailing,   // longer than it says
    bad_magic,
    newer_format,  // left alone
    bad_header,    // header digest, or a field out of range
    bad_digest,    // payload does not match
    wrong_key,     // a valid entry of another address
    wrong_target,
    wrong_kind,
    wrong_toolchain,
    not_regular,     // directory, FIFO, device, symlink
    unreadable,      // there, and not for us to read
    open_to_others,  // to write: whoever they are, they could make us run their code
    too_large,
    bad_signature,
    not_signed,   // by anybody, where signatures are asked for
    unknown_key,  // signed by nobody who is trusted
    old_epoch,    // signed before what is still believed
    refused,      // rejected earlier by the caller: the driver would not load it
    recache,      // KILN_RECACHE: persistent tiers are not asked
};
[[nodiscard]] std::string_view name_of(miss why) noexcept;
// True for every reason but absent, disabled and recache: something was there and was not used.
[[nodiscard]] constexpr bool is_rejection(miss why) noexcept {
    return why != miss::absent && why != miss::disabled && why != miss::recache;
}

struct lookup {
    entry_ptr hit;            // null on a miss
    miss why = miss::absent;  // meaningful on a miss
};

// Up to where a hit is copied: into the tiers asked before this one that can be written and are no further away.
enum class fill { nothing, process, machine };

// What a tier is. All that the store and the engine decide by: names are for people.
struct tier_traits {
    location where = location::machine;
    bool writable = false;
    bool persistent = false;      // outlives the process; written in the background
    bool headers_sealed = false;  // see origin
    bool any_compiler = false;
    fill on_hit = fill::process;
    bool lists_families = true;  // false: what it has is found by request only
    bool answers_later = false;  // it is asked by ask(), after everything nearer, and nobody looks into it in passing
};
// What entries of such a tier say of themselves. Tiers of the process keep what an entry said before.
[[nodiscard]] constexpr origin origin_of(tier_traits const& t) noexcept {
    return {.where = t.where, .headers_sealed = t.headers_sealed, .any_compiler = t.any_compiler};
}

struct put_outcome {
    bool kept = true;        // it can be found from now on, these bytes or others as good
    std::string_view why{};  // where not, a stable code: "full", "too-large", "resting", "refused", "unwritable"
    std::string detail{};    // and a sentence for people, where there is more to say
};

// Held while this process makes what others wait for. Letting go of it without having published lets one of them try.
class claim {
public:
    virtual ~claim() = default;
    // It is made, in so long, and on its way to where others find it: whatever made it is free for the next one.
    virtual void made(std::chrono::nanoseconds took) noexcept = 0;
    // Nobody will find it: the others need not wait for one another either.
    virtual void cannot_publish(std::string_view why) noexcept = 0;
};
using claim_ptr = std::shared_ptr<claim>;

enum class urgency {
    nobody_waits,
    somebody_waits,        // he has a compiler of his own, and gets to it before long
    nothing_else_will_do,  // there is no compiler, or it must not be used
};
enum class claiming { no, wanted };

// What is asked of a tier that answers later.
struct question {
    digest family;
    std::optional<digest> request{};  // nullopt: no compiler here, so none is known
    std::optional<digest> key{};      // where it is known in advance
    expectation expected{};
    unsigned nth = 0;                          // of the entries of a request that were made from different headers
    std::chrono::milliseconds compile{1'000};  // what making it here would take
    urgency how = urgency::somebody_waits;
    claiming claims = claiming::no;
    std::size_t makers = 1;  // so many can be made here at a time: no more is claimed
    std::string unit{};      // what people call it: for events
    bool repeats = false;  // asked before, by somebody who did not wait then: no second question where they are counted
};

struct answer {
    entry_ptr hit{};          // null on a miss
    miss why = miss::absent;  // meaningful on a miss
    claim_ptr mine{};         // on a miss: it is for this process to make it
    std::string_view late{};  // a stable code: the wait is over, and it is to be made here
    bool is_last = true;      // false: there may still be another answer
    std::string detail{};     // what a server said, for people
};
using answered = std::function<void(answer)>;

class tier {
public:
    virtual ~tier() = default;

    // "memory", "disk", "bundle", ...: for people, events and JSON. Nothing is decided by it.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    [[nodiscard]] virtual tier_traits traits() const noexcept = 0;
    // Which of its name, where there may be several: for people.
    [[nodiscard]] virtual std::string which() const { return std::string{name()}; }

    // Why nobody should wait for what is being written to it; empty where there is no reason. Returns at once.
    [[nodiscard]] virtual std::string_view why_in_vain() const noexcept { return {}; }

    // For tiers that answer later: whatever would answer has been at one thing for too long to wait for, and keeps no time either. Returns at
    // once.
    [[nodiscard]] virtual bool is_held_up(urgency how) const noexcept {
        (void)how;
        return false;
    }

    // Everything is checked before a hit is returned. An entry that fails is removed where the tier can. Only looking: an
    // entry stays young by used().
    [[nodiscard]] virtual result<lookup> find(address const& at, expectation const& expected) = 0;

    // What was found was what the caller needed. A tier that evicts keeps it longer.
    virtual void used(address const& at) { (void)at; }

    // What this tier has of a family, newest first; with `request`, only that request. Costs no payload reads.
    [[nodiscard]] virtual result<std::vector<summary>> list(digest const& family,
                                                            std::optional<digest> const& request) = 0;

    // Idempotent. A valid entry already there may be kept; an invalid one is replaced. Not to keep something is an answer and
    // no error; errc::forbidden where nothing can ever be put.
    [[nodiscard]] virtual result<put_outcome> put(entry_ptr const& what) = 0;

    // For tiers that answer later: returns at once. `then` is called on another thread, or on this one before the return; once,
    // or twice where the first was not the last. It must not block and must not throw.
    virtual void ask(question const& what, answered then) {
        (void)what;
        then({});
    }

    // What it counted since the last call.
    [[nodiscard]] virtual statistics take_counts() { return {}; }

    // The caller could not use this entry (the driver refused it): never offer these bytes again.
    virtual void reject(address const& at) = 0;
};

}  // namespace kiln::store
