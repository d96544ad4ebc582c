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
    static inline void* all[slots] = {};
    static inline libc_calls const* libc[slots] = {};
};
inline constexpr std::make_index_sequence<slots> every_slot;
// Where code is to be small, the loads of std::atomic become calls.
template <class Pointer>
[[gnu::always_inline]] inline Pointer held(Pointer const& at) {
    return __atomic_load_n(&at, __ATOMIC_ACQUIRE);
}

template <class Tag, class Signature>
[[gnu::always_inline]] inline Signature original_of(std::size_t slot) {
    return reinterpret_cast<Signature>(held(originals<Tag, Signature>::all[slot]));
}

[[gnu::noinline]] inline void* stand_in(void* original, libc_calls const* libc, void** all, libc_calls const** libcs,
                                        void* (*ours)(std::size_t)) {
    for (std::size_t i = 0; i < slots; ++i)
        if (ours(i) == original) return original;
    for (std::size_t i = 0; i < slots; ++i) {
        void* none = nullptr;
        std::atomic_ref at{all[i]};
        if (at.load() != original && !at.compare_exchange_strong(none, original) && none != original) continue;
        std::atomic_ref{libcs[i]}.store(libc);
        return ours(i);
    }
    return original;
}
// Chosen by code: a table of their addresses would be as large again, and three times that in what the loader is told of it.
template <auto... Ours>
[[gnu::noinline]] void* one_of(std::size_t wanted) {
    std::size_t i = 0;
    void* chosen = nullptr;
    ((i++ == wanted ? chosen = reinterpret_cast<void*>(Ours) : nullptr), ...);
    return chosen;
}
// The function that stands for `original`; the original itself where all are taken, or it is one of them.
template <class Tag, class Signature, Signature... Ours>
void* stand_in(void* original, libc_calls const* libc) {
    return stand_in(original, libc, originals<Tag, Signature>::all, originals<Tag, Signature>::libc, one_of<Ours...>);
}
#define KILN_STAND_IN(tag, signature, function)                                                     \
    []<std::size_t... Slot>(void* original, libc_calls const* libc, std::index_sequence<Slot...>) { \
        return stand_in<tag, signature, function<Slot>...>(original, libc);                         \
    }

// Functions of libc, by the name of what stands for them: kept apart by their originals.
#define KILN_SEEN(name, ...)                                          \
    struct name##_tag;                                                \
    using name##_call = __VA_ARGS__;                                  \
    template <std::size_t Slot>                                       \
    name##_call name##_real() {                                       \
        return original_of<name##_tag, name##_call>(Slot);            \
    }                                                                 \
    template <std::size_t Slot>                                       \
    libc_calls const& name##_libc() {                                 \
        return *held(originals<name##_tag, name##_call>::libc[Slot]); \
    }
// What stands for a function of that name, if it is that one that is asked for.
#define KILN_OBSERVE(called, which) \
    if (is(name, called)) return KILN_STAND_IN(which##_tag, which##_call, seen_##which)(original, &libc, every_slot)

inline bool is(char const* name, char const* other) { return std::strcmp(name, other) == 0; }

}  // namespace kiln::companion
