// SPDX-License-Identifier: Apache-2.0
// Stands in for a profiler: NVTX_INJECTION64_PATH=<this library> makes a program hand it its ranges, whose names it appends to the file
// KILN_TEST_NVTX names.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void note(char const* how, nvtxEventAttributes_t const* about) {
    auto const* const path = std::getenv("KILN_TEST_NVTX");
    auto* const file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%s %s\n", how, about == nullptr ? "" : about->message.ascii);
    std::fclose(file);
}

int NVTX_API push(nvtxDomainHandle_t, nvtxEventAttributes_t const* about) { return note("push", about), 0; }
int NVTX_API pop(nvtxDomainHandle_t) { return note("pop", nullptr), 0; }
nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t, nvtxEventAttributes_t const* about) { return note("start", about), 1; }
void NVTX_API end(nvtxDomainHandle_t, nvtxRangeId_t) { note("end", nullptr); }

template <class Function>
void take(NvtxFunctionTable table, unsigned size, unsigned id, Function* function) {
    // Entry 0 is none; a table may be shorter than this header knows.
    if (id < size && table[id] != nullptr) std::memcpy(table[id], &function, sizeof function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    auto const* const callbacks = static_cast<NvtxExportTableCallbacks const*>(get_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
    take(table, size, NVTX_CBID_CORE2_DomainRangePushEx, &push);
    take(table, size, NVTX_CBID_CORE2_DomainRangePop, &pop);
    take(table, size, NVTX_CBID_CORE2_DomainRangeStartEx, &start);
    take(table, size, NVTX_CBID_CORE2_DomainRangeEnd, &end);
    return 1;
}
#endif
