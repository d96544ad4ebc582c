// SPDX-License-Identifier: Apache-2.0
//
// A libcupti that plays sessions: the recorder is tested on machines without a GPU. KILN_TEST_CUPTI names a script, one
// command a line:
//
//   refuse NAME                                       another profiler holds CUPTI
//   drop N                                            so many records were lost
//   device SMS NAME
//   kernel CORRELATION STREAM START END GRID BLOCK NAME
//   copy CORRELATION STREAM KIND FROM TO FLAGS BYTES START END
//   wait CORRELATION TYPE STREAM START END
//   call CORRELATION ID START END                     ID: 1 launch, 2 copy, 3 wait, 4 allocation
//   torn                                              half a record at the end of a buffer
//
// START and END are nanoseconds since somebody subscribed; 0 is no time. The records come with every flush, or, with "once" in the
// script, with the first. fake_call() makes the callbacks of one call, so that call sites can be tested from Python.
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace {

CUpti_CallbackFunc told = nullptr;
CUpti_BuffersCallbackRequestFunc ask = nullptr;
CUpti_BuffersCallbackCompleteFunc give = nullptr;
std::atomic<std::size_t> lost{0};
std::atomic<std::uint32_t> correlations{1000};
std::atomic<bool> played{false};
std::mutex playing;
char const* const names[] = {"cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020",
                             "cudaMalloc_v3020", "cudaGetDevice_v3020"};

std::uint64_t monotonic_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

std::vector<std::string> script() {
    std::vector<std::string> out;
    auto const* const file = std::getenv("KILN_TEST_CUPTI");
    std::ifstream from{file == nullptr ? "" : file};
    for (std::string line; std::getline(from, line);) out.push_back(line);
    return out;
}

std::size_t size_of(CUpti_Activity const* r) {
    switch (r->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
        case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
        case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice5);
        default: return sizeof(CUpti_ActivitySynchronization2);
    }
}

// What every flush brings, made once: a program whose memory has run out is let down by the recorder or by nobody.
struct session {
    std::uint64_t const begun = monotonic_ns();
    std::vector<std::uint8_t> data;
    std::size_t dropped = 0;
    bool once = false;
    std::string refused;  // by whom; empty: nobody
    template <class Record>
    void put(Record const& r) {
        auto const* const bytes = reinterpret_cast<std::uint8_t const*>(&r);
        data.insert(data.end(), bytes, bytes + sizeof r);
    }
};

// CUPTI's records are packed: no references into them.
void add(std::string const& line, session& to) {
    std::istringstream words{line};
    std::string command;
    words >> command;
    auto const number = [&] {
        unsigned long long v = 0;
        words >> v;
        return static_cast<std::uint32_t>(v);
    };
    auto const size = [&] {
        std::uint64_t v = 0;
        words >> v;
        return v;
    };
    auto const time = [&] {
        auto const v = size();
        return v == 0 ? 0 : to.begun + v;
    };
    auto const name = [&] {
        std::string v;
        words >> v;
        return ::strdup(v.c_str());  // as CUPTI's, it outlives the record
    };
    if (command == "drop") to.dropped = number();
    if (command == "kernel") {
        CUpti_ActivityKernel10 r{};
        r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        r.correlationId = number();
        r.streamId = number();
        r.start = time();
        r.end = time();
        r.gridX = static_cast<std::int32_t>(number());
        r.blockX = static_cast<std::int32_t>(number());
        r.gridY = r.gridZ = r.blockY = r.blockZ = 1;
        r.name = name();
        to.put(r);
    } else if (command == "copy") {
        CUpti_ActivityMemcpy6 r{};
        r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        r.correlationId = number();
        r.streamId = number();
        r.copyKind = static_cast<std::uint8_t>(number());
        r.srcKind = static_cast<std::uint8_t>(number());
        r.dstKind = static_cast<std::uint8_t>(number());
        r.flags = static_cast<std::uint8_t>(number());
        r.bytes = size();
        r.start = time();
        r.end = time();
        to.put(r);
    } else if (command == "wait") {
        CUpti_ActivitySynchronization2 r{};
        r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        r.correlationId = number();
        r.type = static_cast<CUpti_ActivitySynchronizationType>(number());
        r.streamId = number();
        r.start = time();
        r.end = time();
        to.put(r);
    } else if (command == "call") {
        CUpti_ActivityAPI r{};
        r.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
        r.correlationId = number();
        r.cbid = number();
        r.start = time();
        r.end = time();
        r.threadId = 7;
        to.put(r);
    } else if (command == "device") {
        CUpti_ActivityDevice5 r{};
        r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
        r.numMultiprocessors = number();
        r.computeCapabilityMajor = 9;
        r.name = name();
        to.put(r);
    } else if (command == "torn") {
        CUpti_ActivityKernel10 r{};
        r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        to.put(r);
        to.data.resize(to.data.size() - sizeof r / 2);
    }
}

