// SPDX-License-Identifier: Apache-2.0
// A driver without a GPU, for tests of what happens before a launch: two devices of compute capability 9.0, memory that is the
// host's, kernels that do nothing. A kernel named k__488 has parameters of 4, 8 and 8 bytes. Streams it did not make are refused, but
// for the default ones. What orders work is written to the file KILN_FAKE_CUDA_LOG names, a line each, and of each launch its first
// argument. KILN_FAKE_CUDA_FREE is how many bytes a device has left; with KILN_FAKE_CUDA_BUSY nothing that was queued ever ends, and with
// KILN_FAKE_CUDA_NONE there is no device.
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_HANDLE = 400, NOT_READY = 600 };
typedef uintptr_t any;

static void note(char const* what, any a, any b) {
    char const* const file = getenv("KILN_FAKE_CUDA_LOG");
    FILE* const to = file != NULL ? fopen(file, "a") : NULL;
    if (to == NULL) return;
    fprintf(to, "%s %ld %ld\n", what, (long)a, (long)b);
    fclose(to);
}

enum { most_streams = 1 << 16, first_stream = 1000 };
static int streams = 0;
static int gone[most_streams];
static int known(any stream) {
    return stream <= 2 || (stream >= first_stream && stream < (any)(first_stream + streams) && !gone[stream - first_stream]);
}

int cuInit(unsigned flags) { return getenv("KILN_FAKE_CUDA_NONE") != NULL ? NO_DEVICE : OK; }
int cuDriverGetVersion(int* out) { return *out = 13000, OK; }
int cuGetErrorName(int status, char const** out) { return *out = status == INVALID_HANDLE ? "CUDA_ERROR_INVALID_HANDLE" : "CUDA_ERROR", OK; }
int cuGetErrorString(int status, char const** out) { return *out = "an error of the fake driver", OK; }
int cuDeviceGetCount(int* out) { return *out = 2, OK; }
int cuDeviceGet(int* out, int ordinal) { return *out = ordinal, OK; }
int cuDeviceGetName(char* out, int size, int device) { return strncpy(out, "Fake GPU", (size_t)size), OK; }
int cuDeviceGetAttribute(int* out, int which, int device) {
    switch (which) {
        case 1: *out = 1024; break;     // threads of a block
        case 8: *out = 49152; break;    // its shared memory
        case 10: *out = 32; break;      // threads of a warp
        case 16: *out = 132; break;     // multiprocessors
        case 75: *out = 9; break;       // compute capability
        case 76: *out = 0; break;
        case 97: *out = 232448; break;  // shared memory on demand
        default: *out = 1;
    }
    return OK;
}
int cuDeviceTotalMem_v2(size_t* out, int device) { return *out = (size_t)1 << 33, OK; }
int cuDeviceGetUuid_v2(char* out, int device) { return memset(out, device + 1, 16), OK; }

static _Thread_local any stack[64];
static _Thread_local int depth = 0;
int cuDevicePrimaryCtxRetain(any* out, int device) { return *out = 100 + (any)device, OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return OK; }
int cuCtxGetCurrent(any* out) { return *out = depth > 0 ? stack[depth - 1] : 0, OK; }
int cuCtxSetCurrent(any context) {
    if (depth == 0) depth = 1;
    return stack[depth - 1] = context, OK;
}
int cuCtxPushCurrent_v2(any context) { return stack[depth++ % 64] = context, OK; }
int cuCtxPopCurrent_v2(any* out) {
    if (depth > 0) --depth;
    if (out != NULL) *out = stack[depth];
    return OK;
}
int cuCtxSynchronize(void) { return OK; }

int cuStreamCreate(any* out, unsigned flags) {
    if (streams == most_streams) return 2;
    return *out = (any)(first_stream + streams++), OK;
}
int cuStreamDestroy_v2(any stream) { return gone[stream - first_stream] = 1, OK; }
static void idle(void) {
    while (getenv("KILN_FAKE_CUDA_BUSY") != NULL) usleep(1000);
}
void (*fake_cuda_waited)(long, long) = NULL;  // as no_memory(): told of everything from here on when a wait is over
int cuStreamSynchronize(any stream) {
    idle();
    if (fake_cuda_waited != NULL) fake_cuda_waited(0, LONG_MAX);
    return known(stream) ? OK : INVALID_HANDLE;
}
int cuStreamQuery(any stream) { return known(stream) ? OK : INVALID_HANDLE; }
int cuStreamWaitEvent(any stream, any event, unsigned flags) { return note("wait", stream, event), known(stream) ? OK : INVALID_HANDLE; }

