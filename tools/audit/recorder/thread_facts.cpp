// SPDX-License-Identifier: Apache-2.0
#include "thread_facts.hpp"

#include <cxxabi.h>
#include <new>
#include <pthread.h>

namespace kiln::recorder {

namespace {

void forget(void* facts) { delete static_cast<thread_facts*>(facts); }

struct facts_key {
    ::pthread_key_t value{};
    bool is_there = ::pthread_key_create(&value, forget) == 0;
};
facts_key const key;

}  // namespace

thread_facts* this_thread() noexcept {
    if (!key.is_there) return nullptr;
    if (auto* const known = ::pthread_getspecific(key.value)) return static_cast<thread_facts*>(known);
    auto* const fresh = new (std::nothrow) thread_facts;
    if (fresh == nullptr) return nullptr;
    if (::pthread_setspecific(key.value, fresh) != 0) {
        delete fresh;
        return nullptr;
    }
    fresh->exceptions = abi::__cxa_get_globals();  // far smaller than what was just to be had
    return fresh;
}

}  // namespace kiln::recorder
