// SPDX-License-Identifier: Apache-2.0
//
// A bundle: one immutable file (.kiln) of many entries for many targets; see docs/formats/bundle.md. Opening reads
// the header and the footer and nothing else; pages of the index and blobs are read and checked when they are needed.
// A bundle is never written in place: a reader keeps its descriptor while a new file takes the name.
#pragma once

#include "base/fork_guard.hpp"
#include "store/bundle_format.hpp"
#include "store/entry_format.hpp"
#include "store/refusals.hpp"
#include "store/signing.hpp"
#include "store/tier.hpp"

#include <functional>
#include <map>
#include <set>

namespace kiln::store {

// packed: as one, see packed_bundle.hpp.
enum class bundle_form { plain, packed };

// Collects entries and writes them sorted, so that the same entries give the same file whatever their order.
class bundle_writer {
public:
    // Not packed by default: what ships a bundle packs it once more, and a hit is faster by a third.
    explicit bundle_writer(packing how = packing::never) : how_{how} {}

    // Free text about the bundle as a whole: "title", "version", ...
    void set(std::string name, std::string value) { facts_[std::move(name)] = std::move(value); }
    // errc::invalid_argument for a second entry with the same address and other bytes.
    [[nodiscard]] result<void> add(entry const& what);
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

    [[nodiscard]] result<base::bytes> encode(private_key const* signer = nullptr) const;
    // Temporary file, fsync, rename: the old bundle stays until the new one is complete.
    [[nodiscard]] result<void> write(std::filesystem::path const& file, private_key const* signer = nullptr,
                                     bundle_form form = bundle_form::plain) const;

private:
    struct stored {
        label about;
        std::uint64_t raw_bytes = 0;
        base::bytes blob;  // an encoded disk entry
    };
    packing how_;
    std::map<std::array<digest, 3>, stored> entries_;
    std::map<std::string, std::string> facts_;
};

struct signature_policy {
    enum class need { none, trusted };  // trusted: signed by one of `keys`
    need what = need::none;
    std::vector<public_key> keys;  // with need::none: a signature by one of these must still be right
};

enum class signature_state { none, unchecked, good };
[[nodiscard]] std::string_view name_of(signature_state state) noexcept;

// One that was named and is not used.
struct refused_bundle {
    std::string reason;  // a stable code
    std::string why;     // for people; names the file
};

struct bundle_info {
    std::string origin;  // path, or "embedded"
    std::uint32_t format = 0;
    std::uint64_t entries = 0;
    std::uint64_t file_bytes = 0;
    signature_state signed_by = signature_state::none;
    std::string key;  // hexadecimal id of the signing key; empty when unsigned
};

class bundle_tier final : public tier {
public:
    // not_found, corrupt (truncated, damaged, bad signature), unsupported (newer format), forbidden (unsigned or
    // signed by an unknown key where a trusted one is needed). The message names the file and the remedy.
    [[nodiscard]] static result<std::shared_ptr<bundle_tier>> open(std::filesystem::path const& file,
                                                                   signature_policy const& policy = {});
    // `data` must outlive the tier.
    [[nodiscard]] static result<std::shared_ptr<bundle_tier>> from_memory(base::byte_span data,
                                                                          std::string origin = "embedded",
                                                                          signature_policy const& policy = {});

    [[nodiscard]] std::string_view name() const noexcept override { return "bundle"; }
    // Shipping a bundle is a decision: it serves without its headers and whichever compiler is there.
    static constexpr tier_traits shipped{.where = location::shipped,
                                         .writable = false,
                                         .persistent = true,
                                         .headers_sealed = true,
                                         .any_compiler = true,
                                         .on_hit = fill::process};
    [[nodiscard]] tier_traits traits() const noexcept override { return shipped; }
    // A damaged blob is a miss and stays one for this process; a damaged index page is a fault and ends the bundle.
    [[nodiscard]] result<lookup> find(address const& at, expectation const& expected) override;
    [[nodiscard]] result<std::vector<summary>> list(digest const& family,
                                                    std::optional<digest> const& request) override;
    [[nodiscard]] result<put_outcome> put(entry_ptr const& what) override;  // errc::forbidden
    void reject(address const& at) override;

    [[nodiscard]] bundle_info const& info() const noexcept { return info_; }
    // Read and checked when asked for.
    [[nodiscard]] result<manifest> read_manifest();
    // Every label in order of address. Reads one small header per entry.
    [[nodiscard]] result<void> for_each(std::function<void(summary const&)> const& callback);
    struct usable {
        std::uint64_t usable = 0, total = 0;
    };
    [[nodiscard]] result<usable> count_usable(std::function<bool(label const&)> const& can_use);
    // Reads and checks everything: index, headers, payloads. The addresses that fail, with their reasons.
    [[nodiscard]] result<std::vector<std::pair<address, miss>>> verify();

private:
    bundle_tier() = default;
    [[nodiscard]] static result<std::shared_ptr<bundle_tier>> from_source(std::unique_ptr<byte_source> source,
                                                                          std::string origin,
                                                                          signature_policy const& policy);
    using page_ptr = std::shared_ptr<base::bytes const>;
    [[nodiscard]] result<void> load(signature_policy const& policy);
    [[nodiscard]] result<void> check_signature(signature_policy const& policy);
    [[nodiscard]] result<page_ptr> page(std::size_t level, std::uint64_t number);
    [[nodiscard]] result<std::uint64_t> lower_bound(std::array<digest, 3> const& at);
    [[nodiscard]] result<index_record> record(std::uint64_t number);
    [[nodiscard]] result<lookup> read_blob(index_record const& r, address const& at, expectation const& expected);
    [[nodiscard]] result<std::optional<entry_header>> read_header(index_record const& r);
    [[nodiscard]] result<std::optional<index_record>> record_at(address const& at);
    [[nodiscard]] error end_bundle(error why);

    std::unique_ptr<byte_source> source_;
    bundle_info info_;
    bundle_footer footer_;
    index_shape shape_;
    refusals refused_;
    std::atomic<bool> ended_{false};
    base::forkable_mutex mutex_;  // the members below
    std::map<std::pair<std::size_t, std::uint64_t>, page_ptr> pages_;
    std::set<digest> bad_;
};

}  // namespace kiln::store
