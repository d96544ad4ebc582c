// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "store/packed_bundle.hpp"

#include <set>

namespace kiln::store {

namespace {

std::vector<std::string> sorted_once(std::set<std::string> const& some) {
    std::vector<std::string> out;
    for (auto const& text : some) {
        if (!text.empty()) out.push_back(text);
    }
    return out;
}

}  // namespace

result<void> bundle_writer::add(entry const& what) {
    KILN_TRY(auto blob, encode_entry(what, how_));
    auto const& at = what.about.at;
    auto& there = entries_[{at.family, at.request, at.key}];
    if (!there.blob.empty() && there.blob != blob) {
        return fail(errc::invalid_argument, "{} for {}: added twice with different bytes", what.about.name,
                    what.about.target);
    }
    there = stored{.about = what.about, .raw_bytes = what.payload.size(), .blob = std::move(blob)};
    return {};
}

result<base::bytes> bundle_writer::encode(private_key const* signer) const {
    manifest about;
    std::set<std::string> names, targets, kinds, toolchains, producers, licences;
    std::vector<index_record> index;
    base::byte_writer w;
    w.put_raw(encode_bundle_header());
    for (auto const& [at, e] : entries_) {
        auto const front = decode_header(e.blob, e.blob.size());
        KILN_ASSERT(front.header.has_value());
        index.push_back({.at = at, .offset = w.size(), .bytes = e.blob.size(), .header = front.header->check});
        w.put_raw(e.blob);
        names.insert(e.about.name), targets.insert(e.about.target), kinds.insert(e.about.kind);
        toolchains.insert(e.about.toolchain), producers.insert(e.about.producer), licences.insert(e.about.licence);
        about.raw_bytes += e.raw_bytes;
        about.stored_bytes += e.blob.size();
    }
    about.facts = facts_;
    about.entries = entries_.size();
    about.names = sorted_once(names), about.targets = sorted_once(targets), about.kinds = sorted_once(kinds);
    about.toolchains = sorted_once(toolchains), about.producers = sorted_once(producers),
    about.licences = sorted_once(licences);

    bundle_footer footer;
    footer.entries = entries_.size();
    footer.index_offset = w.size();
    auto const tree = encode_index(index);
    w.put_raw(tree.pages);
    footer.index_root = tree.root;
    auto const text = encode_manifest(about);
    KILN_CHECK(decode_manifest(text));  // a fact or name too long for the format is found here, not by a reader
    footer.manifest_offset = w.size();
    footer.manifest_bytes = text.size();
    footer.manifest_digest = base::sha256_of(text);
    w.put_raw(text);
    footer.file_bytes = w.size() + bundle_footer_bytes;
    if (signer != nullptr) {
        footer.is_signed = true;
        footer.key = signer->public_half().id();
        footer.sig = signer->sign(signed_message(footer));
    }
    w.put_raw(encode_footer(footer));
    return std::move(w).take();
}

result<void> bundle_writer::write(std::filesystem::path const& file, private_key const* signer,
                                  bundle_form form) const {
    KILN_TRY(auto data, encode(signer));
    if (form == bundle_form::packed) {
        KILN_TRY(data, pack_bundle(data));
    }
    return base::replace_file(file, data, 0644, base::durability::synced);
}

}  // namespace kiln::store
