// SPDX-License-Identifier: Apache-2.0
#include "capi/boxes.hpp"

#include <cstdlib>

namespace kiln::capi {

result<void> describe(kernel_info const& k, kiln_kernel_info* out) {
    return write_struct(kiln_kernel_info{sizeof(kiln_kernel_info), k.name.c_str(), k.lowered.c_str(), k.registers,
                                         k.shared_bytes, k.local_bytes},
                        out, "kiln_kernel_info");
}

kiln_artifact* boxed(obtained got) {
    auto arch = got.what->target.arch.name();
    return new kiln_artifact{std::move(got), std::move(arch)};
}

}  // namespace kiln::capi

using namespace kiln;
using capi::guarded;
using capi::not_null;

static_assert(static_cast<int>(provenance::compiled) == KILN_FROM_COMPILER &&
              static_cast<int>(provenance::memory) == KILN_FROM_MEMORY &&
              static_cast<int>(provenance::disk) == KILN_FROM_DISK &&
              static_cast<int>(provenance::bundle) == KILN_FROM_BUNDLE &&
              static_cast<int>(provenance::fleet) == KILN_FROM_FLEET);

kiln_error* kiln_artifact_sync(kiln_engine* engine, kiln_unit const* unit, char const* arch, kiln_kind kind,
                               kiln_wait const* wait, kiln_artifact** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const u, capi::read_unit(unit));
        KILN_TRY(auto const t, capi::read_target(arch, kind));
        KILN_TRY(auto const how, capi::read_wait(wait));
        KILN_TRY(auto got, capi::engine_of(engine).artifact_sync(u, t, how));
        *out = capi::boxed(std::move(got));
        return {};
    });
}
void kiln_artifact_free(kiln_artifact* artifact) { delete artifact; }

namespace {

char const* text_of(kiln_artifact const* a, std::string artifact::*which) {
    return a == nullptr ? "" : ((*a->got.what).*which).c_str();
}

}  // namespace

char const* kiln_artifact_unit(kiln_artifact const* a) { return text_of(a, &artifact::unit); }
char const* kiln_artifact_arch(kiln_artifact const* a) { return a == nullptr ? "" : a->arch.c_str(); }
kiln_kind kiln_artifact_kind(kiln_artifact const* a) {
    return a == nullptr ? KILN_CUBIN : static_cast<kiln_kind>(a->got.what->target.kind);
}
char const* kiln_artifact_key(kiln_artifact const* a) { return text_of(a, &artifact::key); }
char const* kiln_artifact_compiler(kiln_artifact const* a) { return text_of(a, &artifact::compiler); }
char const* kiln_artifact_toolchain(kiln_artifact const* a) { return text_of(a, &artifact::toolchain); }
char const* kiln_artifact_log(kiln_artifact const* a) { return text_of(a, &artifact::log); }
kiln_provenance kiln_artifact_from(kiln_artifact const* a) {
    return a == nullptr ? KILN_FROM_COMPILER : static_cast<kiln_provenance>(a->got.from);
}
void const* kiln_artifact_image(kiln_artifact const* a, size_t* size) {
    if (size != nullptr) *size = a == nullptr ? 0 : a->got.what->image.size();
    return a == nullptr ? nullptr : a->got.what->image.data();
}
size_t kiln_artifact_kernel_count(kiln_artifact const* a) { return a == nullptr ? 0 : a->got.what->kernels.size(); }

kiln_error* kiln_artifact_kernel(kiln_artifact const* artifact, size_t index, kiln_kernel_info* out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(artifact, "artifact"));
        auto const& all = artifact->got.what->kernels;
        if (index >= all.size()) return fail(errc::not_found, "kernel {} of {}", index, all.size());
        return capi::describe(all[index], out);
    });
}

void const* kiln_artifact_constant(kiln_artifact const* artifact, char const* name, size_t* size) {
    auto const* const found =
        artifact == nullptr || name == nullptr ? nullptr : artifact->got.what->find_constant(name);
    if (size != nullptr) *size = found == nullptr ? 0 : found->bytes.size();
    return found == nullptr ? nullptr : found->bytes.data();
}

kiln_error* kiln_artifact_to_bytes(kiln_artifact const* artifact, void** data, size_t* size) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(artifact, "artifact"));
        KILN_CHECK(not_null(data, "data"));
        KILN_CHECK(not_null(size, "size"));
        auto const bytes = artifact->got.what->to_bytes();
        auto* const copy = std::malloc(bytes.size());
        if (copy == nullptr) throw std::bad_alloc{};
        std::memcpy(copy, bytes.data(), bytes.size());
        *data = copy;
        *size = bytes.size();
        return {};
    });
}

kiln_error* kiln_artifact_from_bytes(void const* data, size_t size, kiln_artifact** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        if (size > 0) KILN_CHECK(not_null(data, "data"));
        KILN_TRY(auto got, artifact::from_bytes(std::span{static_cast<std::byte const*>(data), size}));
        *out = capi::boxed(obtained{std::make_shared<artifact const>(std::move(got)), provenance::memory, 0, {}});
        return {};
    });
}

kiln_error* kiln_link_sync(kiln_engine* engine, kiln_link const* what, kiln_wait const* wait, kiln_artifact** out) {
    return guarded([&]() -> result<void> {
        KILN_CHECK(not_null(out, "out"));
        KILN_TRY(auto const l, capi::read_struct(what, "kiln_link"));
        KILN_CHECK(not_null(l.name, "kiln_link::name"));
        KILN_TRY(auto const t, capi::read_target(l.arch, l.kind));
        link_request request{.name = l.name, .target = t, .inputs = {}};
        if (l.input_count > 0) KILN_CHECK(not_null(l.inputs, "kiln_link::inputs"));
        for (std::size_t i = 0; i < l.input_count; ++i) {
            KILN_CHECK(not_null(l.inputs[i], fmt::format("kiln_link::inputs[{}]", i)));
            request.inputs.push_back(l.inputs[i]->got.what);
        }
        KILN_TRY(request.kernels, capi::read_texts(l.kernels, l.kernel_count, "kiln_link::kernels"));
        KILN_TRY(request.options, capi::read_texts(l.options, l.option_count, "kiln_link::options"));
        KILN_TRY(auto const how, capi::read_wait(wait));
        KILN_TRY(auto got, capi::engine_of(engine).link_sync(request, how));
        *out = capi::boxed(std::move(got));
        return {};
    });
}
