// SPDX-License-Identifier: Apache-2.0
#include "store/bundle_format.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace kiln::store {

namespace {

using base::byte_reader;
using base::byte_span;
using base::byte_writer;

constexpr std::string_view magic = "KILNBNDL";
constexpr std::string_view end_magic = "KILNBEND";
constexpr std::string_view signing_domain = "kiln bundle v1";
constexpr std::uint64_t most_manifest_bytes = 16 << 20;
constexpr std::size_t most_manifest_text = 4096;
constexpr std::size_t digest_bytes = 32;

template <class Array>
void put_array(byte_writer& w, Array const& a) {
    w.put_raw(std::as_bytes(std::span{a}));
}

template <class Array>
void get_array(byte_reader& r, Array& a) noexcept {
    auto const raw = r.get_raw(a.size());
    if (raw.size() == a.size()) std::memcpy(a.data(), raw.data(), raw.size());
}

void pad_to(byte_writer& w, std::size_t size) {
    while (w.size() < size) w.put_u8(0);
}

bool all_zero(byte_span some) noexcept {
    return std::all_of(some.begin(), some.end(), [](std::byte b) { return b == std::byte{0}; });
}

byte_writer footer_fields(bundle_footer const& f) {
    byte_writer w;
    w.put_raw(base::as_bytes(end_magic));
    w.put_u32(bundle_format_version);
    w.put_u32(0);
    w.put_u64(f.entries);
    w.put_u64(f.index_offset);
    w.put_u64(f.manifest_offset);
    w.put_u64(f.manifest_bytes);
    w.put_u64(f.file_bytes);
    put_array(w, f.index_root.bytes);
    put_array(w, f.manifest_digest.bytes);
    return w;
}

error damaged(std::string_view what) { return fail(errc::corrupt, "damaged bundle: {}", what); }

// Offsets in the footer are relied on by everything that follows: they must add up exactly.
bool adds_up(bundle_footer const& f) {
    if (f.entries > most_bundle_entries || f.manifest_bytes > most_manifest_bytes) return false;
    auto const index_bytes = index_shape::of(f.entries).total_pages() * index_page_bytes;
    return f.index_offset >= bundle_header_bytes && f.index_offset <= f.file_bytes &&
           f.manifest_offset == f.index_offset + index_bytes && f.file_bytes >= bundle_footer_bytes &&
           f.manifest_offset + f.manifest_bytes == f.file_bytes - bundle_footer_bytes;
}

void put_texts(byte_writer& w, std::vector<std::string> const& texts) {
    w.put_u32(static_cast<std::uint32_t>(texts.size()));
    for (auto const& t : texts) w.put_text(t);
}

std::string get_bounded(byte_reader& r) {
    auto const raw = r.get_blob();
    if (raw.size() > most_manifest_text) return r.spoil(), std::string{};
    return std::string{base::as_text(raw)};
}

std::vector<std::string> get_texts(byte_reader& r) {
    std::vector<std::string> out;
    for (auto left = r.get_count(4); left > 0 && r.ok(); --left) out.push_back(get_bounded(r));
    return out;
}

class file_source final : public byte_source {
public:
    file_source(base::file_descriptor file, std::uint64_t size) : file_{std::move(file)}, size_{size} {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
    [[nodiscard]] result<base::bytes> read(std::uint64_t offset, std::size_t count) const override {
        if (offset > size_ || count > size_ - offset) return damaged("a part lies beyond its end");
        base::bytes out(count);
        for (std::size_t have = 0; have < count;) {
            auto const some =
                base::sys().pread(file_.get(), out.data() + have, count - have, static_cast<long>(offset + have));
            if (some == 0) return damaged("it became shorter while in use");
            if (some < 0 && errno != EINTR) return io_error("bundle", errno);
            if (some > 0) have += static_cast<std::size_t>(some);
        }
        return out;
    }

private:
    base::file_descriptor file_;
    std::uint64_t size_;
};

class span_source final : public byte_source {
public:
    explicit span_source(byte_span data) : data_{data} {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return data_.size(); }
    [[nodiscard]] result<base::bytes> read(std::uint64_t offset, std::size_t count) const override {
        if (offset > data_.size() || count > data_.size() - offset) return damaged("a part lies beyond its end");
        auto const part = data_.subspan(static_cast<std::size_t>(offset), count);
        return base::bytes{part.begin(), part.end()};
    }

private:
    byte_span data_;
};

}  // namespace

base::bytes encode_bundle_header() {
    byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(bundle_format_version);
    w.put_u32(static_cast<std::uint32_t>(index_page_bytes));
    auto const check = base::sha256_of(w.view());
    put_array(w, check.bytes);
    pad_to(w, bundle_header_bytes);
    return std::move(w).take();
}

result<void> check_bundle_header(byte_span data) {
    if (data.size() != bundle_header_bytes || base::as_text(data.first(magic.size())) != magic) {
        return fail(errc::corrupt, "not a bundle: it does not begin with {}", magic);
    }
    byte_reader r{data.subspan(magic.size())};
    auto const version = r.get_u32();
    auto const page = r.get_u32();
    digest check;
    get_array(r, check.bytes);
    if (base::sha256_of(data.first(magic.size() + 8)) != check) return damaged("header");
    if (version > bundle_format_version) {
        return fail(errc::unsupported, "bundle format {}; this version of Kiln reads up to {}: use a newer Kiln",
                    version, bundle_format_version);
    }
    bool const clean = all_zero(r.get_raw(r.left()));
    if (version != bundle_format_version || page != index_page_bytes || !clean) return damaged("header");
    return {};
}

base::bytes signed_message(bundle_footer const& f) {
    byte_writer w;
    w.put_text(signing_domain);
    w.put_blob(footer_fields(f).view());
    return std::move(w).take();
}

base::bytes encode_footer(bundle_footer const& f) {
    auto w = footer_fields(f);
    w.put_u8(f.is_signed ? 1 : 0);
    put_array(w, f.key);
    put_array(w, f.sig);
    pad_to(w, bundle_footer_bytes - digest_bytes);
    auto const check = base::sha256_of(w.view());
    put_array(w, check.bytes);
    return std::move(w).take();
}

result<bundle_footer> decode_footer(byte_span data, std::uint64_t file_bytes) {
    if (data.size() != bundle_footer_bytes) return damaged("too short for a footer");
    byte_reader tail{data.last(digest_bytes)};
    digest check;
    get_array(tail, check.bytes);
    if (base::sha256_of(data.first(data.size() - digest_bytes)) != check) return damaged("footer; it may be truncated");
    byte_reader r{data};
    bundle_footer f;
    if (base::as_text(r.get_raw(end_magic.size())) != end_magic) return damaged("footer");
    if (r.get_u32() != bundle_format_version || r.get_u32() != 0) return damaged("footer");
    f.entries = r.get_u64();
    f.index_offset = r.get_u64();
    f.manifest_offset = r.get_u64();
    f.manifest_bytes = r.get_u64();
    f.file_bytes = r.get_u64();
    get_array(r, f.index_root.bytes);
    get_array(r, f.manifest_digest.bytes);
    auto const kind = r.get_u8();
    f.is_signed = kind == 1;
    auto const signature_bytes = data.subspan(data.size() - r.left(), f.key.size() + f.sig.size());
    get_array(r, f.key);
    get_array(r, f.sig);
    // No signature covers what follows it: bytes that mean nothing must be nothing.
    auto const unused = r.get_raw(r.left() - digest_bytes);
    bool const clean = all_zero(unused) && (f.is_signed || all_zero(signature_bytes));
    if (!r.ok() || !clean || kind > 1 || f.file_bytes != file_bytes || !adds_up(f)) return damaged("footer");
    return f;
}

index_shape index_shape::of(std::uint64_t records) {
    index_shape out;
    for (auto count = records, per = std::uint64_t{records_per_page}; count > 0; per = nodes_per_page) {
        count = (count + per - 1) / per;
        out.pages.push_back(count);
        if (count == 1) break;
    }
    return out;
}

std::uint64_t index_shape::total_pages() const noexcept {
    std::uint64_t sum = 0;
    for (auto const count : pages) sum += count;
    return sum;
}

std::uint64_t index_shape::position(std::size_t level, std::uint64_t number) const noexcept {
    for (std::size_t below = 0; below < level; ++below) number += pages[below];
    return number;
}

encoded_index encode_index(std::vector<index_record> const& sorted) {
    encoded_index out;
    std::vector<index_node> level, above;
    byte_writer all, page;
    auto const finish_page = [&](std::array<digest, 3> const& first) {
        pad_to(page, index_page_bytes);
        out.root = base::sha256_of(page.view());
        above.push_back({.first = first, .page = out.root});
        all.put_raw(page.view());
        page = {};
    };
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        auto const& r = sorted[i];
        for (auto const& d : r.at) put_array(page, d.bytes);
        page.put_u64(r.offset);
        page.put_u64(r.bytes);
        put_array(page, r.header.bytes);
        page.put_u64(0);
        page.put_u64(0);
        auto const slot = i % records_per_page;
        if (slot + 1 == records_per_page || i + 1 == sorted.size()) finish_page(sorted[i - slot].at);
    }
    while (above.size() > 1) {
        level = std::exchange(above, {});
        for (std::size_t i = 0; i < level.size(); ++i) {
            for (auto const& d : level[i].first) put_array(page, d.bytes);
            put_array(page, level[i].page.bytes);
            auto const slot = i % nodes_per_page;
            if (slot + 1 == nodes_per_page || i + 1 == level.size()) finish_page(level[i - slot].first);
        }
    }
    out.pages = std::move(all).take();
    return out;
}

