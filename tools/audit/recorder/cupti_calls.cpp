// SPDX-License-Identifier: Apache-2.0
#include "cupti_calls.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

namespace kiln::recorder {

namespace {

std::string mapped_cupti() {
    std::string out;
    ::dl_iterate_phdr(
        [](::dl_phdr_info* about, std::size_t, void* to) {
            if (about->dlpi_name == nullptr || std::strstr(about->dlpi_name, "/libcupti.so") == nullptr) return 0;
            *static_cast<std::string*>(to) = about->dlpi_name;
            return 1;
        },
        &out);
    return out;
}

void* open_cupti(std::string& where) {
    // For tests, which put another one in its place.
    if (auto const* const fake = std::getenv("KILN_AUDIT_CUPTI_ALWAYS"))
        return ::dlopen((where = fake).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (auto const mapped = mapped_cupti(); !mapped.empty()) {
        if (auto* const library = ::dlopen(mapped.c_str(), RTLD_NOLOAD | RTLD_NOW)) return where = mapped, library;
    }
    std::string candidates[6];
    int n = 0;
    if (auto const* const found = std::getenv("KILN_AUDIT_CUPTI")) candidates[n++] = found;
    if (auto const* const home = std::getenv("CUDA_HOME")) {
        candidates[n++] = std::string{home} + "/extras/CUPTI/lib64/libcupti.so";
        candidates[n++] = std::string{home} + "/lib64/libcupti.so";
    }
    candidates[n++] = "libcupti.so.13";
    candidates[n++] = "libcupti.so.12";
    candidates[n++] = "/usr/local/cuda/lib64/libcupti.so";
    for (auto const& file : candidates) {
        if (file.empty()) continue;
        if (auto* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return where = file, library;
    }
    where = "no libcupti was found";
    return nullptr;
}

}  // namespace

bool cupti_calls::load(std::string& where) {
    auto* const library = open_cupti(where);
    if (library == nullptr) return false;
    bool whole = true;
    auto const find = [&]<class F>(F& to, char const* name, bool needed) {
        to = reinterpret_cast<F>(::dlsym(library, name));
        if (to == nullptr && needed) {
            if (whole) where += std::string{" lacks "} + name;
            whole = false;
        }
    };
    find(get_version, "cuptiGetVersion", true);
    find(result_string, "cuptiGetResultString", true);
    find(callback_name, "cuptiGetCallbackName", true);
    find(subscribe, "cuptiSubscribe", true);
    find(enable_callback, "cuptiEnableCallback", true);
    find(enable, "cuptiActivityEnable", true);
    find(register_callbacks, "cuptiActivityRegisterCallbacks", true);
    find(next_record, "cuptiActivityGetNextRecord", true);
    find(dropped, "cuptiActivityGetNumDroppedRecords", true);
    find(flush_all, "cuptiActivityFlushAll", true);
    find(subscribe_v2, "cuptiSubscribe_v2", false);
    find(register_clock, "cuptiActivityRegisterTimestampCallback", true);
    find(enable_driver_call, "cuptiActivityEnableDriverApi", false);
    find(enable_runtime_call, "cuptiActivityEnableRuntimeApi", false);
    find(all_waits, "cuptiActivityEnableAllSyncRecords", false);
    find(thread_ids, "cuptiSetThreadIdType", false);
    find(push_external, "cuptiActivityPushExternalCorrelationId", false);
    find(pop_external, "cuptiActivityPopExternalCorrelationId", false);
    return whole;
}

char const* cupti_calls::say(CUptiResult status) const {
    char const* text = nullptr;
    return result_string != nullptr && result_string(status, &text) == CUPTI_SUCCESS && text != nullptr ? text : "?";
}

}  // namespace kiln::recorder
