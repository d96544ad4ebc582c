/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kiln for C, and for everything that can call C: units, artifacts, kernels, launches, demands and events. C99; no CUDA header.
 *
 * Stable: what is here keeps its name, its numbers and its meaning within one major version of the library. Structs begin with their
 * size, set by KILN_..._INIT, and grow at the end only: a library takes structs of older and newer callers alike, and what it
 * does not know must be zero. KILN_C_VERSION says which functions there are; kiln_c_version() says the same of the library.
 *
 * Errors: a function that can fail returns NULL, or a kiln_error that the caller frees. Nothing is thrown, printed or ended, also where
 * memory runs out on a thread of Kiln's, and what `out` points at is written only on success. A pointer that must not be NULL and is:
 * KILN_INVALID_ARGUMENT. Functions that return no error take NULL for their object, and have an empty text, 0 or NULL to say of it.
 *
 * Ownership: what a function gives through a `**` is the caller's, to be freed once with the function of its type; NULL may be freed.
 * Objects keep alive what they need, in any order of freeing: a kernel its library, memory its context. Texts and spans that a
 * function returns belong to the object they were asked of. What is passed in is copied before the call returns.
 *
 * Threads: everything may be called from any thread; an object may be used by many at once and is freed when none uses it.
 * Functions that end in _sync wait; the others return at once. NULL for an engine is the process's own.
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define KILN_C_PUBLIC __attribute__((visibility("default")))
#define KILN_C_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define KILN_C_PUBLIC
#define KILN_C_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_C_VERSION 1
KILN_C_PUBLIC uint32_t kiln_c_version(void);
/* "0.1.0". */
KILN_C_PUBLIC char const* kiln_version(void);

/* Frees what is documented to be freed with it, and nothing else. */
KILN_C_PUBLIC void kiln_free(void* what);

/* ---- errors ---- */

typedef int32_t kiln_code;
enum {
    KILN_OK = 0,
    KILN_INVALID_ARGUMENT = 1, /* the caller's input cannot be right */
    KILN_UNSUPPORTED = 2,      /* needs a newer driver, compiler, GPU or Kiln */
    KILN_NOT_FOUND = 3,
    KILN_IO = 4, /* the operating system refused; the status is errno */
    KILN_CORRUPT = 5,
    KILN_COMPILE_FAILED = 6, /* the log has the compiler's words */
    KILN_LINK_FAILED = 7,
    KILN_WORKER_FAILED = 8, /* the compiler crashed or was killed */
    KILN_TIMEOUT = 9,       /* a deadline passed; the work goes on */
    KILN_CANCELLED = 10,
    KILN_OUT_OF_MEMORY = 11,
    KILN_NO_DEVICE = 12,
    KILN_DRIVER = 13,    /* the status is a CUresult */
    KILN_FORBIDDEN = 14, /* KILN_JIT=forbid and its like */
    KILN_INTERNAL = 15   /* a bug in Kiln: please report it */
};

typedef struct kiln_error kiln_error;
/* Of NULL: KILN_OK, and empty texts. */
KILN_C_PUBLIC kiln_code kiln_error_code(kiln_error const* why);
/* One line that names the thing and the remedy. */
KILN_C_PUBLIC char const* kiln_error_message(kiln_error const* why);
/* What a compiler or linker said, unabridged; empty where there is none. */
KILN_C_PUBLIC char const* kiln_error_log(kiln_error const* why);
/* The failing library's own number: errno, CUresult, nvrtcResult; 0 where there is none. */
KILN_C_PUBLIC int32_t kiln_error_status(kiln_error const* why);
KILN_C_PUBLIC void kiln_error_free(kiln_error* why);
/* "compile-failed": the spelling of events and JSON. */
KILN_C_PUBLIC char const* kiln_code_name(kiln_code code);

/* ---- engines ---- */

/* Finds and makes what units need. Most programs use the process's own: NULL. */
typedef struct kiln_engine kiln_engine;
/* A setting by the name of its variable: {"KILN_WORKERS", "2"}. */
typedef struct kiln_setting {
    char const* name;
    char const* value;
} kiln_setting;
KILN_C_CHECKED kiln_error* kiln_engine_make(kiln_setting const* settings, size_t count, kiln_engine** out);
/* Ends its work. What it loaded stays while it has a handle. */
KILN_C_PUBLIC void kiln_engine_free(kiln_engine* engine);

