/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C: the header and the library alone. */
#include <kiln/kiln.h>

#include <stdio.h>

int main(void) {
    kiln_artifact* none = NULL;
    kiln_error* const why = kiln_artifact_from_bytes("nonsense", 8, &none);
    int const refused = kiln_error_code(why) == KILN_CORRUPT;
    printf("kiln %s for C, version %u: %s\n", kiln_version(), (unsigned)kiln_c_version(), kiln_error_message(why));
    kiln_error_free(why);
    return kiln_c_version() == KILN_C_VERSION && refused ? 0 : 1;
}
