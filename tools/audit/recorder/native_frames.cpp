// SPDX-License-Identifier: Apache-2.0
#include "native_frames.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

namespace kiln::recorder {

#ifdef DLFO_EH_SEGMENT_TYPE  // objects are found without the loader's lock, which a thread that waits for CUDA may hold

namespace {

constexpr int deepest_kept = known_stack::deepest, deepest_walked = 64;

struct walk {
    std::array<return_address, deepest_walked> all;
    int count = 0;
    std::uintptr_t below = 0;  // where the stack of the frame before ended
};

// Return addresses lie at the end of a frame, or at its beginning, as the processor has it. A frame of more than that is rather another
// stack, and nothing in between need be there.
std::uintptr_t const* slot_of(std::uintptr_t value, std::uintptr_t from, std::uintptr_t to) {
    constexpr std::size_t most_words = 4096;
    if (to - from > most_words * sizeof value) return nullptr;
    auto const* const first = reinterpret_cast<std::uintptr_t const*>(from);
    auto const* at = reinterpret_cast<std::uintptr_t const*>(to);
    while (at > first)
        if (*--at == value) return at;
    return nullptr;
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* to) {
    auto& w = *static_cast<walk*>(to);
    auto const value = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
    auto const end = static_cast<std::uintptr_t>(_Unwind_GetCFA(context));
    if (value == 0 || w.count == deepest_walked || end < w.below) return _URC_END_OF_STACK;
    auto& a = w.all[static_cast<std::size_t>(w.count++)];
    a.value = value;
    if (w.below != 0) a.slot = slot_of(value, w.below, end);
    w.below = end;
    return _URC_NO_REASON;
}

struct object {
    char const* name = nullptr;
    std::uintptr_t base = 0;
};
bool find_object(std::uintptr_t address, object& out) {
    ::dl_find_object found{};
    if (::_dl_find_object(reinterpret_cast<void*>(address), &found) != 0 || found.dlfo_link_map == nullptr)
        return false;
    out = {found.dlfo_link_map->l_name, found.dlfo_link_map->l_addr};
    return true;
}
char const* program_file() {
    static auto const* const path = [] {
        static char text[PATH_MAX] = {};
        auto const n = ::readlink("/proc/self/exe", text, sizeof text - 1);
        if (n <= 0) text[0] = '?';
        return text;
    }();
    return path;
}
// The driver, CUPTI and we stand between a call and every line.
bool is_between(object const& o) {
    for (auto const* const part : {"libcuda", "cupti", "libnvidia-", "libkiln-recorder"})
        if (std::strstr(o.name, part) != nullptr) return true;
    return false;
}

bool is_here(known_stack const& k, std::uintptr_t now) {
    return k.depth == now && std::all_of(k.frames.begin(), k.frames.begin() + k.count,
                                         [](return_address const& a) { return *a.slot == a.value; });
}

bool can_be_known(known_stack const& k) {
    return std::all_of(k.frames.begin(), k.frames.begin() + k.count,
                       [](return_address const& a) { return a.slot != nullptr; });
}

// What is left of a walk without those between, as text.
std::string keep_frames(walk const& w, known_stack& to) {
    std::string text;
    to.count = 0;
    for (int i = 0; i < w.count && to.count < deepest_kept; ++i) {
        auto const& a = w.all[static_cast<std::size_t>(i)];
        object o;
        if (!find_object(a.value, o) || is_between(o)) continue;
        to.frames[static_cast<std::size_t>(to.count++)] = a;
        char offset[32];
        std::snprintf(offset, sizeof offset, "\t+%llx\t\n", static_cast<unsigned long long>(a.value - 1 - o.base));
        text += *o.name == '\0' ? program_file() : o.name;
        text += offset;
    }
    return text;
}

bool wanted() {
    static bool const yes = [] {
        auto const* const said = std::getenv("KILN_AUDIT_STACKS");
        return said == nullptr || std::strcmp(said, "none") != 0;
    }();
    return yes;
}

}  // namespace

__attribute__((noinline)) std::uint32_t native_stack(recording_file& file, known_stacks& seen) {
    if (!wanted()) return 0;
    auto const depth = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    auto const set = (depth >> 4) % known_stacks::sets;
    for (auto const& k : seen.all[set])
        if (is_here(k, depth)) return k.text;
    walk w;
    ::_Unwind_Backtrace(add_frame, &w);
    auto& to = seen.all[set][seen.next[set]++ % known_stacks::ways];
    to.depth = 0;  // until all of it is there
    auto const text = keep_frames(w, to);
    to.text = 0;
    if (!text.empty()) {
        auto const lock = file.lock();
        to.text = file.intern(text);
    }
    if (can_be_known(to)) to.depth = depth;
    return to.text;
}

#else

std::uint32_t native_stack(recording_file&, known_stacks&) { return 0; }

#endif

}  // namespace kiln::recorder