typedef struct kiln_engine_status {
    size_t size;
    uint64_t requests, from_memory, from_disk, from_bundle, from_fleet, compiled, failed;
    uint64_t blocked; /* callers that had to wait: for a compile, or for another machine */
    double blocked_ms;
    uint64_t in_progress;
} kiln_engine_status;
KILN_C_CHECKED kiln_error* kiln_engine_get_status(kiln_engine* engine, kiln_engine_status* out);
/* Waits until what was made is on disk too, and on the servers that are shared: KILN_TIMEOUT, at once for a server that says nothing. */
KILN_C_CHECKED kiln_error* kiln_flush_sync(kiln_engine* engine, int64_t deadline_ms);

/* How long to wait, and who waits: NULL is ten minutes. 0 ms never waits for a compiler. */
typedef struct kiln_wait {
    size_t size;
    int64_t deadline_ms;
    char const* who; /* for events; may be NULL */
} kiln_wait;

/* ---- units ---- */

typedef struct kiln_header {
    char const* name; /* as written between < > or " " */
    char const* text;
} kiln_header;

/* A piece of CUDA C++ text: the thing that is compiled. The fields are those of kiln::unit in <kiln/unit.hpp>; NULL and 0 are none. */
typedef struct kiln_unit {
    size_t size;
    char const* name;
    char const* source;
    size_t source_bytes; /* 0: up to the NUL */
    char const* const* kernels;
    size_t kernel_count; /* 0: every kernel found */
    char const* const* options;
    size_t option_count;
    kiln_header const* headers;
    size_t header_count;
    char const* const* include_dirs;
    size_t include_dir_count;
    char const* directory;
    char const* const* exports;
    size_t export_count;
    char const* licence;
    char const* const* uncached_options;
    size_t uncached_option_count;
} kiln_unit;

/* ---- artifacts: what a unit becomes for a target; no GPU is needed ---- */

typedef int32_t kiln_kind;
enum { KILN_CUBIN = 0, KILN_PTX = 1, KILN_LTOIR = 2 };
typedef int32_t kiln_provenance;
enum { KILN_FROM_COMPILER = 0, KILN_FROM_MEMORY = 1, KILN_FROM_DISK = 2, KILN_FROM_BUNDLE = 3, KILN_FROM_FLEET = 4 };

typedef struct kiln_artifact kiln_artifact;
/* `arch`: "sm_90", "sm_90a", "compute_80", "90". */
KILN_C_CHECKED kiln_error* kiln_artifact_sync(kiln_engine* engine, kiln_unit const* unit, char const* arch, kiln_kind kind,
                                              kiln_wait const* wait, kiln_artifact** out);
KILN_C_PUBLIC void kiln_artifact_free(kiln_artifact* artifact);

KILN_C_PUBLIC char const* kiln_artifact_unit(kiln_artifact const* artifact);
KILN_C_PUBLIC char const* kiln_artifact_arch(kiln_artifact const* artifact);
KILN_C_PUBLIC kiln_kind kiln_artifact_kind(kiln_artifact const* artifact);
/* 64 hexadecimal digits. */
KILN_C_PUBLIC char const* kiln_artifact_key(kiln_artifact const* artifact);
/* For people: "NVRTC 13.0"; and the compiler's identity. */
KILN_C_PUBLIC char const* kiln_artifact_compiler(kiln_artifact const* artifact);
KILN_C_PUBLIC char const* kiln_artifact_toolchain(kiln_artifact const* artifact);
/* Warnings. */
KILN_C_PUBLIC char const* kiln_artifact_log(kiln_artifact const* artifact);
KILN_C_PUBLIC kiln_provenance kiln_artifact_from(kiln_artifact const* artifact);
/* The bytes a driver loads. */
KILN_C_PUBLIC void const* kiln_artifact_image(kiln_artifact const* artifact, size_t* size);

