// SPDX-License-Identifier: Apache-2.0
#include "base/watched_load.hpp"

#include "base/files.hpp"
#include "base/load_library.hpp"
#include "base/standard_streams.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace kiln::base {

namespace {

struct load_under_way {
    char const* file;
    load_watcher watcher;
};
constinit thread_local load_under_way const* under_way = nullptr;

// What the loader calls, as it calls all that start a library.
void starting() noexcept {
    // dlopen() by another who starts, within this: not ours.
    auto const* const now = std::exchange(under_way, nullptr);
    if (now == nullptr) return;
    static_cast<void>(::dl_iterate_phdr(
        [](::dl_phdr_info* object, std::size_t, void* with) noexcept {
            auto const& meant = *static_cast<load_under_way const*>(with);
            if (object->dlpi_name == nullptr || std::string_view{object->dlpi_name} != meant.file) return 0;
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                auto const& segment = object->dlpi_phdr[i];
                if (segment.p_type == PT_DYNAMIC)
                    meant.watcher(object->dlpi_addr,
                                  reinterpret_cast<ElfW(Dyn) const*>(object->dlpi_addr + segment.p_vaddr));
            }
            return 1;
        },
        const_cast<load_under_way*>(now)));
}

// A library of data alone, as it lies in its file and in memory.
struct small_library {
    ElfW(Ehdr) head;
    std::array<ElfW(Phdr), 3> segments;
    std::array<ElfW(Dyn), 10> dynamic;
    ElfW(Sym) no_symbol;
    ElfW(Addr) start;
    std::array<char, 4096> names;
};

template <class Member>
ElfW(Addr) place(small_library const& in, Member const& of) {
    return static_cast<ElfW(Addr)>(reinterpret_cast<char const*>(&of) - reinterpret_cast<char const*>(&in));
}

void make_headers(small_library& out) {
    auto& h = out.head;
    std::memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_VERSION] = EV_CURRENT;
    h.e_type = ET_DYN;
#if defined(__x86_64__)
    h.e_machine = EM_X86_64;
#elif defined(__aarch64__)
    h.e_machine = EM_AARCH64;
#endif
    h.e_version = EV_CURRENT;
    h.e_phoff = place(out, out.segments);
    h.e_ehsize = sizeof h;
    h.e_phentsize = sizeof out.segments[0];
    h.e_phnum = static_cast<ElfW(Half)>(out.segments.size());
    constexpr ElfW(Xword) largest_page = 0x10000;
    out.segments[0] = {.p_type = PT_LOAD,
                       .p_flags = PF_R | PF_W,
                       .p_offset = 0,
                       .p_vaddr = 0,
                       .p_paddr = 0,
                       .p_filesz = sizeof out,
                       .p_memsz = sizeof out,
                       .p_align = largest_page};
    auto const dynamic = place(out, out.dynamic);
    out.segments[1] = {.p_type = PT_DYNAMIC,
                       .p_flags = PF_R | PF_W,
                       .p_offset = dynamic,
                       .p_vaddr = dynamic,
                       .p_paddr = dynamic,
                       .p_filesz = sizeof out.dynamic,
                       .p_memsz = sizeof out.dynamic,
                       .p_align = 8};
    // Without it the loader would make stacks executable.
    out.segments[2] = {.p_type = PT_GNU_STACK,
                       .p_flags = PF_R | PF_W,
                       .p_offset = 0,
                       .p_vaddr = 0,
                       .p_paddr = 0,
                       .p_filesz = 0,
                       .p_memsz = 0,
                       .p_align = 16};
}

// Empty where it cannot be made.
file_descriptor small_library_of(std::array<std::string_view, 2> needed, void (*start)() noexcept) {
    small_library out{};
    make_headers(out);
    std::size_t entries = 0, used = 1;
    auto const add = [&](ElfW(Sxword) tag, ElfW(Addr) value) { out.dynamic[entries++] = {tag, {value}}; };
    for (auto const name : needed) {
        if (name.empty()) continue;
        if (used + name.size() >= out.names.size()) return {};
        std::memcpy(&out.names[used], name.data(), name.size());
        add(DT_NEEDED, used);
        used += name.size() + 1;
    }
    add(DT_STRTAB, place(out, out.names));
    add(DT_STRSZ, sizeof out.names);
    add(DT_SYMTAB, place(out, out.no_symbol));
    add(DT_SYMENT, sizeof out.no_symbol);
    if (start != nullptr) {
        out.start = reinterpret_cast<ElfW(Addr)>(start);
        add(DT_INIT_ARRAY, place(out, out.start));
        add(DT_INIT_ARRAYSZ, sizeof out.start);
    }
    file_descriptor file{memory_file("kiln-load", MFD_CLOEXEC)};
    if (!file || ::write(file.get(), &out, sizeof out) != static_cast<::ssize_t>(sizeof out)) return {};
    return file;
}

// As everybody sees it who can see this process: a debugger opens what the loader has opened, and its own /proc/self is another. Leads nowhere where
// there is no /proc.
auto name_of_descriptor(file_descriptor const& fd) noexcept {
    std::array<char, 16> self{};
    std::array<char, 48> out{};
    static_cast<void>(!::readlink("/proc/self", self.data(), self.size() - 1));
    fmt::format_to_n(out.data(), out.size() - 1, "/proc/{}/fd/{}", self.data(), fd.get());
    return out;
}

// Both files stay open until the libraries are gone: the loader knows them by names that others would get.
void* load_with_watcher(load_under_way const& what, int how) noexcept {
    auto const first = small_library_of({}, starting);
    if (!first) return nullptr;
    auto const name_of_first = name_of_descriptor(first);
    auto const both = small_library_of({what.file, name_of_first.data()}, nullptr);
    if (!both) return nullptr;
    under_way = &what;
    void* const made = load_library(name_of_descriptor(both).data(), how);
    under_way = nullptr;
    if (made == nullptr) return nullptr;
    void* const out = load_library(what.file, how);
    loader_use const use;
    ::dlclose(made);
    return out;
}

}  // namespace

void* load_watched(char const* file, int how, load_watcher watcher) noexcept {
    void* const out = *file == '/' ? load_with_watcher({file, watcher}, how) : nullptr;
    // It tells what is wrong where something is.
    return out != nullptr ? out : load_library(file, how);
}

}  // namespace kiln::base
