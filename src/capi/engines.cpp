// SPDX-License-Identifier: Apache-2.0
// Engines, units as C gives them, devices, streams, memory.
#include "capi/boxes.hpp"
#include "engine/status_json.hpp"

#include <kiln/status.hpp>

#include <cstdlib>

namespace kiln::capi {

result<std::vector<std::string>> read_texts(char const* const* texts, std::size_t count, std::string_view what) {
    std::vector<std::string> out;
    if (count > 0) KILN_CHECK(not_null(texts, what));
    for (std::size_t i = 0; i < count; ++i) {
        KILN_CHECK(not_null(texts[i], fmt::format("{}[{}]", what, i)));
        out.emplace_back(texts[i]);
    }
    return out;
}

result<unit> read_unit(kiln_unit const* given) {
    KILN_TRY(auto const u, read_struct(given, "kiln_unit"));
    KILN_CHECK(not_null(u.name, "kiln_unit::name"));
    KILN_CHECK(not_null(u.source, "kiln_unit::source"));
    unit out{.name = u.name,
             .source = u.source_bytes == 0 ? std::string{u.source} : std::string{u.source, u.source_bytes}};
    KILN_TRY(out.kernels, read_texts(u.kernels, u.kernel_count, "kiln_unit::kernels"));
    KILN_TRY(out.options, read_texts(u.options, u.option_count, "kiln_unit::options"));
    KILN_TRY(out.include_dirs, read_texts(u.include_dirs, u.include_dir_count, "kiln_unit::include_dirs"));
    KILN_TRY(out.exports, read_texts(u.exports, u.export_count, "kiln_unit::exports"));
    KILN_TRY(out.uncached_options,
             read_texts(u.uncached_options, u.uncached_option_count, "kiln_unit::uncached_options"));
    if (u.header_count > 0) KILN_CHECK(not_null(u.headers, "kiln_unit::headers"));
    for (std::size_t i = 0; i < u.header_count; ++i) {
        KILN_CHECK(not_null(u.headers[i].name, fmt::format("kiln_unit::headers[{}].name", i)));
        KILN_CHECK(not_null(u.headers[i].text, fmt::format("kiln_unit::headers[{}].text", i)));
        out.headers.push_back({u.headers[i].name, u.headers[i].text});
    }
    out.directory = text_or_empty(u.directory);
    out.licence = text_or_empty(u.licence);
    return out;
}

result<wait_options> read_wait(kiln_wait const* given) {
    if (given == nullptr) return wait_options{};
    KILN_TRY(auto const w, read_struct(given, "kiln_wait"));
    return wait_options{.deadline = milliseconds(w.deadline_ms), .who = text_or_empty(w.who)};
}

result<target> read_target(char const* arch, kiln_kind kind) {
    KILN_CHECK(not_null(arch, "arch"));
    static_assert(static_cast<int>(artifact_kind::cubin) == KILN_CUBIN &&
                  static_cast<int>(artifact_kind::ptx) == KILN_PTX &&
                  static_cast<int>(artifact_kind::ltoir) == KILN_LTOIR);
    if (kind < KILN_CUBIN || kind > KILN_LTOIR)
        return fail(errc::invalid_argument, "{} is no kind of artifact: KILN_CUBIN, KILN_PTX, KILN_LTOIR", kind);
    return target::parse(arch, static_cast<artifact_kind>(kind));
}

namespace {

// For kiln_free.
result<char*> copied(std::string const& text) {
    auto* const out = static_cast<char*>(std::malloc(text.size() + 1));
    if (out == nullptr) throw std::bad_alloc{};
    std::memcpy(out, text.c_str(), text.size() + 1);
    return out;
}

template <std::size_t N>
void copy_text(std::string const& from, char (&to)[N]) {
    std::memset(to, 0, N);
    std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

}  // namespace

}  // namespace kiln::capi

using namespace kiln;
using capi::guarded;
using capi::not_null;

kiln_error* kiln_engine_make(kiln_setting const* settings, size_t count, kiln_engine** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        if (count > 0) KILN_CHECK(not_null(settings, "settings"));
        engine_options options;
        for (std::size_t i = 0; i < count; ++i) {
            KILN_CHECK(not_null(settings[i].name, fmt::format("settings[{}].name", i)));
            options.settings.emplace_back(settings[i].name, capi::text_or_empty(settings[i].value));
        }
        *out = new kiln_engine{engine{std::move(options)}};
        return {};
    });
}