typedef struct kiln_kernel_info {
    size_t size;
    char const* name;    /* as asked for: "scale<float>" */
    char const* lowered; /* as in the image: "_Z5scaleIfEvPT_fi" */
    int32_t registers, shared_bytes, local_bytes; /* -1 where it is not known */
} kiln_kernel_info;
/* In the order of kiln_unit::kernels or kiln_link::kernels; where none was named, by `lowered`. */
KILN_C_PUBLIC size_t kiln_artifact_kernel_count(kiln_artifact const* artifact);
KILN_C_CHECKED kiln_error* kiln_artifact_kernel(kiln_artifact const* artifact, size_t index, kiln_kernel_info* out);
/* The initial bytes of an exported __constant__; NULL if there is none of that name. */
KILN_C_PUBLIC void const* kiln_artifact_constant(kiln_artifact const* artifact, char const* name, size_t* size);

/* All of it, to keep and to send. `data` is freed with kiln_free. Bytes are trusted as far as a program is. */
KILN_C_CHECKED kiln_error* kiln_artifact_to_bytes(kiln_artifact const* artifact, void** data, size_t* size);
KILN_C_CHECKED kiln_error* kiln_artifact_from_bytes(void const* data, size_t size, kiln_artifact** out);

/* Links artifacts of kind LTO-IR, PTX or cubin, in order, into one. `kernels`: lowered names to keep; none is all. */
typedef struct kiln_link {
    size_t size;
    char const* name;
    char const* arch;
    kiln_kind kind;
    kiln_artifact const* const* inputs;
    size_t input_count;
    char const* const* kernels;
    size_t kernel_count;
    char const* const* options;
    size_t option_count;
} kiln_link;
KILN_C_CHECKED kiln_error* kiln_link_sync(kiln_engine* engine, kiln_link const* what, kiln_wait const* wait,
                                          kiln_artifact** out);

/* ---- devices, streams, memory: enough to use kernels without another library ---- */

typedef struct kiln_device_info {
    size_t size;
    int32_t ordinal;
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    int32_t driver_version; /* 13000 for 13.0 */
    uint64_t memory_bytes;
    uint8_t uuid[16];
    char arch[16]; /* "sm_90" */
    char name[256];
} kiln_device_info;
/* KILN_NO_DEVICE with a remedy where there is no driver or no GPU. */
KILN_C_CHECKED kiln_error* kiln_device_count(size_t* out);
KILN_C_CHECKED kiln_error* kiln_device(int32_t ordinal, kiln_device_info* out);

/* Wherever a stream is taken, it is a CUstream or a cudaStream_t; NULL is the legacy default stream. */
typedef void* kiln_stream_handle_t;

typedef struct kiln_stream kiln_stream;
KILN_C_CHECKED kiln_error* kiln_stream_make(int32_t device, kiln_stream** out);
KILN_C_PUBLIC kiln_stream_handle_t kiln_stream_handle(kiln_stream const* stream);
KILN_C_CHECKED kiln_error* kiln_stream_wait_sync(kiln_stream const* stream);
KILN_C_PUBLIC void kiln_stream_free(kiln_stream* stream);

typedef struct kiln_memory kiln_memory;
KILN_C_CHECKED kiln_error* kiln_memory_make(size_t bytes, int32_t device, kiln_memory** out);
KILN_C_PUBLIC void* kiln_memory_address(kiln_memory const* memory);
KILN_C_CHECKED kiln_error* kiln_memory_upload_sync(kiln_memory* memory, kiln_stream_handle_t on, void const* from,
                                                   size_t bytes);
KILN_C_CHECKED kiln_error* kiln_memory_download_sync(kiln_memory const* memory, kiln_stream_handle_t on, void* to,
                                                     size_t bytes);
KILN_C_PUBLIC void kiln_memory_free(kiln_memory* memory);

/* ---- a unit on a device: kernels and variables ---- */

typedef struct kiln_loaded kiln_loaded;
/* Finds or compiles, loads, resolves. */
KILN_C_CHECKED kiln_error* kiln_get_sync(kiln_engine* engine, kiln_unit const* unit, int32_t device, kiln_wait const* wait,
                                         kiln_loaded** out);
