// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvrtc_api.hpp"

#include <algorithm>

namespace kiln::cuda {

namespace {

template <class Function>
bool take(symbol_source const& symbols, char const* name, Function& into) {
    into = reinterpret_cast<Function>(symbols(name));
    return into != nullptr;
}

// The name of the first entry that is missing though every version has it; null when all are there.
char const* resolve_all(symbol_source const& symbols, nvrtc_api& api) {
    char const* missing = nullptr;
    auto const need = [&](char const* name, auto& into) {
        if (!take(symbols, name, into) && missing == nullptr) missing = name;
    };
    need("nvrtcVersion", api.version);
    need("nvrtcGetErrorString", api.get_error_string);
    need("nvrtcCreateProgram", api.create_program);
    need("nvrtcDestroyProgram", api.destroy_program);
    need("nvrtcCompileProgram", api.compile_program);
    need("nvrtcAddNameExpression", api.add_name_expression);
    need("nvrtcGetLoweredName", api.get_lowered_name);
    need("nvrtcGetProgramLogSize", api.get_program_log_size);
    need("nvrtcGetProgramLog", api.get_program_log);
    need("nvrtcGetCUBINSize", api.get_cubin_size);
    need("nvrtcGetCUBIN", api.get_cubin);
    need("nvrtcGetPTXSize", api.get_ptx_size);
    need("nvrtcGetPTX", api.get_ptx);
    need("nvrtcGetLTOIRSize", api.get_ltoir_size);
    need("nvrtcGetLTOIR", api.get_ltoir);
    need("nvrtcGetNumSupportedArchs", api.get_num_supported_archs);
    need("nvrtcGetSupportedArchs", api.get_supported_archs);
    take(symbols, "nvrtcGetPCHHeapSize", api.get_pch_heap_size);
    take(symbols, "nvrtcSetPCHHeapSize", api.set_pch_heap_size);
    take(symbols, "nvrtcGetPCHCreateStatus", api.get_pch_create_status);
    take(symbols, "nvrtcGetPCHHeapSizeRequired", api.get_pch_heap_size_required);
    take(symbols, "nvrtcSetFlowCallback", api.set_flow_callback);
    return missing;
}

}  // namespace

std::string nvrtc_api::words(nvrtcResult status) const {
    auto const* text = get_error_string == nullptr ? nullptr : get_error_string(status);
    return text == nullptr ? fmt::format("NVRTC error {}", static_cast<int>(status)) : std::string{text};
}

result<std::vector<int>> nvrtc_api::supported_archs() const {
    int count = 0;
    auto status = get_num_supported_archs(&count);
    std::vector<int> out(static_cast<std::size_t>(std::max(count, 0)));
    if (status == NVRTC_SUCCESS && !out.empty()) status = get_supported_archs(out.data());
    if (status != NVRTC_SUCCESS) {
        return fail(errc::internal, "nvrtcGetSupportedArchs: {}", words(status)).with_status(static_cast<int>(status));
    }
    std::ranges::sort(out);
    return out;
}

result<nvrtc_api> resolve_nvrtc(symbol_source const& symbols) {
    nvrtc_api out;
    auto const* missing = resolve_all(symbols, out);
    if (out.version != nullptr) static_cast<void>(out.version(&out.major, &out.minor));
    // The version is the better reason when both are wrong.
    if (out.major * 100 + out.minor < nvrtc_needed_major * 100 + nvrtc_needed_minor) {
        return fail(errc::unsupported, "NVRTC {}.{} or newer is needed; this one is {}.{}", nvrtc_needed_major,
                    nvrtc_needed_minor, out.major, out.minor);
    }
    if (missing != nullptr)
        return fail(errc::not_found, "{}: NVRTC {}.{} does not export it", missing, out.major, out.minor);
    return out;
}

}  // namespace kiln::cuda
