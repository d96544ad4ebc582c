// SPDX-License-Identifier: Apache-2.0
//
// CUPTI as a table, resolved once. The copy that the program has already mapped comes first: another path would map a second
// CUPTI with a state of its own.
#pragma once

#include <cupti.h>
#include <string>

namespace kiln::recorder {

// What older versions lack is null and done without.
struct cupti_calls {
    decltype(&::cuptiGetVersion) get_version = nullptr;
    decltype(&::cuptiGetResultString) result_string = nullptr;
    decltype(&::cuptiGetCallbackName) callback_name = nullptr;
    decltype(&::cuptiSubscribe) subscribe = nullptr;
    decltype(&::cuptiEnableCallback) enable_callback = nullptr;
    decltype(&::cuptiActivityEnable) enable = nullptr;
    decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
    decltype(&::cuptiActivityGetNumDroppedRecords) dropped = nullptr;
    decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
    // Newer ones.
    decltype(&::cuptiSubscribe_v2) subscribe_v2 = nullptr;
    decltype(&::cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
    decltype(&::cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
    decltype(&::cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
    decltype(&::cuptiActivityEnableAllSyncRecords) all_waits = nullptr;
    decltype(&::cuptiSetThreadIdType) thread_ids = nullptr;
    decltype(&::cuptiActivityPushExternalCorrelationId) push_external = nullptr;
    decltype(&::cuptiActivityPopExternalCorrelationId) pop_external = nullptr;

    // `where`: the file, or what is missing.
    bool load(std::string& where);
    [[nodiscard]] char const* say(CUptiResult status) const;
};

}  // namespace kiln::recorder
