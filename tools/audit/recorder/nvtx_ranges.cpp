// SPDX-License-Identifier: Apache-2.0
// Ranges that the program names itself (NVTX): steps, phases, what a library calls its parts. The program's copy of NVTX loads us by
// NVTX_INJECTION64_PATH at its first range and gives us a table to put functions into. Ranges that were begun before the recording are not
// in it.
#include "recorder_state.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_map>

namespace kiln::recorder {

namespace {

// Ranges that may end on another thread, by their ids.
std::mutex apart_lock;
std::unordered_map<nvtxRangeId_t, open_range>& apart() {
    static auto& all = *new std::unordered_map<nvtxRangeId_t, open_range>;  // as long as the process
    return all;
}

open_range begin_range(char const* name) {
    open_range out;
    if (on)
        or_give_up([&] {
            auto const lock = self->file.lock();
            out.name = self->file.intern(name == nullptr ? "?" : name);
            out.start = now_ns();
        });
    return out;
}
void end_range(open_range const& range) {
    if (!on || range.start == 0) return;
    format::range_record r;
    r.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    r.name = range.name;
    r.start = range.start;
    r.end = now_ns();
    or_give_up([&] {
        auto const lock = self->file.lock();
        self->file.add(r, r.start);
    });
}

char const* text_of(nvtxEventAttributes_t const* about) {
    if (about == nullptr) return "?";
    switch (about->messageType) {
        case NVTX_MESSAGE_TYPE_ASCII: return about->message.ascii;
        case NVTX_MESSAGE_TYPE_REGISTERED:
            return reinterpret_cast<char const*>(about->message.registered);  // ours, below
        default: return "?";
    }
}

int begin_nested(char const* name) {
    auto* const here = this_thread();
    if (here == nullptr) return -1;
    auto& nested = here->ranges;
    int const at = nested.depth++;
    if (at < open_ranges::deepest) nested.all[static_cast<std::size_t>(at)] = begin_range(name);
    return at;
}
int end_nested() {
    auto* const here = this_thread();
    if (here == nullptr || here->ranges.depth == 0) return -1;
    auto& nested = here->ranges;
    int const at = --nested.depth;
    if (at < open_ranges::deepest) end_range(nested.all[static_cast<std::size_t>(at)]);
    return at;
}
nvtxRangeId_t begin_apart(char const* name) {
    static std::atomic<nvtxRangeId_t> ids{0};
    auto const id = ++ids;
    auto const range = begin_range(name);
    if (range.start == 0) return id;  // a forked child takes no lock
    or_give_up([&] {
        std::lock_guard const lock{apart_lock};
        apart()[id] = range;
    });
    return id;
}
void end_apart(nvtxRangeId_t id) {
    if (!on) return;
    open_range range;
    {
        std::lock_guard const lock{apart_lock};
        auto const at = apart().find(id);
        if (at == apart().end()) return;
        range = at->second;
        apart().erase(at);
    }
    end_range(range);
}

int NVTX_API push_text(char const* name) { return begin_nested(name); }
int NVTX_API push_wide(wchar_t const*) { return begin_nested("?"); }
int NVTX_API push_about(nvtxEventAttributes_t const* about) { return begin_nested(text_of(about)); }
int NVTX_API pop_plain() { return end_nested(); }
nvtxRangeId_t NVTX_API start_text(char const* name) { return begin_apart(name); }
nvtxRangeId_t NVTX_API start_about(nvtxEventAttributes_t const* about) { return begin_apart(text_of(about)); }
void NVTX_API end_plain(nvtxRangeId_t id) { end_apart(id); }
int NVTX_API push_in(nvtxDomainHandle_t, nvtxEventAttributes_t const* about) { return begin_nested(text_of(about)); }
int NVTX_API pop_in(nvtxDomainHandle_t) { return end_nested(); }
nvtxRangeId_t NVTX_API start_in(nvtxDomainHandle_t, nvtxEventAttributes_t const* about) {
    return begin_apart(text_of(about));
}
void NVTX_API end_in(nvtxDomainHandle_t, nvtxRangeId_t id) { end_apart(id); }
nvtxStringHandle_t NVTX_API keep_text(nvtxDomainHandle_t, char const* text) {
    return reinterpret_cast<nvtxStringHandle_t>(::strdup(text == nullptr ? "?" : text));
}

struct function_table {
    NvtxFunctionTable entries = nullptr;
    unsigned size = 0;
    template <class Function>
    void take(unsigned id, Function* function) const {
        // Entry 0 is none; a program's table may be shorter than this header knows.
        if (id < size && entries[id] != nullptr) std::memcpy(entries[id], &function, sizeof function);
    }
};

}  // namespace

}  // namespace kiln::recorder

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    using namespace kiln::recorder;
    auto const* const callbacks = static_cast<NvtxExportTableCallbacks const*>(get_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr) return 0;
    function_table core, domains;
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core.entries, &core.size) != 0) {
        core.take(NVTX_CBID_CORE_RangePushA, &push_text);
        core.take(NVTX_CBID_CORE_RangePushW, &push_wide);
        core.take(NVTX_CBID_CORE_RangePushEx, &push_about);
        core.take(NVTX_CBID_CORE_RangePop, &pop_plain);
        core.take(NVTX_CBID_CORE_RangeStartA, &start_text);
        core.take(NVTX_CBID_CORE_RangeStartEx, &start_about);
        core.take(NVTX_CBID_CORE_RangeEnd, &end_plain);
    }
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &domains.entries, &domains.size) != 0) {
        domains.take(NVTX_CBID_CORE2_DomainRangePushEx, &push_in);
        domains.take(NVTX_CBID_CORE2_DomainRangePop, &pop_in);
        domains.take(NVTX_CBID_CORE2_DomainRangeStartEx, &start_in);
        domains.take(NVTX_CBID_CORE2_DomainRangeEnd, &end_in);
        domains.take(NVTX_CBID_CORE2_DomainRegisterStringA, &keep_text);
    }
    return 1;
}
#endif
