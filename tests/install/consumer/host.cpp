// SPDX-License-Identifier: Apache-2.0
// Loads the plugin for itself alone (RTLD_LOCAL), and catches by its type what libkiln made and the plugin threw.
#include <kiln/result.hpp>

#include <cstdio>
#include <dlfcn.h>

int main(int, char** arguments) {
    void* const plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    void* const entry = plugin != nullptr ? dlsym(plugin, "parse_nonsense") : nullptr;
    if (entry == nullptr) {
        std::puts(dlerror());
        return 2;
    }
    try {
        reinterpret_cast<void (*)()>(entry)();
    } catch (kiln::error const& thrown) {
        std::puts(thrown.what());
        return thrown.code() == kiln::errc::invalid_argument ? 0 : 1;
    } catch (...) {
        std::puts("caught something that is not a kiln::error");
    }
    return 1;
}
