/* SPDX-License-Identifier: Apache-2.0 */
/* The least there is, in C99: two arrays, their sum. */
#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT 50000
#define TRY(call)                              \
    do {                                       \
        if ((why = (call)) != NULL) goto done; \
    } while (0)

static char const source[] =
    "extern \"C\" __global__ void add(float const* a, float const* b, float* sum, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) sum[i] = a[i] + b[i];\n"
    "}\n";

int main(void) {
    static float a[COUNT], b[COUNT], sum[COUNT];
    int i, n = COUNT, wrong = 0, status = 0;
    kiln_unit unit = KILN_UNIT_INIT;
    kiln_launch shape = KILN_LAUNCH_INIT;
    kiln_artifact* made = NULL;
    kiln_loaded* loaded = NULL;
    kiln_kernel* add = NULL;
    kiln_memory *da = NULL, *db = NULL, *dsum = NULL;
    kiln_error* why = NULL;
    void *pa, *pb, *psum;
    void* arguments[4];

    for (i = 0; i < COUNT; ++i) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)(i % 100);
    }
    unit.name = "vector_add";
    unit.source = source;
    TRY(kiln_artifact_sync(NULL, &unit, "sm_90", KILN_CUBIN, NULL, &made)); /* so that there is something to see without a GPU */
    TRY(kiln_get_sync(NULL, &unit, 0, NULL, &loaded));
    TRY(kiln_loaded_kernel(loaded, "add", &add));
    TRY(kiln_memory_make(sizeof a, 0, &da));
    TRY(kiln_memory_make(sizeof b, 0, &db));
    TRY(kiln_memory_make(sizeof sum, 0, &dsum));
    TRY(kiln_memory_upload_sync(da, NULL, a, sizeof a));
    TRY(kiln_memory_upload_sync(db, NULL, b, sizeof b));
    pa = kiln_memory_address(da);
    pb = kiln_memory_address(db);
    psum = kiln_memory_address(dsum);
    arguments[0] = &pa;
    arguments[1] = &pb;
    arguments[2] = &psum;
    arguments[3] = &n;
    shape.grid[0] = (COUNT + 255) / 256;
    shape.block[0] = 256;
    TRY(kiln_kernel_launch(add, NULL, &shape, arguments));
    TRY(kiln_memory_download_sync(dsum, NULL, sum, sizeof sum));
    for (i = 0; i < COUNT; ++i) wrong += sum[i] != a[i] + b[i];
    printf("vector_add: %d results, %d wrong\n", COUNT, wrong);
    status = wrong != 0;

done:
    if (why != NULL) {
        status = kiln_error_code(why) == KILN_NO_DEVICE ? 77 : 1;
        fprintf(stderr, "vector_add: %s\n%s", kiln_error_message(why), kiln_error_log(why));
        if (status == 77 && made != NULL) printf("vector_add: no GPU; compiled for %s\n", kiln_artifact_arch(made));
    }
    kiln_error_free(why);
    kiln_memory_free(dsum);
    kiln_memory_free(db);
    kiln_memory_free(da);
    kiln_kernel_free(add);
    kiln_loaded_free(loaded);
    kiln_artifact_free(made);
    return status;
}
