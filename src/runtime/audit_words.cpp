// SPDX-License-Identifier: Apache-2.0
#include "runtime/audit_words.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace kiln::runtime {

namespace {

// As tools/audit/recorder has it; a later version only adds at the end.
struct recorder_table {
    std::uint32_t version;
    void (*push)(std::uint64_t id);
    void (*pop)();
    void (*event)(std::uint64_t id, char const* text);
};
using recorder_entry = recorder_table const* (*)();

// The driver loads the recorder inside cuInit, which may come after the first dispatch: so it is looked for until it is there, but only
// in a process that was started to be recorded. Never loaded by us.
recorder_table const* recorder() noexcept {
    static char const* const library =
        std::getenv("KILN_AUDIT_DIR") == nullptr ? nullptr : std::getenv("CUDA_INJECTION64_PATH");
    if (library == nullptr) [[likely]]
        return nullptr;
    static std::atomic<recorder_entry> found{nullptr};
    auto entry = found.load(std::memory_order_acquire);
    if (entry == nullptr) {
        auto* const held = ::dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
        if (held == nullptr) return nullptr;
        entry = reinterpret_cast<recorder_entry>(::dlsym(held, "kiln_recorder_v1"));
        if (entry == nullptr) return nullptr;
        found.store(entry, std::memory_order_release);
    }
    return entry();  // null once it has ended
}

thread_local bool told = false;
thread_local std::uint64_t decided_items = 0;

}  // namespace

void note_items(std::uint64_t items) noexcept { decided_items = items; }

void tell_dispatch(operation const& what, decision const& how, residency of_input) noexcept try {
    auto const* const to = recorder();
    if (to == nullptr) [[likely]]
        return;
    static std::atomic<std::uint64_t> ids{0};
    auto const id = ++ids;
    // Names are identifiers of ours: nothing in them needs escaping.
    auto const text = fmt::format(
        R"({{"kind":"{}","op":"{}","requested":"{}","selected":"{}","variant":"{}","reason":"{}","where":"{}","items":{}}})",
        how.fell_back ? "fell_back" : "dispatched", what.name(), name_of(how.requested), name_of(how.selected),
        how.chosen == nullptr ? "" : how.chosen->name, how.reason, name_of(of_input), decided_items);
    to->event(id, text.c_str());
    to->push(id);
    told = true;
} catch (...) {  // no memory for the text: the audit misses one
}

void end_dispatch() noexcept {
    if (!told) [[likely]]
        return;
    told = false;
    if (auto const* const to = recorder()) to->pop();
}

}  // namespace kiln::runtime
