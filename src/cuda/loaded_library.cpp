// SPDX-License-Identifier: Apache-2.0
#include "cuda/loaded_library.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/load_library.hpp"
#include "cuda/file_content.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

std::string hex(base::byte_span data) {
    std::string out;
    for (auto const b : data) out += fmt::format("{:02x}", static_cast<unsigned>(b));
    return out;
}

// One loaded object, while dl_iterate_phdr walks over them.
struct object_query {
    std::uintptr_t address;
    bool found = false;
    std::string file;
    std::string build_id;
};

bool covers(::dl_phdr_info const& object, std::uintptr_t from, std::size_t size) {
    return std::ranges::any_of(std::span{object.dlpi_phdr, object.dlpi_phnum}, [&](ElfW(Phdr) const& segment) {
        auto const start = object.dlpi_addr + segment.p_vaddr;
        return segment.p_type == PT_LOAD && (segment.p_flags & PF_R) != 0 && from >= start &&
               from - start + size <= segment.p_memsz;
    });
}

int visit_object(::dl_phdr_info* object, std::size_t, void* data) {
    auto& query = *static_cast<object_query*>(data);
    if (!covers(*object, query.address, 1)) return 0;
    query.found = true;
    query.file = object->dlpi_name == nullptr ? "" : object->dlpi_name;
    for (auto const& segment : std::span{object->dlpi_phdr, object->dlpi_phnum}) {
        auto const start = object->dlpi_addr + segment.p_vaddr;
        if (segment.p_type != PT_NOTE || !query.build_id.empty() || !covers(*object, start, segment.p_memsz)) continue;
        auto const* notes = reinterpret_cast<std::byte const*>(start);
        query.build_id = build_id_in({notes, segment.p_memsz}, segment.p_align);
    }
    return 1;
}

// Reads `size` bytes at `offset` of a file.
result<base::bytes> read_range(int fd, fs::path const& file, std::uint64_t offset, std::size_t size) {
    base::bytes out(size);
    for (std::size_t done = 0; done < size;) {
        auto const got = ::pread(fd, out.data() + done, size - done, static_cast<::off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error(file.string(), errno);
        if (got == 0) return fail(errc::corrupt, "{}: ends in the middle of its ELF headers", file.string());
        done += static_cast<std::size_t>(got);
    }
    return out;
}

template <class T>
T value_at(base::byte_span data, std::size_t offset) {
    T out;
    std::memcpy(&out, data.data() + offset, sizeof out);
    return out;
}

#if defined(__x86_64__)
constexpr auto own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr auto own_machine = EM_AARCH64;
#endif

constexpr std::size_t largest_notes = std::size_t{1} << 16;

result<std::vector<ElfW(Phdr)>> segments_of(int fd, fs::path const& file) {
    KILN_TRY(auto const head, read_range(fd, file, 0, sizeof(ElfW(Ehdr))));
    auto const elf = value_at<ElfW(Ehdr)>(head, 0);
    if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_machine != own_machine ||
        elf.e_phentsize != sizeof(ElfW(Phdr))) {
        return fail(errc::corrupt, "{}: not a shared library of this machine", file.string());
    }
    KILN_TRY(auto const table, read_range(fd, file, elf.e_phoff, std::size_t{elf.e_phnum} * sizeof(ElfW(Phdr))));
    std::vector<ElfW(Phdr)> out(elf.e_phnum);
    if (!out.empty()) std::memcpy(out.data(), table.data(), table.size());
    return out;
}

// The loader maps what the headers promise, and whoever then touches what is not there is killed. A bare name is the loader's.
result<void> check_whole(fs::path const& file) {
    if (!file.is_absolute()) return {};
    auto const fd = base::open_file(file, O_RDONLY);
    if (!fd) return {};  // the loader says why
    struct ::stat about {};
    if (::fstat(fd->get(), &about) != 0) return io_error(file.string(), errno);
    KILN_TRY(auto const segments, segments_of(fd->get(), file));
    auto const size = static_cast<std::uint64_t>(about.st_size);
    for (auto const& s : segments) {
        if (s.p_type == PT_LOAD && (s.p_filesz > size || s.p_offset > size - s.p_filesz))
            return fail(errc::corrupt, "{}: cut short, at {} bytes; install it again", file.string(), size);
    }
    return {};
}

constexpr std::size_t largest_table = std::size_t{1} << 20;

// Where the loader would have it in memory, in the file.
std::uint64_t offset_of(std::uint64_t address, std::span<ElfW(Phdr) const> segments) {
    for (auto const& s : segments) {
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
            return s.p_offset + (address - s.p_vaddr);
    }
    return 0;
}

// "$ORIGIN/../lib:/opt/lib". Other words of the loader than that of its own place are few: such a directory is left out.
std::vector<fs::path> directories_in(std::string_view list, fs::path const& origin) {
    std::vector<fs::path> out;
    while (!list.empty()) {
        std::string one{list.substr(0, list.find(':'))};
        list.remove_prefix(std::min(list.size(), one.size() + 1));
        for (std::string_view const word : {"${ORIGIN}", "$ORIGIN"}) {
            if (auto const at = one.find(word); at != one.npos) one.replace(at, word.size(), origin.native());
        }
        if (one.starts_with('/') && one.find('$') == one.npos) out.emplace_back(one);
    }
    return out;
}

