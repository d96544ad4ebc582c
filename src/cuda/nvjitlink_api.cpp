// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvjitlink_api.hpp"

namespace kiln::cuda {

namespace {

// Each release exports its functions under its own version, most also under those before it, and all under the bare
// name. The version's own names are what its header would call, so they come first.
std::vector<std::string> suffixes(unsigned major, unsigned minor) {
    std::vector<std::string> out;
    for (auto m = static_cast<int>(minor); m >= 0; --m) out.push_back(fmt::format("_{}_{}", major, m));
    return out;
}

void* versioned(symbol_source const& symbols, std::string const& name, std::vector<std::string> const& endings) {
    for (auto const& ending : endings) {
        if (auto* function = symbols(("__" + name + ending).c_str())) return function;
    }
    return symbols(name.c_str());
}

}  // namespace

std::string_view words(nvJitLinkResult status) noexcept {
    switch (static_cast<int>(status)) {
        case NVJITLINK_SUCCESS: return "success";
        case NVJITLINK_ERROR_UNRECOGNIZED_OPTION: return "unrecognized option";
        case NVJITLINK_ERROR_MISSING_ARCH: return "missing arch";
        case NVJITLINK_ERROR_INVALID_INPUT: return "invalid input";
        case NVJITLINK_ERROR_PTX_COMPILE: return "ptx compile";
        case NVJITLINK_ERROR_NVVM_COMPILE: return "nvvm compile";
        case NVJITLINK_ERROR_INTERNAL: return "internal";
        case NVJITLINK_ERROR_THREADPOOL: return "threadpool";
        case NVJITLINK_ERROR_UNRECOGNIZED_INPUT: return "unrecognized input";
        case NVJITLINK_ERROR_FINALIZE: return "finalize";
        // Releases after 12.0 added these, so they are spelled as numbers.
        case 10: return "null input";
        case 11: return "incompatible options";
        case 12: return "incorrect input type";
        case 13: return "arch mismatch";
        case 14: return "outdated library";
        case 15: return "missing fatbin";
        case 16: return "unrecognized arch";
        case 17: return "unsupported arch";
        case 18: return "lto not enabled";
        default: return "unknown status";
    }
}

result<nvjitlink_api> resolve_nvjitlink(symbol_source const& symbols) {
    nvjitlink_api out;
    out.version = reinterpret_cast<decltype(out.version)>(symbols("nvJitLinkVersion"));
    if (out.version == nullptr || out.version(&out.major, &out.minor) != NVJITLINK_SUCCESS) {
        out.major = 12;
        out.minor = 0;
    }
    auto const endings = suffixes(out.major, out.minor);
    std::string missing;
    auto const need = [&](char const* name, auto& into) {
        into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(versioned(symbols, name, endings));
        if (into == nullptr && missing.empty()) missing = name;
    };
    need("nvJitLinkCreate", out.create);
    need("nvJitLinkDestroy", out.destroy);
    need("nvJitLinkAddData", out.add_data);
    need("nvJitLinkComplete", out.complete);
    need("nvJitLinkGetLinkedCubinSize", out.get_linked_cubin_size);
    need("nvJitLinkGetLinkedCubin", out.get_linked_cubin);
    need("nvJitLinkGetLinkedPtxSize", out.get_linked_ptx_size);
    need("nvJitLinkGetLinkedPtx", out.get_linked_ptx);
    need("nvJitLinkGetErrorLogSize", out.get_error_log_size);
    need("nvJitLinkGetErrorLog", out.get_error_log);
    need("nvJitLinkGetInfoLogSize", out.get_info_log_size);
    need("nvJitLinkGetInfoLog", out.get_info_log);
    if (!missing.empty()) {
        return fail(errc::unsupported, "{}: this nvJitLink exports neither __{}{} nor {}; nvJitLink 12 or 13 is needed",
                    missing, missing, endings.front(), missing);
    }
    return out;
}

}  // namespace kiln::cuda
