// SPDX-License-Identifier: Apache-2.0
//
// nvJitLink's entry points, resolved once. The library exports each function under a name with its version
// (__nvJitLinkCreate_13_0), which its header hides behind inline wrappers compiled for one version; here
// the names are chosen at run time, so one build works with every nvJitLink 12 and 13.
#pragma once

#include "cuda/loaded_library.hpp"

#include <cstdint>
#include <memory>
#define NVJITLINK_NO_INLINE
#include <nvJitLink.h>

namespace kiln::cuda {

struct nvjitlink_api {
    loaded_library library;  // empty in tests
    unsigned major = 0;      // 12.0 also stands for 12.1 and 12.2, which cannot tell their version
    unsigned minor = 0;

    // Leaves a handle even when it fails: its log says why, and it must be destroyed.
    nvJitLinkResult (*create)(nvJitLinkHandle*, std::uint32_t count, char const* const* options) = nullptr;
    nvJitLinkResult (*destroy)(nvJitLinkHandle*) = nullptr;
    nvJitLinkResult (*add_data)(nvJitLinkHandle, nvJitLinkInputType, void const* data, std::size_t size,
                                char const* name) = nullptr;
    nvJitLinkResult (*complete)(nvJitLinkHandle) = nullptr;
    nvJitLinkResult (*get_linked_cubin_size)(nvJitLinkHandle, std::size_t*) = nullptr;
    nvJitLinkResult (*get_linked_cubin)(nvJitLinkHandle, void*) = nullptr;
    nvJitLinkResult (*get_linked_ptx_size)(nvJitLinkHandle, std::size_t*) = nullptr;
    nvJitLinkResult (*get_linked_ptx)(nvJitLinkHandle, char*) = nullptr;
    nvJitLinkResult (*get_error_log_size)(nvJitLinkHandle, std::size_t*) = nullptr;
    nvJitLinkResult (*get_error_log)(nvJitLinkHandle, char*) = nullptr;
    nvJitLinkResult (*get_info_log_size)(nvJitLinkHandle, std::size_t*) = nullptr;
    nvJitLinkResult (*get_info_log)(nvJitLinkHandle, char*) = nullptr;
    nvJitLinkResult (*version)(unsigned*, unsigned*) = nullptr;  // optional: 12.3 or newer
};

inline constexpr std::string_view nvjitlink_sonames[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};

// The enumerator's name without its prefix, in lower case: "unrecognized option".
[[nodiscard]] std::string_view words(nvJitLinkResult status) noexcept;

[[nodiscard]] result<nvjitlink_api> resolve_nvjitlink(symbol_source const& symbols);

// The one way to open nvJitLink: exactly this file. Opened once, remembered by path.
[[nodiscard]] result<std::shared_ptr<nvjitlink_api const>> load_nvjitlink(std::filesystem::path const& file,
                                                                          base::load_watcher watcher = nullptr);

}  // namespace kiln::cuda