void kiln_engine_free(kiln_engine* engine) { delete engine; }

kiln_error* kiln_engine_get_status(kiln_engine* engine, kiln_engine_status* out) {
    return guarded([&]() -> result<void> {
        auto const s = capi::engine_of(engine).status();
        return capi::write_struct(
            kiln_engine_status{sizeof(kiln_engine_status), s.requests, s.from_memory, s.from_disk, s.from_bundle,
                               s.from_fleet, s.compiled, s.failed, s.blocked, s.blocked_ms, s.in_progress},
            out, "kiln_engine_status");
    });
}

kiln_error* kiln_flush_sync(kiln_engine* engine, int64_t deadline_ms) {
    return guarded([&]() -> result<void> {
        if (capi::engine_of(engine).flush_sync(capi::milliseconds(deadline_ms))) return {};
        return fail(errc::timeout, "not all is on disk, or on the servers of KILN_REMOTE, in {} ms", deadline_ms);
    });
}

kiln_error* kiln_status_json(kiln_engine* engine, char** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(*out, capi::copied(engine_detail::to_json_text(status(capi::engine_of(engine)))));
        return {};
    });
}

kiln_error* kiln_device_count(size_t* out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const all, devices());
        *out = all.size();
        return {};
    });
}

kiln_error* kiln_device(int32_t ordinal, kiln_device_info* out) {
    return guarded([&]() -> result<void> {
        KILN_TRY(auto const d, device(ordinal));
        kiln_device_info info = KILN_DEVICE_INFO_INIT;
        info.ordinal = d.ordinal;
        info.major = d.major;
        info.minor = d.minor;
        info.multiprocessors = d.multiprocessors;
        info.driver_version = d.driver_version;
        info.memory_bytes = d.memory_bytes;
        std::ranges::copy(d.uuid, info.uuid);
        capi::copy_text(d.target(), info.arch);
        capi::copy_text(d.name, info.name);
        return capi::write_struct(info, out, "kiln_device_info");
    });
}

kiln_error* kiln_stream_make(int32_t device, kiln_stream** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto made, stream::make(device));
        *out = new kiln_stream{std::move(made)};
        return {};
    });
}
kiln_stream_handle_t kiln_stream_handle(kiln_stream const* stream) {
    return stream == nullptr ? nullptr : stream->stream.get();
}
kiln_error* kiln_stream_wait_sync(kiln_stream const* stream) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(stream, "stream"));
        return stream->stream.wait_sync();
    });
}
void kiln_stream_free(kiln_stream* stream) { delete stream; }

kiln_error* kiln_memory_make(size_t bytes, int32_t device, kiln_memory** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto made, device_memory::make(bytes, device));
        *out = new kiln_memory{std::move(made)};
        return {};
    });
}
void* kiln_memory_address(kiln_memory const* memory) { return memory == nullptr ? nullptr : memory->memory.get(); }
kiln_error* kiln_memory_upload_sync(kiln_memory* memory, kiln_stream_handle_t on, void const* from, size_t bytes) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(memory, "memory"));
        if (bytes > 0) KILN_CHECK(not_null(from, "from"));
        return memory->memory.upload_sync(static_cast<CUstream_st*>(on),
                                          std::span{static_cast<std::byte const*>(from), bytes});
    });
}
kiln_error* kiln_memory_download_sync(kiln_memory const* memory, kiln_stream_handle_t on, void* to, size_t bytes) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(memory, "memory"));
        if (bytes > 0) KILN_CHECK(not_null(to, "to"));
        return memory->memory.download_sync(static_cast<CUstream_st*>(on),
                                            std::span{static_cast<std::byte*>(to), bytes});
    });
}
void kiln_memory_free(kiln_memory* memory) { delete memory; }
