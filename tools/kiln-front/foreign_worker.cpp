// SPDX-License-Identifier: Apache-2.0
// kiln-worker --foreign and nothing else, so that it starts in a fraction of the time. Started by `kiln run`.
#include "intercept/foreign_worker.hpp"
#include "compile/worker_process.hpp"

#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

int main() {
    struct ::stat about {};
    if (::fstat(kiln::compile::worker_socket, &about) != 0 || !S_ISSOCK(about.st_mode)) {
        std::fputs("kiln-foreign-worker: is started by 'kiln run', not by hand\n", stderr);
        return 2;
    }
    // At once, without the destructors of a compiler that may be half way through something.
    ::_exit(kiln::intercept::serve_foreign(kiln::compile::worker_socket));
}
