// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libnvJitLink.so.N. A link is a chain: the options, then each input after all before it. A step that was accepted
// once is only noted; the first that was not opens the real library and replays the chain there, so that errors appear exactly
// where they would have. nvJitLinkComplete answers from the store, or links and keeps every answer. Status codes
// are nvJitLink's.
#include "nvjitlink_link.hpp"

#include "exports.h"
#include "forward.hpp"

#include <cstring>

namespace kiln::intercept {
namespace {

constexpr int success = nvjitlink_success;
constexpr int internal_error = nvjitlink_internal_error;

template <class Body>
int with(Body body) noexcept {
    return guarded(internal_error, internal_error, body);
}

// What a pointer is called that is none: CUDA 12 has no word of its own for it.
int null_input() noexcept {
    return with([] {
        auto const* const version = version_of_linker();
        return version != nullptr && version->major < 13 ? 3 : 10;
    });
}

live_handles<link_record>& handles() {
    static constinit base::made_once<live_handles<link_record>> all;
    return all.get([] { return std::make_unique<live_handles<link_record>>(); });
}

template <class... Arguments>
int foreign(char const* name, Arguments... arguments) {
    return self().real.may_have_made_some() ? real_call(name, arguments...) : null_input();
}

int size_of(void* handle, char const* kind, char const* function, std::size_t* size) {
    if (handle == nullptr || size == nullptr) return null_input();
    auto* const k = handles().find(handle);
    if (k == nullptr) return foreign(function, handle, size);
    if (!k->answer) {
        if (int const status = k->materialise(); status != success) return status;
        return real_call(function, k->real, size);
    }
    auto const* const out = k->answer->find(kind);
    if (out == nullptr) return internal_error;
    if (out->status == success) *size = out->data.size();
    return out->status;
}

int data_of(void* handle, char const* kind, char const* function, void* data) {
    if (handle == nullptr || data == nullptr) return null_input();
    auto* const k = handles().find(handle);
    if (k == nullptr) return foreign(function, handle, data);
    if (!k->answer) {
        if (int const status = k->materialise(); status != success) return status;
        return real_call(function, k->real, data);
    }
    auto const* const out = k->answer->find(kind);
    if (out == nullptr) return internal_error;
    if (out->status == success) std::memcpy(data, out->data.data(), out->data.size());
    // A log that is empty ends, too.
    if (out->status == success && out->data.empty() && std::string_view{kind}.ends_with("Log"))
        *static_cast<char*>(data) = 0;
    return out->status;
}

}  // namespace
}  // namespace kiln::intercept

using namespace kiln::intercept;

#define KILN_API extern "C" __attribute__((visibility("default")))

KILN_API int nvJitLinkVersion(unsigned* major, unsigned* minor) {
    if (major == nullptr || minor == nullptr) return null_input();
    return with([&] {
        auto const* const known = version_of_linker();
        if (known == nullptr) return internal_error;
        *major = known->major;
        *minor = known->minor;
        return success;
    });
}

KILN_API int nvJitLinkCreate(void** handle, std::uint32_t count, char const** options) {
    if (handle == nullptr || options == nullptr) return null_input();
    return with([&] {
        auto made = std::make_unique<link_record>();
        for (std::uint32_t i = 0; i < count; ++i) {
            if (options[i] == nullptr) return real_call("nvJitLinkCreate", handle, count, options);
            made->options.emplace_back(options[i]);
        }
        if (!begin(*made)) {
            // One that is refused has a handle, too, which says why.
            if (int const status = real_call("nvJitLinkCreate", handle, count, options); status != success)
                return status;
            made->real = *handle;
        }
        *handle = handles().add(made.get());
        made.release();
        return success;
    });
}

KILN_API int nvJitLinkDestroy(void** handle) {
    if (handle == nullptr || *handle == nullptr) return null_input();
    return with([&] {
        std::unique_ptr<link_record> const k{handles().take(*handle)};
        if (!k) return foreign("nvJitLinkDestroy", handle);
        *handle = nullptr;
        return success;
    });
}

KILN_API int nvJitLinkAddData(void* handle, int type, void const* data, std::size_t size, char const* name) {
    if (handle == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        if (k == nullptr) return foreign("nvJitLinkAddData", handle, type, data, size, name);
        if (data == nullptr) {  // what that is called depends on the kind of input
            if (int const status = k->materialise(); status != success) return status;
            k->why_not = "an input that is not there";
            return real_call("nvJitLinkAddData", k->real, type, data, size, name);
        }
        return add(*k, {.type = type,
                        .name = name == nullptr ? "" : name,
                        .named = name != nullptr,
                        .is_file = false,
                        .data = std::string{static_cast<char const*>(data), size}});
    });
}

KILN_API int nvJitLinkAddFile(void* handle, int type, char const* name) {
    if (handle == nullptr || name == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        if (k == nullptr) return foreign("nvJitLinkAddFile", handle, type, name);
        return add(*k, {.type = type, .name = name, .named = true, .is_file = true, .data = {}});
    });
}

KILN_API int nvJitLinkComplete(void* handle) {
    if (handle == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        return k == nullptr ? foreign("nvJitLinkComplete", handle) : complete(*k);
    });
}

#define KILN_OUTPUT(kind)                                                                       \
    KILN_API int nvJitLinkGet##kind##Size(void* handle, std::size_t* size) {                    \
        return with([&] { return size_of(handle, #kind, "nvJitLinkGet" #kind "Size", size); }); \
    }                                                                                           \
    KILN_API int nvJitLinkGet##kind(void* handle, void* data) {                                 \
        return with([&] { return data_of(handle, #kind, "nvJitLinkGet" #kind, data); });        \
    }
KILN_OUTPUT(LinkedCubin)
KILN_OUTPUT(LinkedPtx)
KILN_OUTPUT(LinkedLTOIR)
KILN_OUTPUT(ErrorLog)
KILN_OUTPUT(InfoLog)

namespace {
int unavailable() { return internal_error; }
}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) void* kiln_forward(char const* name, long* first) {
    void* to = nullptr;
    (void)with([&] {
        if (auto* const k = handles().find(reinterpret_cast<void*>(*first))) {
            (void)k->materialise();
            k->why_not = name;
            *first = reinterpret_cast<long>(k->real);
        }
        self().tell({.kind = happening::what::forwarded, .detail = name});
        to = self().real.symbol(name);
        return 0;
    });
    return to == nullptr ? reinterpret_cast<void*>(&unavailable) : to;
}

KILN_FORWARD(__nvJitLinkAPI);

#define KILN_ALIAS(function, minor)                                                                                 \
    asm(".globl __nvJitLink" #function "_" #minor "\n.set __nvJitLink" #function "_" #minor ", nvJitLink" #function \
        "\n");
KILN_NVJITLINK_OF_MINORS(KILN_ALIAS)
