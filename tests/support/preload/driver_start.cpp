// SPDX-License-Identifier: Apache-2.0
// Loads what CUDA_INJECTION64_PATH names and calls it, as the CUDA driver does inside cuInit: for programs on machines without one.
#include <cstdlib>
#include <dlfcn.h>

namespace {

[[gnu::constructor]] void start() {
    auto const* const file = std::getenv("CUDA_INJECTION64_PATH");
    if (file == nullptr) return;
    auto* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    if (auto* const begin = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"))) begin();
}

}  // namespace
