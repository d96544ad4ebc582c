// SPDX-License-Identifier: Apache-2.0
//
// What a store tier is. A tier finds and keeps immutable entries: named bytes under digests. It knows
// nothing of CUDA. Three outcomes of a lookup are kept apart: a hit, a miss (with a reason), and a fault,
// which is an error of the tier itself and never of the caller. All functions are safe from any thread.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/digest.hpp"

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
    std::string toolchain;  // "nvrtc 13.0 31b78904841e6706..."
    std::string producer;   // "kiln 0.1.0": nothing that differs between hosts
    std::string licence;    // of the sources, where given
};

struct entry {
    label about;
    base::bytes payload;
};
using entry_ptr = std::shared_ptr<entry const>;

struct summary {
    label about;
    std::uint64_t bytes = 0;  // as stored
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
    not_regular,  // directory, FIFO, device, symlink
    too_large,
    bad_signature,
    refused,  // rejected earlier by the caller: the driver would not load it
    recache,  // KILN_RECACHE: persistent tiers are not asked
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

struct capabilities {
    bool writable = false;
    bool persistent = false;  // outlives the process
};

class tier {
public:
    virtual ~tier() = default;

    // "memory", "disk", "bundle", later "fleet": used in events and JSON.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    [[nodiscard]] virtual capabilities can() const noexcept = 0;

    // Everything is checked before a hit is returned. An entry that fails is removed where the tier can.
    [[nodiscard]] virtual result<lookup> find(address const& at, expectation const& expected) = 0;

    // What this tier has of a family, newest first; with `request`, only that request. Costs no payload reads.
    [[nodiscard]] virtual result<std::vector<summary>> list(digest const& family,
                                                            std::optional<digest> const& request) = 0;

    // Idempotent. A valid entry already there may be kept; an invalid one is replaced.
    [[nodiscard]] virtual result<void> put(entry_ptr const& what) = 0;

    // The caller could not use this entry (the driver refused it): never offer these bytes again.
    virtual void reject(address const& at) noexcept = 0;
};

}  // namespace kiln::store
