// SPDX-License-Identifier: Apache-2.0
// Encoding of jobs, artifacts and errors: docs/formats/artifact.md and worker-protocol.md describe the layouts.
#include "compile/job.hpp"

#include "compile/unit_codec.hpp"

namespace kiln::compile {

namespace {

using base::byte_reader;
using base::byte_writer;

constexpr std::uint16_t artifact_version = 1;
constexpr std::uint16_t job_version = 3;

void put(byte_writer& w, kiln::target const& t) {
    w.put_text(t.arch.name());
    w.put_u8(static_cast<std::uint8_t>(t.kind));
}

result<kiln::target> get_target(byte_reader& r) {
    auto const arch = r.get_text();
    auto const kind = r.get_u8();
    if (!r.ok() || kind > static_cast<std::uint8_t>(artifact_kind::ltoir))
        return fail(errc::corrupt, "no valid target in the bytes");
    KILN_TRY(auto const t, target::parse(arch, static_cast<artifact_kind>(kind)));
    // parse() mends what people write ("sm_90" for PTX); what put() wrote needs no mending.
    if (t.arch.name() != arch || t.kind != static_cast<artifact_kind>(kind))
        return fail(errc::corrupt, "no valid target in the bytes");
    return t;
}

void put(byte_writer& w, link_job const& l) {
    w.put_text(l.name);
    put(w, l.target);
    w.put_u32(static_cast<std::uint32_t>(l.inputs.size()));
    for (auto const& in : l.inputs) {
        w.put_text(in.name);
        w.put_u8(static_cast<std::uint8_t>(in.kind));
        w.put_blob(in.image);
    }
    put_texts(w, l.kernels);
    put_texts(w, l.exports);
    put_texts(w, l.options);
}

result<link_job> get_link(byte_reader& r) {
    auto name = r.get_text();
    KILN_TRY(auto const t, get_target(r));
    link_job l{.name = std::move(name), .target = t, .inputs = {}, .kernels = {}, .exports = {}, .options = {}};
    l.inputs.resize(r.get_count(9));
    for (auto& in : l.inputs) {
        in.name = r.get_text();
        auto const kind = r.get_u8();
        if (kind > static_cast<std::uint8_t>(artifact_kind::ltoir)) r.spoil();
        in.kind = static_cast<artifact_kind>(kind);
        auto const image = r.get_blob();
        in.image.assign(image.begin(), image.end());
    }
    l.kernels = get_texts(r);
    l.exports = get_texts(r);
    l.options = get_texts(r);
    return l;
}

int get_number(byte_reader& r) { return static_cast<int>(r.get_u32()); }

void get_kernels(byte_reader& r, std::vector<kernel_info>& out) {
    out.resize(r.get_count(20));
    for (auto& k : out) {
        k.name = r.get_text();
        k.lowered = r.get_text();
        k.registers = get_number(r);
        k.shared_bytes = get_number(r);
        k.local_bytes = get_number(r);
    }
}

void put(byte_writer& w, std::span<dependency const> dependencies) {
    w.put_u32(static_cast<std::uint32_t>(dependencies.size()));
    for (auto const& d : dependencies) {
        w.put_u8(static_cast<std::uint8_t>(d.from));
        w.put_u16(d.index);
        w.put_text(d.path);
        w.put_text(d.content);
    }
}

void get_dependencies(byte_reader& r, std::vector<dependency>& out) {
    out.resize(r.get_count(11));
    for (auto& d : out) {
        auto const root = r.get_u8();
        if (root > static_cast<std::uint8_t>(dependency::root::absolute)) r.spoil();
        d.from = static_cast<dependency::root>(root);
        d.index = r.get_u16();
        d.path = r.get_text();
        d.content = r.get_text();
    }
}

}  // namespace

base::bytes encode(job const& j) {
    byte_writer w;
    w.put_u16(job_version);
    w.put_text(j.tools.nvrtc);
    w.put_text(j.tools.nvjitlink);
    put_texts(w, j.tools.toolkit_includes);
    w.put_u8(static_cast<std::uint8_t>(j.task.index()));
    if (auto const* c = std::get_if<compile_job>(&j.task)) {
        put_unit(w, c->unit);
        put_texts(w, c->unit.uncached_options);  // nowhere else: what is kept or recorded has none
        put_carried(w, c->unit);
        put(w, c->target);
    } else put(w, std::get<link_job>(j.task));
    return std::move(w).take();
}

result<job> decode_job(base::byte_span data) {
    byte_reader r{data};
    if (r.get_u16() != job_version) return fail(errc::corrupt, "the job has another version than this program knows");
    toolchain_paths tools;
    tools.nvrtc = r.get_text();
    tools.nvjitlink = r.get_text();
    tools.toolkit_includes = get_texts(r);
    if (r.get_u8() == 0) {
        auto u = get_unit(r);
        u.uncached_options = get_texts(r);
        get_carried(r, u);
        KILN_TRY(auto const t, get_target(r));
        if (!r.done()) return fail(errc::corrupt, "the compile job is damaged");
        return job{std::move(tools), compile_job{std::move(u), t}};
    }
    KILN_TRY(auto l, get_link(r));
    if (!r.done()) return fail(errc::corrupt, "the link job is damaged");
    return job{std::move(tools), std::move(l)};
}

base::bytes encode(kiln::artifact const& a) {
    byte_writer w;
    w.put_u16(artifact_version);
    w.put_text(a.unit);
    put(w, a.target);
    w.put_text(a.key);
    w.put_text(a.toolchain);
    w.put_text(a.compiler);
    w.put_u32(static_cast<std::uint32_t>(a.kernels.size()));
    for (auto const& k : a.kernels) {
        w.put_text(k.name);
        w.put_text(k.lowered);
        w.put_u32(static_cast<std::uint32_t>(k.registers));
        w.put_u32(static_cast<std::uint32_t>(k.shared_bytes));
        w.put_u32(static_cast<std::uint32_t>(k.local_bytes));
    }
    w.put_u32(static_cast<std::uint32_t>(a.constants.size()));
    for (auto const& c : a.constants) {
        w.put_text(c.name);
        w.put_blob(c.bytes);
    }
    put(w, a.dependencies);
    w.put_u32(static_cast<std::uint32_t>(a.inputs.size()));
    for (auto const& i : a.inputs) {
        w.put_text(i.name);
        w.put_text(i.value);
    }
    w.put_text(a.log);
    w.put_f64(a.compile_ms);
    w.put_blob(a.image);
    return std::move(w).take();
}

result<kiln::artifact> decode_artifact(base::byte_span data) {
    byte_reader r{data};
    if (r.get_u16() != artifact_version)
        return fail(errc::corrupt, "the artifact has another version than this program knows");
    auto unit = r.get_text();
    KILN_TRY(auto const t, get_target(r));
    kiln::artifact a{.unit = std::move(unit), .target = t};
    a.key = r.get_text();
    a.toolchain = r.get_text();
    a.compiler = r.get_text();
    get_kernels(r, a.kernels);
    a.constants.resize(r.get_count(8));
    for (auto& c : a.constants) {
        c.name = r.get_text();
        auto const bytes = r.get_blob();
        c.bytes.assign(bytes.begin(), bytes.end());
    }
    get_dependencies(r, a.dependencies);
    a.inputs.resize(r.get_count(8));
    for (auto& i : a.inputs) {
        i.name = r.get_text();
        i.value = r.get_text();
    }
    a.log = r.get_text();
    a.compile_ms = r.get_f64();
    auto const image = r.get_blob();
    a.image.assign(image.begin(), image.end());
    if (!r.done()) return fail(errc::corrupt, "the artifact is damaged");
    return a;
}

base::bytes encode(failure const& f) {
    byte_writer w;
    w.put_u8(static_cast<std::uint8_t>(f.why.code()));
    w.put_u32(static_cast<std::uint32_t>(f.why.status()));
    w.put_text(f.why.message());
    w.put_text(f.why.log());
    w.put_u8(f.read ? 1 : 0);
    if (f.read) put(w, *f.read);
    return std::move(w).take();
}

failure decode_failure(base::byte_span data) {
    byte_reader r{data};
    auto const code = r.get_u8();
    auto const status = static_cast<int>(r.get_u32());
    auto message = r.get_text();
    auto log = r.get_text();
    std::optional<std::vector<dependency>> read;
    auto const is_known = r.get_u8();
    if (is_known == 1) get_dependencies(r, read.emplace());
    if (!r.done() || is_known > 1 || code > static_cast<std::uint8_t>(errc::internal))
        return {fail(errc::corrupt, "the error report is damaged")};
    return {error{static_cast<errc>(code), std::move(message)}.with_status(status).with_log(std::move(log)),
            std::move(read)};
}

}  // namespace kiln::compile
