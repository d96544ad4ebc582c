// SPDX-License-Identifier: Apache-2.0
//
// What a call of the CUDA runtime or driver API is for, by the stem of its name: a new version of CUDA brings new names, and
// needs no new table. Nothing to link: the recorder asks it too.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::audit {

enum class call_class : std::uint8_t {
    other,
    launch,
    copy,
    set,
    wait,      // the host blocks
    allocate,  // of a device, outside pools
    allocate_pooled,
    allocate_host,
    allocate_managed,
    release,
    release_pooled,
    release_host,
    trim,
    load,
    link,
    context,
    stream,
    event,
    elapsed,
    graph,
};

[[nodiscard]] constexpr call_class class_of(std::string_view name) noexcept {
    auto const has = [&](std::string_view stem) { return name.find(stem) != name.npos; };
    using enum call_class;
    if (has("HostFunc") || has("Query") || has("Attribute")) return other;
    if (has("GraphInstantiate") || has("StreamBeginCapture") || has("StreamEndCapture")) return graph;
    if (has("Launch")) return launch;
    if (has("GraphAdd") || has("GraphExec") || has("GraphMem")) return other;
    if (has("Memcpy")) return copy;
    if (has("Memset")) return set;
    if (has("EventElapsedTime")) return elapsed;
    if (has("Synchronize")) return wait;
    if (has("MemPoolTrim")) return trim;
    if (has("MallocAsync") || has("MemAllocAsync") || has("MallocFromPool") || has("MemAllocFromPool"))
        return allocate_pooled;
    if (has("FreeAsync")) return release_pooled;
    if (has("MallocManaged") || has("MemAllocManaged")) return allocate_managed;
    if (has("MallocHost") || has("HostAlloc") || has("MemAllocHost") || has("HostRegister")) return allocate_host;
    if (has("FreeHost") || has("HostUnregister")) return release_host;
    if (has("cudaMalloc") || has("cuMemAlloc") || has("cuMemCreate")) return allocate;
    if (has("cudaFree") || has("cuMemFree") || has("cuMemRelease")) return has("FreeArray") ? other : release;
    if (has("ModuleLoad") || has("LibraryLoad") || has("FuncLoad") || has("GetFunction")) return load;
    if (has("cuLinkComplete") || has("cuLinkAdd") || has("cuLinkCreate")) return link;
    if (has("CtxCreate") || has("PrimaryCtxRetain")) return context;
    if (has("StreamCreate")) return stream;
    if (has("EventRecord")) return event;
    return other;
}

// Calls that come with every launch, or are one: to look each time at who called would cost more than the launch. cuBLAS asks for a kernel's
// function and clears its counters whenever it multiplies.
[[nodiscard]] constexpr bool comes_with_launches(std::string_view name) noexcept {
    auto const what = class_of(name);
    return what == call_class::launch || what == call_class::set || name.find("GetFunction") != name.npos;
}

// Host-blocking waits by what they wait for.
enum class wait_class : std::uint8_t { none, event, stream, device };

[[nodiscard]] constexpr wait_class wait_of(std::string_view name) noexcept {
    if (class_of(name) != call_class::wait) return wait_class::none;
    if (name.find("Event") != name.npos) return wait_class::event;
    if (name.find("Stream") != name.npos) return wait_class::stream;
    return wait_class::device;
}

}  // namespace kiln::audit
