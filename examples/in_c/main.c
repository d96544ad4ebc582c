/* SPDX-License-Identifier: Apache-2.0 */
/* Kiln from C: a kernel is compiled once in a lifetime, kept as bytes, loaded and launched. Without a GPU everything up to the bytes
 * happens all the same. Exits with 0 if what was computed is right, with 77 where there is no GPU to compute it. */
#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { no_gpu = 77, count = 1 << 20 };

static char const source[] =
    "extern \"C\" __constant__ float factor;\n"
    "extern \"C\" __global__ void scale(float* data, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) data[i] *= factor;\n"
    "}\n";

/* Errors are objects: a code, a line for people, the compiler's words. Whoever gets one frees it. */
static int report(kiln_error* why) {
    int const status = kiln_error_code(why) == KILN_NO_DEVICE ? no_gpu : 1;
    fprintf(stderr, "%s: %s\n%s", kiln_code_name(kiln_error_code(why)), kiln_error_message(why), kiln_error_log(why));
    kiln_error_free(why);
    return status;
}

/* An artifact can be kept wherever bytes can be kept. */
static kiln_error* through_bytes(kiln_artifact const* from, kiln_artifact** to) {
    void* bytes = NULL;
    size_t size = 0;
    kiln_error* why = kiln_artifact_to_bytes(from, &bytes, &size);
    if (why == NULL) why = kiln_artifact_from_bytes(bytes, size, to);
    if (why == NULL) printf("'%s' for %s in %zu bytes\n", kiln_artifact_unit(*to), kiln_artifact_arch(*to), size);
    kiln_free(bytes);
    return why;
}

static kiln_error* compute(kiln_loaded const* unit, float* data) {
    int n = count;
    float const factor = 3;
    kiln_stream* stream = NULL;
    kiln_memory* memory = NULL;
    kiln_kernel* scale = NULL;
    kiln_variable* variable = NULL;
    kiln_error* why = kiln_stream_make(0, &stream);
    if (why == NULL) why = kiln_memory_make(count * sizeof *data, 0, &memory);
    if (why == NULL) why = kiln_loaded_kernel(unit, "scale", &scale);
    if (why == NULL) why = kiln_loaded_variable(unit, "factor", &variable);
    if (why == NULL) why = kiln_variable_upload_sync(variable, kiln_stream_handle(stream), &factor, sizeof factor);
    if (why == NULL) why = kiln_memory_upload_sync(memory, kiln_stream_handle(stream), data, count * sizeof *data);
    if (why == NULL) {
        void* address = kiln_memory_address(memory);
        void* arguments[] = {&address, &n};
        kiln_launch shape = KILN_LAUNCH_INIT;
        shape.grid[0] = (count + 255) / 256;
        shape.block[0] = 256;
        why = kiln_kernel_launch(scale, kiln_stream_handle(stream), &shape, arguments);
    }
    if (why == NULL) why = kiln_memory_download_sync(memory, kiln_stream_handle(stream), data, count * sizeof *data);
    kiln_variable_free(variable);
    kiln_kernel_free(scale);
    kiln_memory_free(memory);
    kiln_stream_free(stream);
    return why;
}

int main(void) {
    kiln_unit unit = KILN_UNIT_INIT;
    unit.name = "scale";
    unit.source = source;

    kiln_artifact* made = NULL;
    kiln_artifact* kept = NULL;
    kiln_loaded* loaded = NULL;
    float* data = NULL;
    int status = 0;

    /* What the GPU of this machine is; sm_90 where there is none. */
    kiln_device_info device = KILN_DEVICE_INFO_INIT;
    kiln_error* why = kiln_device(0, &device);
    char const* const arch = why == NULL ? device.arch : "sm_90";
    kiln_error_free(why);

    why = kiln_artifact_sync(NULL, &unit, arch, KILN_CUBIN, NULL, &made);
    if (why == NULL) why = through_bytes(made, &kept);
    if (why == NULL) why = kiln_load_artifact_sync(NULL, kept, 0, &loaded);
    if (why == NULL) {
        data = malloc(count * sizeof *data);
        for (int i = 0; data != NULL && i < count; ++i) data[i] = (float)(i % 1000);
        if (data != NULL) why = compute(loaded, data);
    }
    if (why != NULL) {
        status = report(why);
    } else {
        int wrong = 0;
        for (int i = 0; i < count; ++i) wrong += data[i] != 3 * (float)(i % 1000);
        printf("%d values on %s, %d wrong\n", (int)count, device.name, wrong);
        status = wrong != 0;
    }
    free(data);
    kiln_loaded_free(loaded);
    kiln_artifact_free(kept);
    kiln_artifact_free(made);
    return status;
}
