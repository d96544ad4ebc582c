// SPDX-License-Identifier: Apache-2.0
//
// What is read: the symbol table (a kernel is a global function whose st_other has the entry bit), section sizes
// (.nv.shared.K), and .nv.info, a list of attributes: one byte format, one byte code, then a 16-bit value or size; with
// format 4 that many bytes follow. Codes used: 0x2f registers and 0x11 stack frame, each (symbol, value).
#include "compile/elf.hpp"

#include "compile/internal_names.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <limits>
#include <map>
#include <optional>

namespace kiln::compile {

namespace {

using base::byte_span;

constexpr std::uint8_t entry_bit = 0x10;
constexpr std::uint8_t code_registers = 0x2f;
constexpr std::uint8_t code_frame = 0x11;
constexpr int reserved_shared = 1024;

class elf_view {
public:
    explicit elf_view(byte_span image) : image_{image} {}

    template <class T>
    [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
        if (offset > image_.size() || image_.size() - offset < sizeof(T)) return std::nullopt;
        T out;
        std::memcpy(&out, image_.data() + offset, sizeof out);
        return out;
    }

    [[nodiscard]] byte_span content(Elf64_Shdr const& s) const {
        if (s.sh_type == SHT_NOBITS || s.sh_offset > image_.size() || image_.size() - s.sh_offset < s.sh_size)
            return {};
        return image_.subspan(s.sh_offset, s.sh_size);
    }

    [[nodiscard]] static std::string_view text_at(byte_span strings, std::uint64_t offset) {
        if (offset >= strings.size()) return {};
        auto const rest = base::as_text(strings.subspan(offset));
        auto const end = rest.find('\0');
        return end == rest.npos ? std::string_view{} : rest.substr(0, end);
    }

private:
    byte_span image_;
};

struct section {
    std::string_view name;
    Elf64_Shdr header;
};

struct symbol {
    std::string_view name;
    Elf64_Sym entry;
};

result<std::vector<section>> read_sections(elf_view const& elf) {
    auto const header = elf.at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
        return fail(errc::corrupt, "the compiler's result is not a 64-bit ELF image");
    }
    std::vector<section> out;
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
        auto const s = elf.at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
        if (!s) return fail(errc::corrupt, "the cubin's section table is cut off");
        out.push_back({{}, *s});
    }
    if (header->e_shstrndx < out.size()) {
        auto const names = elf.content(out[header->e_shstrndx].header);
        for (auto& s : out) s.name = elf_view::text_at(names, s.header.sh_name);
    }
    return out;
}

std::vector<symbol> read_symbols(elf_view const& elf, std::vector<section> const& sections) {
    std::vector<symbol> out;
    for (auto const& s : sections) {
        if (s.header.sh_type != SHT_SYMTAB || s.header.sh_link >= sections.size()) continue;
        auto const strings = elf.content(sections[s.header.sh_link].header);
        auto const count = elf.content(s.header).size() / sizeof(Elf64_Sym);
        for (std::size_t i = 0; i < count; ++i) {
            if (auto const entry = elf.at<Elf64_Sym>(s.header.sh_offset + i * sizeof(Elf64_Sym))) {
                out.push_back({elf_view::text_at(strings, entry->st_name), *entry});
            }
        }
    }
    return out;
}

// Sizes that no device has are as good as the largest one.
int bounded(std::uint64_t number) noexcept {
    return static_cast<int>(std::min<std::uint64_t>(number, std::numeric_limits<int>::max()));
}

struct resources {
    std::map<std::uint32_t, int> registers;
    std::map<std::uint32_t, int> frame;
};

resources read_attributes(byte_span info) {
    resources out;
    base::byte_reader in{info};
    while (in.ok() && in.left() >= 4) {
        auto const format = in.get_u8();
        auto const code = in.get_u8();
        auto const size = in.get_u16();
        if (format != 4) continue;
        base::byte_reader value{in.get_raw(size)};
        auto const symbol = value.get_u32();
        auto const number = bounded(value.get_u32());
        if (!value.ok()) continue;
        if (code == code_registers) out.registers[symbol] = number;
        if (code == code_frame) out.frame[symbol] = number;
    }
    return out;
}

int value_or_zero(std::map<std::uint32_t, int> const& values, std::uint32_t key) {
    auto const at = values.find(key);
    return at == values.end() ? 0 : at->second;
}

void put_name(base::byte_writer& out, std::string_view name) { out.put_text(without_compile_marks(name)); }

// Tables of names are not content: whoever refers to them is given with the name.
void put_content(base::byte_writer& out, elf_view const& elf, Elf64_Shdr const& s) {
    if (s.sh_type == SHT_NOBITS) out.put_u64(s.sh_size);
    if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_STRTAB || s.sh_type == SHT_SYMTAB) return;
    put_name(out, base::as_text(elf.content(s)));
}

void put_section(base::byte_writer& out, elf_view const& elf, section const& s) {
    put_name(out, s.name);
    auto const& h = s.header;
    for (std::uint64_t const number : {std::uint64_t{h.sh_type}, h.sh_flags, h.sh_addr, std::uint64_t{h.sh_link},
                                       std::uint64_t{h.sh_info}, h.sh_addralign, h.sh_entsize})
        out.put_u64(number);
    put_content(out, elf, h);
}

void put_symbol(base::byte_writer& out, symbol const& s) {
    put_name(out, s.name);
    out.put_u8(s.entry.st_info);
    out.put_u8(s.entry.st_other);
    out.put_u16(s.entry.st_shndx);
    out.put_u64(s.entry.st_value);
    out.put_u64(s.entry.st_size);
}