/* An artifact as it is. */
KILN_C_CHECKED kiln_error* kiln_load_artifact_sync(kiln_engine* engine, kiln_artifact const* artifact, int32_t device,
                                                   kiln_loaded** out);
KILN_C_PUBLIC kiln_provenance kiln_loaded_from(kiln_loaded const* unit);
/* In the same order as an artifact's. */
KILN_C_PUBLIC size_t kiln_loaded_kernel_count(kiln_loaded const* unit);
KILN_C_CHECKED kiln_error* kiln_loaded_kernel_info(kiln_loaded const* unit, size_t index, kiln_kernel_info* out);
KILN_C_PUBLIC void kiln_loaded_free(kiln_loaded* unit);

typedef struct kiln_kernel kiln_kernel;
/* By the name it was declared with: "saxpy", "scale<float>". A lookup: do it once and keep the handle. */
KILN_C_CHECKED kiln_error* kiln_loaded_kernel(kiln_loaded const* unit, char const* name, kiln_kernel** out);
/* One kernel of a cubin, a fatbin or a PTX text, by its name in the image. */
KILN_C_CHECKED kiln_error* kiln_kernel_load(void const* image, size_t size, char const* name, int32_t device,
                                            kiln_kernel** out);
/* A kernel somebody else loaded, by its CUfunction; it must outlive the handle. */
KILN_C_CHECKED kiln_error* kiln_kernel_adopt(void* cu_function, int32_t device, kiln_kernel** out);
KILN_C_PUBLIC void kiln_kernel_free(kiln_kernel* kernel);

KILN_C_PUBLIC char const* kiln_kernel_name(kiln_kernel const* kernel);
/* -1 of NULL. */
KILN_C_PUBLIC int32_t kiln_kernel_device(kiln_kernel const* kernel);
/* The driver's own handles, valid while the kernel's is: CUfunction, and CUkernel and CUlibrary where it was not adopted. */
KILN_C_PUBLIC void* kiln_kernel_cu_function(kiln_kernel const* kernel);
KILN_C_PUBLIC void* kiln_kernel_cu_kernel(kiln_kernel const* kernel);
KILN_C_PUBLIC void* kiln_kernel_cu_library(kiln_kernel const* kernel);

typedef struct kiln_kernel_resources {
    size_t size;
    int32_t registers;           /* per thread */
    int32_t static_shared_bytes; /* per block */
    int32_t local_bytes;         /* per thread */
    int32_t max_threads;         /* per block */
} kiln_kernel_resources;
KILN_C_CHECKED kiln_error* kiln_kernel_get_resources(kiln_kernel const* kernel, kiln_kernel_resources* out);
/* Once, before launches with more than 48 KiB of dynamic shared memory. */
KILN_C_CHECKED kiln_error* kiln_kernel_allow_shared(kiln_kernel const* kernel, size_t bytes);
KILN_C_CHECKED kiln_error* kiln_kernel_blocks_per_multiprocessor(kiln_kernel const* kernel, uint32_t threads,
                                                                 size_t shared_bytes, int32_t* out);

enum {
    KILN_LAUNCH_COOPERATIVE = 1,   /* all blocks at the same time: grid.sync() */
    KILN_LAUNCH_EARLY = 2,         /* programmatic dependent launch: kiln::launch_start::early */
    KILN_LAUNCH_PRIORITY = 4,      /* `priority` counts */
    KILN_LAUNCH_SHARED_CARVEOUT = 8 /* `shared_carveout` counts */
};
typedef struct kiln_launch {
    size_t size;
    uint32_t grid[3];      /* blocks */
    uint32_t block[3];     /* threads */
    uint32_t shared_bytes; /* dynamic */
    uint32_t flags;        /* KILN_LAUNCH_... */
    uint32_t cluster[3];   /* blocks that run together: sm_90 or newer */
    int32_t priority;
    int32_t shared_carveout; /* percent */
    uint32_t attribute_count; /* at most eight */
    void* all_begun;          /* a CUevent, recorded when every block has begun; or NULL */
    void const* attributes;   /* CUlaunchAttribute[]; NULL where there are none */
} kiln_launch;
/* `arguments`: one pointer per parameter, NULL for none; the values are copied. Queued on `on`. Looks nothing up, locks and allocates nothing. */
KILN_C_CHECKED kiln_error* kiln_kernel_launch(kiln_kernel const* kernel, kiln_stream_handle_t on, kiln_launch const* shape,
                                              void** arguments);

