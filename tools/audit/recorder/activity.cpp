// SPDX-License-Identifier: Apache-2.0
#include "activity.hpp"

#include <cstdlib>

namespace kiln::recorder {

namespace {

using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;

// CUPTI's records are packed: fields are read by value.
template <class Record>
Record const& as(CUpti_Activity const* record) {
    return *reinterpret_cast<Record const*>(record);
}

std::string_view text(char const* name) { return name == nullptr ? std::string_view{"?"} : std::string_view{name}; }

void add_kernel(recording_file& to, CUpti_ActivityKernel10 const& k, activity_counts& counts) {
    format::kernel_record r;
    r.correlation = k.correlationId;
    r.stream = k.streamId;
    r.start = k.start;
    r.end = k.end;
    if (k.start == 0 || k.end == 0) ++counts.timeless;
    r.grid_x = static_cast<uint32_t>(k.gridX);
    r.grid_y = static_cast<uint32_t>(k.gridY);
    r.grid_z = static_cast<uint32_t>(k.gridZ);
    r.block_x = static_cast<uint16_t>(k.blockX);
    r.block_y = static_cast<uint16_t>(k.blockY);
    r.block_z = static_cast<uint16_t>(k.blockZ);
    r.registers = k.registersPerThread;
    r.static_shared = static_cast<uint32_t>(k.staticSharedMemory);
    r.dynamic_shared = static_cast<uint32_t>(k.dynamicSharedMemory);
    r.local = k.localMemoryPerThread;
    r.graph = k.graphId;
    r.name = to.intern(text(k.name));
    r.context = static_cast<uint16_t>(k.contextId);
    r.device = static_cast<uint16_t>(k.deviceId);
    to.add(r, r.start);
}

void add_copy(recording_file& to, CUpti_ActivityMemcpy6 const& k, activity_counts& counts) {
    format::copy_record r;
    r.correlation = k.correlationId;
    r.stream = k.streamId;
    r.start = k.start;
    r.end = k.end;
    if (k.start == 0 || k.end == 0) ++counts.timeless;
    r.bytes = k.bytes;
    r.direction = k.copyKind;
    r.source = k.srcKind;
    r.target = k.dstKind;
    r.flags = k.flags;
    r.graph = k.graphId;
    to.add(r, r.start);
}

void add_call(recording_file& to, cupti_calls const& cupti, CUpti_ActivityAPI const& k) {
    auto const domain = k.kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    char const* name = nullptr;
    if (cupti.callback_name(domain, k.cbid, &name) != CUPTI_SUCCESS) name = nullptr;
    format::call_record r;
    r.correlation = k.correlationId;
    r.thread = k.threadId;
    r.start = k.start;
    r.end = k.end;
    r.status = k.returnValue;
    r.name = to.intern(text(name));
    to.add(r, r.start);
}

void add_overhead(recording_file& to, CUpti_ActivityOverhead3 const& k) {
    format::overhead_record r;
    auto const what = static_cast<uint32_t>(k.overheadKind);
    r.what = what >= 1u << 16 ? what >> 16 : what << 8;  // 256: the driver's compiler
    r.correlation = k.correlationId;
    r.start = k.start;
    r.end = k.end;
    to.add(r, r.start);
    std::free(k.overheadData);  // CUPTI leaves it to us
}

void add_device(recording_file& to, CUpti_ActivityDevice5 const& k) {
    format::device_record r;
    r.id = k.id;
    r.multiprocessors = k.numMultiprocessors;
    r.major = k.computeCapabilityMajor;
    r.minor = k.computeCapabilityMinor;
    r.most_warps = k.maxWarpsPerMultiprocessor;
    r.most_registers = k.maxRegistersPerMultiprocessor;
    r.shared_bytes = k.maxSharedMemoryPerMultiprocessor;
    r.name = to.intern(text(k.name));
    r.memory = k.globalMemorySize;
    to.add(r, 0);
}

}  // namespace

void add_activity(recording_file& to, cupti_calls const& cupti, CUpti_Activity const* record, activity_counts& counts) {
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: add_kernel(to, as<CUpti_ActivityKernel10>(record), counts); break;
        case CUPTI_ACTIVITY_KIND_MEMCPY: add_copy(to, as<CUpti_ActivityMemcpy6>(record), counts); break;
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: add_call(to, cupti, as<CUpti_ActivityAPI>(record)); break;
        case CUPTI_ACTIVITY_KIND_OVERHEAD: add_overhead(to, as<CUpti_ActivityOverhead3>(record)); break;
        case CUPTI_ACTIVITY_KIND_DEVICE: add_device(to, as<CUpti_ActivityDevice5>(record)); break;
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            auto const& k = as<CUpti_ActivityMemset4>(record);
            format::set_record r;
            r.correlation = k.correlationId;
            r.stream = k.streamId;
            r.start = k.start;
            r.end = k.end;
            r.bytes = k.bytes;
            to.add(r, r.start);
            break;
        }
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            auto const& k = as<CUpti_ActivitySynchronization2>(record);
            format::wait_record r;
            r.correlation = k.correlationId;
            r.type = static_cast<uint32_t>(k.type);
            r.stream = k.streamId;
            r.start = k.start;
            r.end = k.end;
            r.status = k.returnValue;
            to.add(r, r.start);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMORY2: {
            auto const& k = as<CUpti_ActivityMemory4>(record);
            format::memory_record r;
            r.correlation = k.correlationId;
            r.operation = static_cast<uint8_t>(k.memoryOperationType);
            r.memory = static_cast<uint8_t>(k.memoryKind);
            r.async = static_cast<uint8_t>(k.isAsync);
            r.pool = static_cast<uint8_t>(k.memoryPoolConfig.memoryPoolType);
            r.time = k.timestamp;
            r.bytes = k.bytes;
            r.address = k.address;
            to.add(r, r.time);
            break;
        }
        case CUPTI_ACTIVITY_KIND_JIT: {
            auto const& k = as<CUpti_ActivityJit2>(record);
            format::jit_record r;
            r.correlation = k.correlationId;
            r.thread = k.threadId;
            r.entry = static_cast<uint8_t>(k.jitEntryType);
            r.operation = static_cast<uint8_t>(k.jitOperationType);
            r.start = k.start;
            r.end = k.end;
            to.add(r, r.start);
            break;
        }
        case CUPTI_ACTIVITY_KIND_CONTEXT: {
            auto const& k = as<CUpti_ActivityContext3>(record);
            format::context_record r;
            r.id = k.contextId;
            r.device = k.deviceId;
            r.null_stream = k.nullStreamId;
            to.add(r, 0);
            break;
        }
        case CUPTI_ACTIVITY_KIND_STREAM: {
            auto const& k = as<CUpti_ActivityStream>(record);
            format::stream_record r;
            r.context = k.contextId;
            r.id = k.streamId;
            r.flag = static_cast<uint32_t>(k.flag);
            to.add(r, 0);
            break;
        }
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
            auto const& k = as<CUpti_ActivityExternalCorrelation>(record);
            format::external_record r;
            r.correlation = k.correlationId;
            r.source = static_cast<uint32_t>(k.externalKind);
            r.id = k.externalId;
            to.add(r, 0);
            break;
        }
        default: break;
    }
}

}  // namespace kiln::recorder
