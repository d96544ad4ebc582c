// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_job.hpp"

namespace kiln::intercept {

namespace {

constexpr std::uint16_t job_version = 3;
constexpr std::uint16_t version_without_rights = 2;  // in recordings: who makes them again has rights of its own

void put_name(base::byte_writer& w, std::optional<std::string> const& name) {
    w.put_u8(name ? 1 : 0);
    if (name) w.put_text(*name);
}

std::optional<std::string> get_name(base::byte_reader& r) {
    auto const present = r.get_u8();
    if (present > 1) r.spoil();
    return present == 1 ? std::optional{r.get_text()} : std::nullopt;
}

void put_texts(base::byte_writer& w, std::vector<std::string> const& texts) {
    w.put_u32(static_cast<std::uint32_t>(texts.size()));
    for (auto const& text : texts) w.put_text(text);
}

std::vector<std::string> get_texts(base::byte_reader& r) {
    std::vector<std::string> out;
    for (auto n = r.get_count(4); n > 0; --n) out.push_back(r.get_text());
    return out;
}

void put(base::byte_writer& w, foreign_program const& p) {
    w.put_text(p.source);
    put_name(w, p.name);
    w.put_u32(static_cast<std::uint32_t>(p.headers.size()));
    for (auto const& [name, text] : p.headers) {
        w.put_text(name);
        w.put_text(text);
    }
    put_texts(w, p.expressions);
}

foreign_program get_program(base::byte_reader& r) {
    foreign_program out;
    out.source = r.get_text();
    out.name = get_name(r);
    for (auto n = r.get_count(8); n > 0; --n) {
        auto name = r.get_text();
        out.headers.emplace_back(std::move(name), r.get_text());
    }
    out.expressions = get_texts(r);
    return out;
}

}  // namespace

base::bytes encode(foreign_job const& what) {
    base::byte_writer w;
    w.put_u16(job_version);
    w.put_text(what.library);
    w.put_text(what.toolchain);
    w.put_text(what.directory);
    for (auto const number : what.seen_from.about) w.put_u64(number);
    put(w, what.program);
    put_name(w, what.call.name);
    put_texts(w, what.call.options);
    put_name(w, what.call.roots.source_directory);
    put_texts(w, what.call.roots.include_directories);
    return std::move(w).take();
}

result<foreign_job> decode_foreign_job(base::byte_span data) {
    base::byte_reader r{data};
    auto const version = r.get_u16();
    if (version != job_version && version != version_without_rights)
        return fail(errc::corrupt, "no job of another program, or of another version");
    foreign_job out;
    out.library = r.get_text();
    out.toolchain = r.get_text();
    out.directory = r.get_text();
    for (auto& number : std::span{out.seen_from.about}.first(version == job_version ? 10 : 8)) number = r.get_u64();
    out.program = get_program(r);
    out.call.name = get_name(r);
    out.call.options = get_texts(r);
    out.call.roots.source_directory = get_name(r);
    out.call.roots.include_directories = get_texts(r);
    if (!r.done()) return fail(errc::corrupt, "the job of another program is damaged");
    return out;
}

base::bytes encode(foreign_product const& what) {
    base::byte_writer w;
    w.put_u8(static_cast<std::uint8_t>(what.how));
    w.put_u32(static_cast<std::uint32_t>(what.status));
    w.put_blob(encode(std::span<known_file const>{what.known}));
    w.put_raw(encode(what.entry));
    return std::move(w).take();
}

result<foreign_product> decode_foreign_product(base::byte_span data) {
    base::byte_reader r{data};
    auto const how = r.get_u8();
    foreign_product out;
    out.status = static_cast<int>(r.get_u32());
    out.known = decode_known_files(r.get_blob());
    if (!r.ok() || how > static_cast<std::uint8_t>(foreign_product::outcome::unusable))
        return fail(errc::corrupt, "the answer of a worker is damaged");
    out.how = static_cast<foreign_product::outcome>(how);
    if ((out.how == foreign_product::outcome::made) != (out.status == nvrtc_success) &&
        out.how != foreign_product::outcome::unusable)
        return fail(errc::corrupt, "the answer of a worker contradicts itself");
    KILN_TRY(out.entry, decode_foreign_entry(r.get_raw(r.left())));
    return out;
}

}  // namespace kiln::intercept