/* A __device__, __constant__ or __managed__ variable, which it keeps loaded: "taps", "ns::taps", "table<float>". */
typedef struct kiln_variable kiln_variable;
KILN_C_CHECKED kiln_error* kiln_loaded_variable(kiln_loaded const* unit, char const* name, kiln_variable** out);
KILN_C_PUBLIC void* kiln_variable_address(kiln_variable const* variable);
KILN_C_PUBLIC size_t kiln_variable_size(kiln_variable const* variable);
KILN_C_CHECKED kiln_error* kiln_variable_upload_sync(kiln_variable const* variable, kiln_stream_handle_t on, void const* from,
                                                     size_t bytes);
KILN_C_CHECKED kiln_error* kiln_variable_download_sync(kiln_variable const* variable, kiln_stream_handle_t on, void* to,
                                                       size_t bytes);
KILN_C_PUBLIC void kiln_variable_free(kiln_variable* variable);

/* ---- answers that will come ---- */

typedef struct kiln_pending kiln_pending;
KILN_C_CHECKED kiln_error* kiln_artifact_later(kiln_engine* engine, kiln_unit const* unit, char const* arch, kiln_kind kind,
                                               kiln_pending** out);
KILN_C_CHECKED kiln_error* kiln_get_later(kiln_engine* engine, kiln_unit const* unit, int32_t device, kiln_pending** out);
/* 1 when the answer, or the error, is there. */
KILN_C_PUBLIC int kiln_pending_ready(kiln_pending const* pending);
/* Called once, at once if the answer is there, else on a thread of Kiln's: be quick, call nothing that ends in _sync. */
typedef void (*kiln_ready_callback)(void* context);
KILN_C_CHECKED kiln_error* kiln_pending_then(kiln_pending const* pending, kiln_ready_callback callback, void* context);
/* KILN_TIMEOUT when the deadline passes first. May be asked more than once: each answer is an object of its own. KILN_INVALID_ARGUMENT
 * when the other kind of answer is coming. */
KILN_C_CHECKED kiln_error* kiln_pending_artifact_sync(kiln_pending const* pending, int64_t deadline_ms, kiln_artifact** out);
KILN_C_CHECKED kiln_error* kiln_pending_loaded_sync(kiln_pending const* pending, int64_t deadline_ms, kiln_loaded** out);
/* Withdraws nothing. */
KILN_C_PUBLIC void kiln_pending_free(kiln_pending* pending);

/* ---- demands: said before it is needed; never blocks ---- */

typedef int32_t kiln_priority;
enum { KILN_PREDICTED = 0, KILN_DECLARED = 1, KILN_PLANNED = 2, KILN_BLOCKING = 3 };
typedef struct kiln_demand_options {
    size_t size;
    int32_t device;
    kiln_priority priority;
    char const* const* archs; /* cubins for these, without a GPU; none: for the device, loaded and resolved */
    size_t arch_count;
    char const* consumer; /* who wants it: for status and events */
} kiln_demand_options;
typedef struct kiln_demanded kiln_demanded;
/* Units, all of the size of the first, and specialisations by name ("exclusive_scan_i32": 'kiln list'). `options` and `out` may be
 * NULL. */
KILN_C_CHECKED kiln_error* kiln_demand(kiln_engine* engine, kiln_unit const* units, size_t unit_count,
                                       char const* const* names, size_t name_count, kiln_demand_options const* options,
                                       kiln_demanded** out);
/* Never lowers. A number that is no priority changes nothing. */
KILN_C_PUBLIC void kiln_demanded_raise(kiln_demanded const* what, kiln_priority priority);
/* What no one else wants and no process has taken yet. */
KILN_C_PUBLIC void kiln_demanded_cancel(kiln_demanded const* what);
KILN_C_PUBLIC void kiln_demanded_free(kiln_demanded* what);