static any events = 0;
int cuEventCreate(any* out, unsigned flags) { return *out = ++events, OK; }
int cuEventDestroy_v2(any event) { return OK; }
int cuEventRecord(any event, any stream) { return note("record", stream, event), known(stream) ? OK : INVALID_HANDLE; }
int cuEventQuery(any event) { return getenv("KILN_FAKE_CUDA_BUSY") != NULL ? NOT_READY : OK; }
int cuEventSynchronize(any event) { return idle(), OK; }
int cuEventElapsedTime(float* out, any a, any b) { return *out = 0, OK; }

int cuMemAlloc_v2(any* out, size_t bytes) { return (*out = (any)calloc(1, bytes)) != 0 ? OK : OUT_OF_MEMORY; }
int cuMemFree_v2(any at) { return free((void*)at), OK; }
int cuMemAllocManaged(any* out, size_t bytes, unsigned flags) { return cuMemAlloc_v2(out, bytes); }
int cuMemHostAlloc(void** out, size_t bytes, unsigned flags) { return (*out = calloc(1, bytes)) != NULL ? OK : OUT_OF_MEMORY; }
int cuMemFreeHost(void* at) { return free(at), OK; }
int cuMemGetInfo_v2(size_t* left, size_t* all) {
    char const* const said = getenv("KILN_FAKE_CUDA_FREE");
    *all = (size_t)1 << 33;
    return *left = said != NULL ? (size_t)strtoull(said, NULL, 10) : *all, OK;
}
int cuMemcpyHtoDAsync_v2(any to, void const* from, size_t n, any stream) { return memcpy((void*)to, from, n), OK; }
int cuMemcpyDtoHAsync_v2(void* to, any from, size_t n, any stream) { return memcpy(to, (void*)from, n), OK; }
int cuMemcpyDtoDAsync_v2(any to, any from, size_t n, any stream) { return memmove((void*)to, (void*)from, n), OK; }
int cuMemsetD8Async(any to, unsigned char value, size_t n, any stream) { return memset((void*)to, value, n), OK; }

int cuLibraryLoadData(any* out, void const* image, void* o, void* v, unsigned n, void* lo, void* lv, unsigned ln) { return *out = 20, OK; }
int cuLibraryUnload(any library) { return OK; }
int cuLibraryGetKernel(any* out, any library, char const* name) { return (*out = (any)strdup(name)) != 0 ? OK : OUT_OF_MEMORY; }
int cuKernelGetFunction(any* out, any kernel) { return *out = kernel, OK; }
int cuKernelGetName(char const** out, any kernel) { return *out = (char const*)kernel, OK; }
int cuFuncLoad(any function) { return OK; }
int cuFuncGetAttribute(int* out, int which, any function) { return *out = which == 0 ? 1024 : 0, OK; }
int cuFuncSetAttribute(any function, int which, int value) { return OK; }
int cuFuncGetParamInfo(any function, size_t index, size_t* offset, size_t* size) {
    char const* const sizes = strstr((char const*)function, "__");
    if (sizes == NULL || index >= strlen(sizes + 2)) return INVALID_VALUE;
    return *offset = 0, *size = (size_t)(sizes[2 + index] - '0'), OK;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, any function, int threads, size_t shared) { return *out = 2, OK; }
int cuLaunchKernel(any function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, any stream,
                   void** arguments, void** extra) {
    char const* const sizes = strstr((char const*)function, "__");
    long long first = 0;
    if (sizes != NULL && sizes[2] >= '1' && sizes[2] <= '8') memcpy(&first, arguments[0], (size_t)(sizes[2] - '0'));
    return note("launch", stream, gx), note("first", (any)first, 0), known(stream) ? OK : INVALID_HANDLE;
}
