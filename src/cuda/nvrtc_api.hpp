// SPDX-License-Identifier: Apache-2.0
//
// NVRTC's entry points, resolved once. Functions marked optional may be null; `require` turns that into an
// error. NVRTC serialises compiles inside a process; the functions may be called from any thread.
#pragma once

#include "cuda/loaded_library.hpp"

#include <memory>
#include <nvrtc.h>
#include <vector>

namespace kiln::cuda {

struct nvrtc_api {
    loaded_library library;  // empty in tests
    std::string builtins;    // what libnvrtc-builtins holds, as cuda/nvrtc_builtins.hpp tells it; empty in tests
    int major = 0;
    int minor = 0;

    decltype(&nvrtcVersion) version = nullptr;
    decltype(&nvrtcGetErrorString) get_error_string = nullptr;
    decltype(&nvrtcCreateProgram) create_program = nullptr;
    decltype(&nvrtcDestroyProgram) destroy_program = nullptr;
    decltype(&nvrtcCompileProgram) compile_program = nullptr;
    decltype(&nvrtcAddNameExpression) add_name_expression = nullptr;
    decltype(&nvrtcGetLoweredName) get_lowered_name = nullptr;
    decltype(&nvrtcGetProgramLogSize) get_program_log_size = nullptr;
    decltype(&nvrtcGetProgramLog) get_program_log = nullptr;
    decltype(&nvrtcGetCUBINSize) get_cubin_size = nullptr;
    decltype(&nvrtcGetCUBIN) get_cubin = nullptr;
    decltype(&nvrtcGetPTXSize) get_ptx_size = nullptr;
    decltype(&nvrtcGetPTX) get_ptx = nullptr;
    decltype(&nvrtcGetLTOIRSize) get_ltoir_size = nullptr;
    decltype(&nvrtcGetLTOIR) get_ltoir = nullptr;
    decltype(&nvrtcGetNumSupportedArchs) get_num_supported_archs = nullptr;
    decltype(&nvrtcGetSupportedArchs) get_supported_archs = nullptr;
    // Optional:
    nvrtcResult (*get_pch_heap_size)(std::size_t*) = nullptr;
    nvrtcResult (*set_pch_heap_size)(std::size_t) = nullptr;
    nvrtcResult (*get_pch_create_status)(nvrtcProgram) = nullptr;
    nvrtcResult (*get_pch_heap_size_required)(nvrtcProgram, std::size_t*) = nullptr;
    nvrtcResult (*set_flow_callback)(nvrtcProgram, int (*)(void*, void*), void*) = nullptr;

    // Compute capabilities this compiler can target, ascending: 75, 80, ...
    [[nodiscard]] result<std::vector<int>> supported_archs() const;
    // NVRTC's words for a status.
    [[nodiscard]] std::string words(nvrtcResult status) const;
};

inline constexpr std::string_view nvrtc_sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
// Oldest version Kiln works with.
inline constexpr int nvrtc_needed_major = 12;
inline constexpr int nvrtc_needed_minor = 8;

// Beside a driver NVRTC keeps what it made, from 12.9 on; told --no-cache it makes it anew.
[[nodiscard]] constexpr bool has_nvrtc_cache(int major, int minor) noexcept {
    return major > 12 || (major == 12 && minor >= 9);
}

// errc::unsupported for versions before 12.8, errc::not_found for an entry every version has.
[[nodiscard]] result<nvrtc_api> resolve_nvrtc(symbol_source const& symbols);

// The one way to open NVRTC: exactly this file, with the builtins that lie beside it. Opened once, remembered by path.
[[nodiscard]] result<std::shared_ptr<nvrtc_api const>> load_nvrtc(std::filesystem::path const& file,
                                                                  base::load_watcher watcher = nullptr);

}  // namespace kiln::cuda
