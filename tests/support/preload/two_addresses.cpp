// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, is a resolver that knows one name, two.test: 127.0.0.2, and after it 127.0.0.1.
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

extern "C" int getaddrinfo(char const* name, char const* port, addrinfo const* hints, addrinfo** out) {
    using function = int(char const*, char const*, addrinfo const*, addrinfo**);
    static auto* const next = reinterpret_cast<function*>(dlsym(RTLD_NEXT, "getaddrinfo"));
    if (name == nullptr || strcmp(name, "two.test") != 0) return next(name, port, hints, out);
    addrinfo* second = nullptr;
    if (int const why = next("127.0.0.2", port, hints, out)) return why;
    if (int const why = next("127.0.0.1", port, hints, &second)) return why;
    auto* last = *out;
    while (last->ai_next != nullptr) last = last->ai_next;
    last->ai_next = second;
    return 0;
}
