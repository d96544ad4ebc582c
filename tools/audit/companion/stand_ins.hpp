// SPDX-License-Identifier: Apache-2.0
// Functions that stand for others, and keep their originals.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace kiln::companion {

// What we ask of the libc that a function is of: with dlmopen() there are several, each with an environment of its own.
struct libc_calls {
    uintptr_t base = 0;
    char* (*getenv)(char const*) = nullptr;
    int (*execv)(char const*, char* const*) = nullptr;
    int (*execvp)(char const*, char* const*) = nullptr;
    int (*execve)(char const*, char* const*, char* const*) = nullptr;
};

// One function for each original: two copies of a library stay two, and so do two versions of a function. As many as there can be
// namespaces.
constexpr std::size_t slots = 16;
template <class Tag, class Signature>
struct originals {
    static inline Signature all[slots] = {};
    static inline libc_calls const* libc[slots] = {};
};
// Where code is to be small, the loads of std::atomic become calls.
template <class Pointer>
[[gnu::always_inline]] inline Pointer held(Pointer const& at) {
    return __atomic_load_n(&at, __ATOMIC_ACQUIRE);
}

// The function that stands for `original`; the original itself where all are taken.
template <class Tag, class Signature, std::size_t... Slot>
void* stand_in(void* original, libc_calls const* libc, Signature const (&ours)[sizeof...(Slot)],
               std::index_sequence<Slot...>) {
    auto& all = originals<Tag, Signature>::all;
    auto const wanted = reinterpret_cast<Signature>(original);
    for (auto const one : ours)
        if (reinterpret_cast<void*>(one) == original) return original;
    for (std::size_t i = 0; i < slots; ++i) {
        Signature none = nullptr;
        std::atomic_ref at{all[i]};
        if (at.load() != wanted && !at.compare_exchange_strong(none, wanted) && none != wanted) continue;
        std::atomic_ref{originals<Tag, Signature>::libc[i]}.store(libc);
        return reinterpret_cast<void*>(ours[i]);
    }
    return original;
}
#define KILN_STAND_IN(tag, signature, function)                                                         \
    []<std::size_t... Slot>(void* original, libc_calls const* libc, std::index_sequence<Slot...> all) { \
        static signature const ours[] = {function<Slot>...};                                            \
        return stand_in<tag, signature>(original, libc, ours, all);                                     \
    }

inline bool is(char const* name, char const* other) { return std::strcmp(name, other) == 0; }

}  // namespace kiln::companion
