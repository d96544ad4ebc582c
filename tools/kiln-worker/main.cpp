// SPDX-License-Identifier: Apache-2.0
// The compile process that libkiln starts. Of no use on its own.
#include "compile/worker_pool.hpp"
#include "compile/worker_process.hpp"
#include "intercept/foreign_worker.hpp"

#include <kiln/version.hpp>

#include <cstdio>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr char help[] =
    "Usage: kiln-worker [--help | --version]\n"
    "\n"
    "Compiles GPU kernels for a program that uses Kiln, which starts and ends it by itself: as many as cores and\n"
    "free memory allow, or KILN_WORKERS. Set KILN_WORKER to use another kiln-worker than the one beside the library.\n";

// For a program under 'kiln run', which has the other end of the socket.
constexpr std::string_view foreign = "--foreign";

bool started_by_kiln() {
    int domain = 0;
    socklen_t size = sizeof domain;
    return ::getsockopt(kiln::compile::worker_socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

}  // namespace

int main(int argc, char** argv) {
    std::string_view const argument = argc > 1 ? argv[1] : "";
    if (argument == "--help" || argument == "-h") return std::fputs(help, stdout) < 0;
    if (argument == "--version") return std::printf("kiln-worker %s\n", kiln::version.data()) < 0;
    if ((argc > 1 && argument != foreign) || !started_by_kiln()) {
        std::fputs("kiln-worker: is started by programs that use Kiln, not by hand; see kiln-worker --help\n", stderr);
        return 2;
    }
    // At once, without the destructors of a compiler that may be half way through something.
    ::_exit(argument == foreign ? kiln::intercept::serve_foreign(kiln::compile::worker_socket)
                                : kiln::compile::serve_worker(kiln::compile::worker_socket));
}