bool is_whole(elf_view const& elf, Elf64_Shdr const& s) {
    return s.sh_type == SHT_NOBITS || elf.content(s).size() == s.sh_size;
}

}  // namespace

result<cubin_contents> read_cubin(byte_span image, int sm, std::span<std::string const> exports) {
    elf_view const elf{image};
    KILN_TRY(auto const sections, read_sections(elf));
    auto const symbols = read_symbols(elf, sections);

    resources numbers;
    std::map<std::string_view, std::uint64_t> shared;
    constexpr std::string_view shared_prefix = ".nv.shared.";
    for (auto const& s : sections) {
        if (s.name == ".nv.info") numbers = read_attributes(elf.content(s.header));
        if (s.name.starts_with(shared_prefix)) shared[s.name.substr(shared_prefix.size())] = s.header.sh_size;
    }

    cubin_contents out;
    for (std::uint32_t i = 0; i < symbols.size(); ++i) {
        auto const& [name, entry] = symbols[i];
        if (ELF64_ST_TYPE(entry.st_info) == STT_FUNC && (entry.st_other & entry_bit) != 0 &&
            entry.st_shndx != SHN_UNDEF) {
            auto bytes = shared.contains(name) ? bounded(shared.at(name)) : 0;
            if (sm >= 90) bytes = std::max(0, bytes - reserved_shared);
            out.kernels.push_back({std::string{name}, std::string{name}, value_or_zero(numbers.registers, i), bytes,
                                   value_or_zero(numbers.frame, i)});
        }
        if (entry.st_shndx < sections.size() && std::ranges::find(exports, name) != exports.end()) {
            auto const content = elf.content(sections[entry.st_shndx].header);
            if (entry.st_value <= content.size() && content.size() - entry.st_value >= entry.st_size) {
                auto const bytes = content.subspan(entry.st_value, entry.st_size);
                out.constants.push_back({std::string{name}, {bytes.begin(), bytes.end()}});
            }
        }
    }
    std::ranges::sort(out.kernels, {}, &kernel_info::lowered);
    std::ranges::sort(out.constants, {}, &constant_info::name);
    return out;
}

std::vector<std::string> cubin_variables(byte_span image) {
    elf_view const elf{image};
    auto const sections = read_sections(elf);
    if (!sections) return {};
    std::vector<std::string> out;
    for (auto const& [name, entry] : read_symbols(elf, *sections)) {
        // The compiler makes them local where nothing else is linked in; the driver finds them all the same.
        if (ELF64_ST_TYPE(entry.st_info) != STT_OBJECT || entry.st_shndx == SHN_UNDEF || name.empty() ||
            name.starts_with('.'))
            continue;
        out.emplace_back(name);
    }
    std::ranges::sort(out);
    return out;
}

base::bytes cubin_essence(byte_span image) {
    elf_view const elf{image};
    auto const header = elf.at<Elf64_Ehdr>(0);
    auto const sections = read_sections(elf);
    if (!header || !sections) return {};
    if (!std::ranges::all_of(*sections, [&](section const& s) { return is_whole(elf, s.header); })) return {};
    base::byte_writer out;
    out.put_raw(std::as_bytes(std::span{header->e_ident}));
    for (std::uint32_t const number : {std::uint32_t{header->e_type}, std::uint32_t{header->e_machine},
                                       header->e_version, header->e_flags, std::uint32_t{header->e_phnum}})
        out.put_u32(number);
    // Sections and names that lie upon one another are no compiler's work, and would be told many times over.
    auto const most = 4 * image.size();
    for (auto const& s : *sections) {
        put_section(out, elf, s);
        if (out.size() > most) return {};
    }
    for (auto const& s : read_symbols(elf, *sections)) {
        put_symbol(out, s);
        if (out.size() > most) return {};
    }
    for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
        auto p = elf.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!p) return {};
        p->p_offset = 0;
        out.put_raw(std::as_bytes(std::span{&*p, 1}));
    }
    return std::move(out).take();
}

base::bytes image_essence(artifact const& a) {
    if (a.target.kind == artifact_kind::cubin) {
        if (auto out = cubin_essence(a.image); !out.empty()) return out;
    }
    if (a.target.kind != artifact_kind::ptx) return a.image;
    auto const text = without_compile_marks(base::as_text(a.image));
    auto const plain = base::as_bytes(text);
    return {plain.begin(), plain.end()};
}

std::vector<std::string> ptx_entries(std::string_view ptx) {
    std::vector<std::string> out;
    constexpr std::string_view directive = ".entry ";
    for (auto at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at + 1)) {
        auto const from = ptx.find_first_not_of(" \t", at + directive.size());
        auto const end = ptx.find_first_of("( \t\n\r;{", from);
        if (from != ptx.npos && end != ptx.npos) out.emplace_back(ptx.substr(from, end - from));
    }
    std::ranges::sort(out);
    return out;
}

bool has_ptx_constant(std::string_view ptx, std::string_view name) {
    // ".visible .const .align 4 .b8 taps[16] = {...};"
    constexpr std::string_view directive = ".const ";
    for (auto at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at + 1)) {
        auto const declared = ptx.substr(at, ptx.find_first_of("[=;", at) - at);
        auto const last = declared.find_last_not_of(" \t\r\n");
        auto const first = declared.find_last_of(" \t\r\n", last);
        if (first != declared.npos && declared.substr(first + 1, last - first) == name) return true;
    }
    return false;
}

}  // namespace kiln::compile
