// SPDX-License-Identifier: Apache-2.0
// Whether there is memory where the program says that there is. Calls that are given a bad address say EFAULT, and so must we not fall over it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::companion {

class readable {
public:
    // Asked of a call that every libc makes, so that no lock forbids it: it reads a set of signals before it looks at what is to be done
    // with them, which is nothing here.
    bool has(void const* at) {
        auto const address = reinterpret_cast<std::uintptr_t>(at);
        if (address / page == known_) return true;
        if (address < sizeof(std::uint64_t)) return false;  // the call would take that for "no set"
        errno = 0;
        ::syscall(SYS_rt_sigprocmask, ~0L, address & ~std::uintptr_t{7}, nullptr, std::size_t{8});
        if (errno == EFAULT) return false;
        known_ = address / page;
        return true;
    }
    bool has_text(char const* text) {
        for (auto const* at = text; has(at);) {
            auto const left = page - reinterpret_cast<std::uintptr_t>(at) % page;
            if (std::memchr(at, '\0', left) != nullptr) return true;
            at += left;
        }
        return false;
    }

private:
    static constexpr std::uintptr_t page = 4096;  // or a part of one
    std::uintptr_t known_ = ~std::uintptr_t{0};
};

inline bool can_be_read(char const* text) { return text != nullptr && readable{}.has_text(text); }

[[gnu::noinline]] inline bool can_be_read(char* const* environment) {
    readable list, texts;
    for (auto const* at = environment; at != nullptr; ++at) {
        if (!list.has(at) || !list.has(reinterpret_cast<char const*>(at) + sizeof *at - 1)) return false;
        if (*at == nullptr) return true;
        if (!texts.has_text(*at)) return false;
    }
    return true;
}

}  // namespace kiln::companion