// Under `kiln run` the loader has stand-ins for the compilers of other programs. It lets this spelling through.
fs::path past_stand_ins(fs::path const& file) {
    bool const are_there = ::secure_getenv("KILN_RUN_STANDINS") != nullptr && file.is_absolute();
    return are_there ? file.parent_path() / "." / file.filename() : file;
}

}  // namespace

std::string build_id_in(base::byte_span notes, std::size_t align) {
    std::size_t const unit = align == 8 ? 8 : 4;
    auto const padded = [&](std::size_t n) { return (n + unit - 1) / unit * unit; };
    constexpr std::size_t header = 12;
    while (notes.size() >= header) {
        auto const name_size = value_at<std::uint32_t>(notes, 0);
        auto const data_size = value_at<std::uint32_t>(notes, 4);
        auto const type = value_at<std::uint32_t>(notes, 8);
        auto const data_at = padded(header + std::size_t{name_size});
        if (data_at > notes.size() || data_size > notes.size() - data_at) return {};
        bool const gnu = name_size == 4 && std::memcmp(notes.data() + header, "GNU", 4) == 0;
        if (gnu && type == NT_GNU_BUILD_ID && data_size > 0) return hex(notes.subspan(data_at, data_size));
        notes = notes.subspan(std::min(notes.size(), padded(data_at + data_size)));
    }
    return {};
}

result<library_identity> identify(void const* address) {
    object_query query{.address = reinterpret_cast<std::uintptr_t>(address), .file = {}, .build_id = {}};
    base::visit_libraries(visit_object, &query);
    if (!query.found) return fail(errc::not_found, "no loaded object holds address {}", address);
    library_identity out{query.file, query.build_id};
    if (out.file.empty()) out.file = "/proc/self/exe";
    if (out.build_id.empty()) {
        KILN_TRY(auto const content, content_of(out.file));
        out.build_id = "sha256:" + content;
    }
    return out;
}

result<library_identity> identify_file(fs::path const& file) {
    KILN_TRY(auto fd, base::open_file(file, O_RDONLY));
    KILN_TRY(auto const segments, segments_of(fd.get(), file));
    for (auto const& segment : segments) {
        if (segment.p_type != PT_NOTE || segment.p_filesz > largest_notes) continue;
        KILN_TRY(auto const notes, read_range(fd.get(), file, segment.p_offset, segment.p_filesz));
        if (auto id = build_id_in(notes, segment.p_align); !id.empty()) return library_identity{file, std::move(id)};
    }
    KILN_TRY(auto const content, content_of(file));
    return library_identity{file, "sha256:" + content};
}

result<run_path> run_path_of(fs::path const& file) {
    KILN_TRY(auto fd, base::open_file(file, O_RDONLY));
    KILN_TRY(auto const segments, segments_of(fd.get(), file));
    std::uint64_t strings = 0, size = 0, before = 0, after = 0;
    for (auto const& segment : segments) {
        if (segment.p_type != PT_DYNAMIC || segment.p_filesz > largest_table) continue;
        KILN_TRY(auto const entries, read_range(fd.get(), file, segment.p_offset, segment.p_filesz));
        for (std::size_t at = 0; at + sizeof(ElfW(Dyn)) <= entries.size(); at += sizeof(ElfW(Dyn))) {
            auto const entry = value_at<ElfW(Dyn)>(entries, at);
            if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr, segments);
            if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
            if (entry.d_tag == DT_RPATH) before = entry.d_un.d_val;
            if (entry.d_tag == DT_RUNPATH) after = entry.d_un.d_val;
        }
    }
    run_path out;
    if ((before == 0 && after == 0) || strings == 0 || size > largest_table) return out;
    KILN_TRY(auto const table, read_range(fd.get(), file, strings, size));
    auto const text = base::as_text(table);
    auto const list_at = [&](std::uint64_t at) {
        auto const rest = text.substr(std::min<std::uint64_t>(at, text.size()));
        return directories_in(rest.substr(0, rest.find('\0')), file.parent_path());
    };
    if (after != 0) out.after_users = list_at(after);
    else out.before_users = list_at(before);
    return out;
}

void* loaded_library::symbol(char const* name) const noexcept { return ::dlsym(handle, name); }

result<loaded_library> open_library(candidate const& what, base::load_watcher watcher) {
    KILN_CHECK(check_whole(what.file));
    loaded_library out;
    out.from = what.from;
    constexpr int how = RTLD_NOW | RTLD_LOCAL;
    auto const file = past_stand_ins(what.file);
    // The auditor of `kiln run` knows what it is asked for by its name.
    bool const is_watched = watcher != nullptr && file == what.file;
    out.handle = is_watched ? base::load_watched(file.c_str(), how, watcher) : base::load_library(file.c_str(), how);
    if (out.handle == nullptr) {
        auto const* why = ::dlerror();
        return fail(errc::not_found, "{}", why == nullptr ? what.file.c_str() : why);
    }
    ::link_map* map = nullptr;
    if (::dlinfo(out.handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) {
        return fail(errc::internal, "{}: the loader does not tell where it is", what.file.string());
    }
    out.map = map;
    KILN_TRY(out.identity, identify(map->l_ld));
    return out;
}

symbol_source symbols_of(loaded_library const& library) {
    return [handle = library.handle](char const* name) { return ::dlsym(handle, name); };
}

}  // namespace kiln::cuda