/* What became of everything, as one JSON object; freed with kiln_free. */
KILN_C_CHECKED kiln_error* kiln_status_json(kiln_engine* engine, char** out);

/* ---- events ---- */

typedef int32_t kiln_event_kind;
enum {
    KILN_EVENT_DEMANDED = 0,
    KILN_EVENT_FOUND = 1,
    KILN_EVENT_MISSED = 2,
    KILN_EVENT_REJECTED = 3,
    KILN_EVENT_FAULT = 4,
    KILN_EVENT_COMPILING = 5,
    KILN_EVENT_COMPILED = 6,
    KILN_EVENT_COMPILE_FAILED = 7,
    KILN_EVENT_LINKED = 8,
    KILN_EVENT_WAITED = 9,
    KILN_EVENT_PUBLISHED = 10,
    KILN_EVENT_EVICTED = 11,
    KILN_EVENT_LOADING = 12,
    KILN_EVENT_LOADED = 13,
    KILN_EVENT_LAUNCHED = 14,
    KILN_EVENT_WORKER_STARTED = 15,
    KILN_EVENT_WORKER_ENDED = 16,
    KILN_EVENT_FELL_BACK = 17,
    KILN_EVENT_DISPATCHED = 18,
    KILN_EVENT_TRANSFERRED = 19,
    KILN_EVENT_SYNCHRONISED = 20,
    KILN_EVENT_ALLOCATED = 21,
    KILN_EVENT_REWRITTEN = 22,
    KILN_EVENT_WARNED = 23,
    KILN_EVENT_NOTE = 24
};
/* One decision. The texts live as long as the call; a kind that is not listed here is of a newer library. */
typedef struct kiln_event {
    size_t size;
    kiln_event_kind kind;
    uint32_t thread;
    char const* unit;
    char const* target;
    char const* reason; /* a stable code */
    char const* detail; /* prose */
    uint64_t key, request;
    int64_t duration_ns, value, time_ns;
    uint64_t sequence;
} kiln_event;
KILN_C_PUBLIC char const* kiln_event_kind_name(kiln_event_kind kind);
/* On the thread where it happens: be quick, do not call Kiln. */
typedef void (*kiln_event_callback)(kiln_event const* event, void* context);
typedef struct kiln_subscription kiln_subscription;
KILN_C_CHECKED kiln_error* kiln_subscribe(kiln_event_callback callback, void* context, kiln_subscription** out);
/* When it returns, no call runs and none begins any more. Not from inside the callback. */
KILN_C_PUBLIC void kiln_subscription_free(kiln_subscription* subscription);

/* ---- beginnings of structs: kiln_unit u = KILN_UNIT_INIT; ---- */

#define KILN_ENGINE_STATUS_INIT {sizeof(kiln_engine_status), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define KILN_WAIT_INIT {sizeof(kiln_wait), 600000, NULL}
#define KILN_UNIT_INIT                                                                                               \
    {                                                                                                                \
        sizeof(kiln_unit), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL, NULL, 0           \
    }
#define KILN_KERNEL_INFO_INIT {sizeof(kiln_kernel_info), NULL, NULL, -1, -1, -1}
#define KILN_LINK_INIT {sizeof(kiln_link), NULL, NULL, KILN_CUBIN, NULL, 0, NULL, 0, NULL, 0}
#define KILN_DEVICE_INFO_INIT {sizeof(kiln_device_info), 0, 0, 0, 0, 0, 0, {0}, {0}, {0}}
#define KILN_KERNEL_RESOURCES_INIT {sizeof(kiln_kernel_resources), 0, 0, 0, 0}
#define KILN_LAUNCH_INIT {sizeof(kiln_launch), {1, 1, 1}, {1, 1, 1}, 0, 0, {1, 1, 1}, 0, 0, 0, NULL, NULL}
#define KILN_DEMAND_OPTIONS_INIT {sizeof(kiln_demand_options), 0, KILN_DECLARED, NULL, 0, NULL}

#ifdef __cplusplus
}
#endif

#endif /* KILN_KILN_H */
