// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, is a resolver that never answers, as one whose server drops every question for minutes.
#include <netdb.h>
#include <unistd.h>

extern "C" int getaddrinfo(char const*, char const*, addrinfo const*, addrinfo**) {
    for (;;) ::pause();
}