session const& played_session() {
    static auto const all = [] {
        session out;
        try {
            auto const lines = script();
            out.once = !lines.empty() && lines.front() == "once";
            for (auto const& line : lines) {
                if (line.rfind("refuse ", 0) == 0 && out.refused.empty()) out.refused = line.substr(7);
                add(line, out);
            }
        } catch (std::bad_alloc const&) {  // no exception leaves a library of C
        }
        return out;
    }();
    return all;
}

}  // namespace

#define FAKE(name, ...) extern "C" CUptiResult CUPTIAPI name(__VA_ARGS__)

FAKE(cuptiGetVersion, std::uint32_t* version) { return *version = 130001, CUPTI_SUCCESS; }
FAKE(cuptiGetResultString, CUptiResult, char const** text) { return *text = "refused by the fake", CUPTI_SUCCESS; }
FAKE(cuptiGetCallbackName, CUpti_CallbackDomain domain, std::uint32_t id, char const** name) {
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || id < 1 || id > 5) return CUPTI_ERROR_INVALID_PARAMETER;
    return *name = names[id - 1], CUPTI_SUCCESS;
}
FAKE(cuptiSubscribe, CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void*) {
    *handle = nullptr;
    told = function;
    return CUPTI_SUCCESS;
}
FAKE(cuptiSubscribe_v2, CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* data,
     CUpti_SubscriberParams* p) {
    if (auto const& by = played_session().refused; !by.empty()) {
        std::snprintf(p->oldSubscriberName, p->oldSubscriberSize, "%s", by.c_str());
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    return cuptiSubscribe(handle, function, data);
}
FAKE(cuptiEnableCallback, std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
    return CUPTI_SUCCESS;
}
FAKE(cuptiActivityEnable, CUpti_ActivityKind) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityEnableDriverApi, CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityEnableRuntimeApi, CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityEnableAllSyncRecords, std::uint8_t) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityRegisterTimestampCallback, CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; }
FAKE(cuptiSetThreadIdType, CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityPushExternalCorrelationId, CUpti_ExternalCorrelationKind, std::uint64_t) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityPopExternalCorrelationId, CUpti_ExternalCorrelationKind, std::uint64_t*) { return CUPTI_SUCCESS; }
FAKE(cuptiActivityRegisterCallbacks, CUpti_BuffersCallbackRequestFunc request,
     CUpti_BuffersCallbackCompleteFunc complete) {
    ask = request;
    give = complete;
    return CUPTI_SUCCESS;
}
FAKE(cuptiActivityGetNumDroppedRecords, CUcontext, std::uint32_t, std::size_t* count) {
    return *count = lost.exchange(0), CUPTI_SUCCESS;
}
FAKE(cuptiActivityGetNextRecord, std::uint8_t* data, std::size_t valid, CUpti_Activity** record) {
    auto* const at = *record == nullptr ? data : reinterpret_cast<std::uint8_t*>(*record) + size_of(*record);
    auto* const next = reinterpret_cast<CUpti_Activity*>(at);
    if (at + sizeof(CUpti_ActivityKind) > data + valid || at + size_of(next) > data + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    return *record = next, CUPTI_SUCCESS;
}
FAKE(cuptiActivityFlushAll, std::uint32_t) {
    std::lock_guard const one_at_a_time{playing};
    auto const& all = played_session();
    if (ask == nullptr || (all.once && played.exchange(true))) return CUPTI_SUCCESS;
    std::uint8_t* data = nullptr;
    std::size_t room = 0, most = 0;
    ask(&data, &room, &most);
    if (data == nullptr) return CUPTI_ERROR_OUT_OF_MEMORY;
    auto const used = std::min(room, all.data.size());
    std::memcpy(data, all.data.data(), used);
    lost = all.dropped;
    give(nullptr, 0, data, room, used);
    return CUPTI_SUCCESS;
}

extern "C" std::uint32_t fake_call(std::uint32_t id) {
    CUpti_CallbackData d{};
    std::uint64_t kept = 0;
    d.functionName = names[id - 1];
    d.correlationId = ++correlations;
    d.correlationData = &kept;
    cudaMemcpyAsync_v3020_params nothing{};
    d.functionParams = &nothing;
    for (auto const site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
        d.callbackSite = site;
        if (told != nullptr) told(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, id, &d);
    }
    return d.correlationId;
}
