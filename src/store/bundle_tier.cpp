// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "store/expectations.hpp"
#include "store/packed_bundle.hpp"

#include <algorithm>

namespace kiln::store {

namespace {

constexpr std::size_t most_kept_pages = 1024;  // 4 MiB
constexpr std::size_t label_read = 1024;

using place = std::array<digest, 3>;

place place_of(address const& at) { return {at.family, at.request, at.key}; }
address address_of(place const& at) { return {.family = at[0], .request = at[1], .key = at[2]}; }

}  // namespace

std::string_view name_of(signature_state state) noexcept {
    switch (state) {
        case signature_state::none: return "none";
        case signature_state::unchecked: return "unchecked";
        case signature_state::good: return "good";
    }
    return "unknown";
}

result<std::shared_ptr<bundle_tier>> bundle_tier::open(std::filesystem::path const& file,
                                                       signature_policy const& policy) {
    KILN_TRY(auto source, open_source(file));
    return from_source(std::move(source), file.native(), policy);
}

result<std::shared_ptr<bundle_tier>> bundle_tier::from_memory(base::byte_span data, std::string origin,
                                                              signature_policy const& policy) {
    return from_source(memory_source(data), std::move(origin), policy);
}

result<std::shared_ptr<bundle_tier>> bundle_tier::from_source(std::unique_ptr<byte_source> source, std::string origin,
                                                              signature_policy const& policy) {
    std::shared_ptr<bundle_tier> out{new bundle_tier};
    out->source_ = std::move(source);
    out->info_.origin = std::move(origin);
    if (auto loaded = out->load(policy); !loaded) return std::move(loaded).error().within(out->info_.origin);
    return out;
}

result<void> bundle_tier::load(signature_policy const& policy) {
    auto size = source_->size();
    info_.file_bytes = size;
    if (size < bundle_header_bytes) return fail(errc::corrupt, "not a bundle, or truncated: {} bytes", size);
    KILN_TRY(auto head, source_->read(0, bundle_header_bytes));
    if (is_packed(head)) {
        KILN_TRY(source_, unpack_bundle(*source_));
        size = source_->size();
        if (size < bundle_header_bytes) return fail(errc::corrupt, "packed bundle: not a bundle");
        KILN_TRY(head, source_->read(0, bundle_header_bytes));
    }
    KILN_CHECK(check_bundle_header(head));
    if (size < bundle_header_bytes + bundle_footer_bytes)
        return fail(errc::corrupt, "truncated bundle: {} bytes", size);
    KILN_TRY(auto const tail, source_->read(size - bundle_footer_bytes, bundle_footer_bytes));
    KILN_TRY(footer_, decode_footer(tail, size));
    shape_ = index_shape::of(footer_.entries);
    info_.format = bundle_format_version;
    info_.entries = footer_.entries;
    return check_signature(policy);
}

result<void> bundle_tier::check_signature(signature_policy const& policy) {
    bool const needed = policy.what == signature_policy::need::trusted;
    if (!footer_.is_signed) {
        if (needed) return fail(errc::forbidden, "bundle is not signed, and a signature is required");
        return {};
    }
    info_.key = to_hex(footer_.key);
    info_.signed_by = signature_state::unchecked;
    for (auto const& key : policy.keys) {
        if (key.id() != footer_.key) continue;
        if (!key.verifies(signed_message(footer_), footer_.sig)) {
            return fail(errc::forbidden, "bundle's signature by key {} is wrong: it was changed after signing",
                        info_.key);
        }
        info_.signed_by = signature_state::good;
        return {};
    }
    if (needed) return fail(errc::forbidden, "bundle is signed by key {}, which is not the trusted one", info_.key);
    return {};
}

// A bundle with a bad index page cannot be relied on at all.
error bundle_tier::end_bundle(error why) {
    if (why.code() == errc::corrupt) ended_.store(true);
    return std::move(why).within(info_.origin);
}

result<bundle_tier::page_ptr> bundle_tier::page(std::size_t level, std::uint64_t number) {
    {
        std::lock_guard const lock{mutex_};
        if (auto const it = pages_.find({level, number}); it != pages_.end()) return it->second;
    }
    digest expected = footer_.index_root;
    if (level + 1 < shape_.pages.size()) {
        KILN_TRY(auto const above, page(level + 1, number / nodes_per_page));
        expected = read_node(*above, number % nodes_per_page).page;
    }
    auto const offset = footer_.index_offset + shape_.position(level, number) * index_page_bytes;
    auto data = source_->read(offset, index_page_bytes);
    if (!data) return end_bundle(std::move(data).error());
    if (base::sha256_of(*data) != expected)
        return end_bundle(fail(errc::corrupt, "damaged bundle: index page {} of level {}", number, level));
    auto made = std::make_shared<base::bytes const>(*std::move(data));
    std::lock_guard const lock{mutex_};
    if (pages_.size() >= most_kept_pages) pages_.clear();
    pages_.emplace(std::pair{level, number}, made);
    return made;
}

result<index_record> bundle_tier::record(std::uint64_t number) {
    KILN_TRY(auto const leaf, page(0, number / records_per_page));
    return read_record(*leaf, number % records_per_page);
}

// Number of the first record not before `at`.
result<std::uint64_t> bundle_tier::lower_bound(place const& at) {
    if (footer_.entries == 0) return std::uint64_t{0};
    std::uint64_t number = 0;
    for (auto level = shape_.pages.size() - 1; level > 0; --level) {
        KILN_TRY(auto const nodes, page(level, number));
        auto const first = number * nodes_per_page;
        auto const count =
            static_cast<std::size_t>(std::min<std::uint64_t>(nodes_per_page, shape_.pages[level - 1] - first));
        std::size_t slot = 0;
        while (slot + 1 < count && read_node(*nodes, slot + 1).first <= at) ++slot;
        number = first + slot;
    }
    KILN_TRY(auto const leaf, page(0, number));
    auto const first = number * records_per_page;
    auto const count = static_cast<std::size_t>(std::min<std::uint64_t>(records_per_page, footer_.entries - first));
    std::size_t slot = 0;
    while (slot < count && read_record(*leaf, slot).at < at) ++slot;
    return first + slot;
}

result<std::optional<index_record>> bundle_tier::record_at(address const& at) {
    std::optional<index_record> none;
    KILN_TRY(auto const number, lower_bound(place_of(at)));
    if (number >= footer_.entries) return none;
    KILN_TRY(auto r, record(number));
    return r.at == place_of(at) ? std::optional{std::move(r)} : none;
}

result<lookup> bundle_tier::find(address const& at, expectation const& expected) {
    if (ended_.load()) return lookup{.hit = {}, .why = miss::disabled};
    KILN_TRY(auto const r, record_at(at));
    if (!r) return lookup{};
    {
        std::lock_guard const lock{mutex_};
        if (bad_.contains(at.key)) return lookup{};
    }
    KILN_TRY(auto answer, read_blob(*r, at, expected));
    // A blob that failed its checks fails them for ever; one that is only not what was asked for does not.
    bool const damaged = is_rejection(answer.why) && answer.why != miss::wrong_target &&
                         answer.why != miss::wrong_kind && answer.why != miss::wrong_toolchain &&
                         answer.why != miss::refused;
    if (!answer.hit && damaged) {
        std::lock_guard const lock{mutex_};
        bad_.insert(at.key);
    }
    return answer;
}

result<lookup> bundle_tier::read_blob(index_record const& r, address const& at, expectation const& expected) {
    auto const no = [](miss why) { return lookup{.hit = {}, .why = why}; };
    if (r.bytes > most_payload_bytes + most_header_bytes) return no(miss::too_large);
    if (r.offset < bundle_header_bytes || r.offset > footer_.index_offset ||
        r.bytes > footer_.index_offset - r.offset) {
        return no(miss::truncated);
    }
    auto data = source_->read(r.offset, static_cast<std::size_t>(r.bytes));
    if (!data && data.error().code() == errc::corrupt) return no(miss::truncated);
    if (!data) return data.error();
    auto decoded = decode_entry(*std::move(data));
    if (!decoded.what) return no(decoded.why);
    // The index, not the blob, is under the signature.
    if (decoded.header->check != r.header) return no(miss::bad_header);
    if (auto const wrong = mismatch(decoded.what->about, at, expected)) return no(*wrong);
    if (refused_.has(at.key, decoded.header->payload)) return no(miss::refused);
    decoded.what->from = origin_of(traits());
    return lookup{.hit = std::move(decoded.what)};
}

// nullopt: the header of this blob is damaged.
result<std::optional<entry_header>> bundle_tier::read_header(index_record const& r) {
    std::optional<entry_header> none;
    if (r.offset < bundle_header_bytes || r.offset > footer_.index_offset || r.bytes > footer_.index_offset - r.offset)
        return none;
    auto front = source_->read(r.offset, static_cast<std::size_t>(std::min<std::uint64_t>(r.bytes, label_read)));
    if (!front) return std::move(front).error();
    if (auto const need = std::min<std::uint64_t>(entry_front_bytes(*front), r.bytes); need > front->size()) {
        front = source_->read(r.offset, static_cast<std::size_t>(need));
        if (!front) return std::move(front).error();
    }
    auto outcome = decode_header(*front, r.bytes);
    if (!outcome.header || outcome.header->check != r.header) return none;
    return std::move(outcome.header);
}

result<std::vector<summary>> bundle_tier::list(digest const& family, std::optional<digest> const& request) {
    std::vector<summary> out;
    if (ended_.load()) return out;
    KILN_TRY(auto number, lower_bound({family, request.value_or(digest{}), digest{}}));
    for (; number < footer_.entries; ++number) {
        KILN_TRY(auto const r, record(number));
        if (r.at[0] != family || (request && r.at[1] != *request)) break;
        KILN_TRY(auto header, read_header(r));
        if (header) out.push_back({.about = std::move(header->about), .bytes = r.bytes, .from = origin_of(traits())});
    }
    return out;
}

result<put_outcome> bundle_tier::put(entry_ptr const&) {
    return fail(errc::forbidden, "{}: a bundle is never written in place", info_.origin);
}

// By the header alone: whoever rejects an entry holds one copy of it already.
void bundle_tier::reject(address const& at) {
    auto const r = record_at(at);
    if (!r || !*r) return;
    auto const header = read_header(**r);
    if (header && *header) refused_.add(at.key, (*header)->payload);
}

result<manifest> bundle_tier::read_manifest() {
    KILN_TRY(auto const data, source_->read(footer_.manifest_offset, static_cast<std::size_t>(footer_.manifest_bytes)));
    if (base::sha256_of(data) != footer_.manifest_digest)
        return fail(errc::corrupt, "{}: damaged bundle: manifest", info_.origin);
    return decode_manifest(data);
}

result<void> bundle_tier::for_each(std::function<void(summary const&)> const& callback) {
    for (std::uint64_t number = 0; number < footer_.entries; ++number) {
        KILN_TRY(auto const r, record(number));
        KILN_TRY(auto header, read_header(r));
        if (header) callback({.about = std::move(header->about), .bytes = r.bytes, .from = origin_of(traits())});
    }
    return {};
}

result<bundle_tier::usable> bundle_tier::count_usable(std::function<bool(label const&)> const& can_use) {
    usable out{.usable = 0, .total = footer_.entries};
    KILN_CHECK(for_each([&](summary const& s) { out.usable += can_use(s.about) ? 1 : 0; }));
    return out;
}

result<std::vector<std::pair<address, miss>>> bundle_tier::verify() {
    std::vector<std::pair<address, miss>> bad;
    KILN_CHECK(read_manifest());
    place previous{};
    for (std::uint64_t number = 0; number < footer_.entries; ++number) {
        KILN_TRY(auto const r, record(number));
        if (number > 0 && !(previous < r.at))
            return fail(errc::corrupt, "{}: damaged bundle: index out of order", info_.origin);
        previous = r.at;
        KILN_TRY(auto const answer, read_blob(r, address_of(r.at), {}));
        if (!answer.hit) bad.emplace_back(address_of(r.at), answer.why);
    }
    return bad;
}

}  // namespace kiln::store