index_record read_record(byte_span page, std::size_t slot) {
    byte_reader r{page.subspan(slot * index_record_bytes, index_record_bytes)};
    index_record out;
    for (auto& d : out.at) get_array(r, d.bytes);
    out.offset = r.get_u64();
    out.bytes = r.get_u64();
    get_array(r, out.header.bytes);
    return out;
}

index_node read_node(byte_span page, std::size_t slot) {
    byte_reader r{page.subspan(slot * index_node_bytes, index_node_bytes)};
    index_node out;
    for (auto& d : out.first) get_array(r, d.bytes);
    get_array(r, out.page.bytes);
    return out;
}

base::bytes encode_manifest(manifest const& m) {
    byte_writer w;
    w.put_u32(1);
    w.put_u64(m.entries);
    w.put_u64(m.raw_bytes);
    w.put_u64(m.stored_bytes);
    for (auto const* texts : {&m.names, &m.targets, &m.kinds, &m.toolchains, &m.producers, &m.licences})
        put_texts(w, *texts);
    w.put_u32(static_cast<std::uint32_t>(m.facts.size()));
    for (auto const& [name, value] : m.facts) {
        w.put_text(name);
        w.put_text(value);
    }
    return std::move(w).take();
}

result<manifest> decode_manifest(byte_span data) {
    byte_reader r{data};
    if (r.get_u32() != 1) return damaged("manifest");
    manifest m;
    m.entries = r.get_u64();
    m.raw_bytes = r.get_u64();
    m.stored_bytes = r.get_u64();
    for (auto* texts : {&m.names, &m.targets, &m.kinds, &m.toolchains, &m.producers, &m.licences})
        *texts = get_texts(r);
    for (auto left = r.get_count(8); left > 0 && r.ok(); --left) {
        auto name = get_bounded(r);
        m.facts[std::move(name)] = get_bounded(r);
    }
    if (!r.done()) return damaged("manifest");
    return m;
}

result<std::unique_ptr<byte_source>> open_source(std::filesystem::path const& file) {
    auto fd = base::open_file(file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd && (fd.error().status() == ENOENT || fd.error().status() == ENOTDIR)) {
        return fail(errc::not_found, "{}: no such bundle", file.native()).with_status(fd.error().status());
    }
    if (!fd) return std::move(fd).error();
    struct ::stat about {};
    if (base::sys().fstat(fd->get(), &about) != 0) return io_error(file.native(), errno);
    if (!S_ISREG(about.st_mode)) return fail(errc::invalid_argument, "{}: not a regular file", file.native());
    return std::unique_ptr<byte_source>{
        std::make_unique<file_source>(*std::move(fd), static_cast<std::uint64_t>(about.st_size))};
}

std::unique_ptr<byte_source> memory_source(byte_span data) { return std::make_unique<span_source>(data); }

}  // namespace kiln::store
