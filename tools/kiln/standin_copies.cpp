// SPDX-License-Identifier: Apache-2.0
#include "standin_copies.hpp"

#include "base/files.hpp"
#include "run_environment.hpp"

#include <array>
#include <cstring>
#include <elf.h>
#include <string_view>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

fs::path folder_in(fs::path const& cache) { return cache / "run" / "standins"; }

// "0123456789abcdef-nvrtc-13", "0123456789abcdef.bridge"; empty for what is neither.
fs::path template_of(fs::path const& copy) {
    constexpr std::size_t id = 16;
    auto const name = copy.filename().native();
    if (copy.extension() == ".bridge") return "bridge.so";
    auto const number = name.rfind('-');
    if (number == name.npos || number <= id || name[id] != '-') return {};
    return fs::path{"lib" + name.substr(id + 1, number - id - 1) + ".so." + name.substr(number + 1)};
}

// How long the text at `at` is that a bridge has in place of its template's: the room for a run path, for a library's name, or for addresses.
std::size_t room_at(std::string_view original, std::size_t at) {
    for (auto const mark : {"KILN_RUNPATH_"sv, "KILN_NEEDED_"sv, "KILN_SLOTS_"sv}) {
        if (original.substr(at).starts_with(mark)) return std::min(original.find('\0', at), original.size()) - at;
    }
    return 0;
}

// An export that nobody is to find has lost its first letter.
bool is_hidden_name(char is, char was) { return is == '\1' && (was == 'n' || was == '_' || was == 'k'); }

// Numbers that the hook writes anew: which segments can be written to, the soname, and what versions are called.
class numbers_of {
public:
    explicit numbers_of(std::string_view file) : file_{file} {
        auto const header = read<Elf64_Ehdr>(0);
        for (std::size_t k = 0; k < header.e_phnum; ++k) {
            auto const at = header.e_phoff + k * sizeof(Elf64_Phdr);
            auto const segment = read<Elf64_Phdr>(at);
            add(at + offsetof(Elf64_Phdr, p_flags), sizeof segment.p_flags);
            if (segment.p_type == PT_DYNAMIC) add_dynamic(segment.p_offset, segment.p_filesz);
        }
    }
    [[nodiscard]] bool contains(std::size_t at) const {
        for (auto const& [from, length] : ranges_) {
            if (at >= from && at - from < length) return true;
        }
        return false;
    }

private:
    template <class T>
    [[nodiscard]] T read(std::size_t at) const {
        T out{};
        if (at <= file_.size() && sizeof out <= file_.size() - at) std::memcpy(&out, file_.data() + at, sizeof out);
        return out;
    }
    void add(std::size_t at, std::size_t length) { ranges_.emplace_back(at, length); }
    void add_dynamic(std::size_t at, std::size_t bytes) {
        for (std::size_t k = 0; k < bytes / sizeof(Elf64_Dyn); ++k) {
            auto const one = at + k * sizeof(Elf64_Dyn);
            auto const entry = read<Elf64_Dyn>(one);
            if (entry.d_tag == DT_SONAME) add(one + offsetof(Elf64_Dyn, d_un), sizeof entry.d_un);
            if (entry.d_tag == DT_VERDEF)
                add_versions(entry.d_un.d_ptr);  // in the first segment: address and place are one
        }
    }
    void add_versions(std::size_t at) {
        for (auto one = read<Elf64_Verdef>(at); one.vd_version == VER_DEF_CURRENT; one = read<Elf64_Verdef>(at)) {
            add(at + offsetof(Elf64_Verdef, vd_hash), sizeof one.vd_hash);
            add(at + one.vd_aux + offsetof(Elf64_Verdaux, vda_name), sizeof(Elf64_Word));
            if (one.vd_next == 0) return;
            at += one.vd_next;
        }
    }
    std::string_view file_;
    std::vector<std::pair<std::size_t, std::size_t>> ranges_;
};

bool is_made_of(std::string_view original, std::string_view copy) {
    numbers_of const numbers{original};
    for (std::size_t at = 0; at < original.size(); ++at) {
        if (original[at] == 'K') at += room_at(original, at);
        if (at < original.size() && copy[at] != original[at] && !is_hidden_name(copy[at], original[at]) &&
            !numbers.contains(at))
            return false;
    }
    return true;
}

bool is_damaged(fs::path const& copy) {
    auto const original = base::read_file(standin_folder() / template_of(copy));
    if (!original || !*original) return false;
    auto const data = base::read_file(copy);
    if (!data || !*data) return true;
    auto const is = base::as_text(**data), should_be = base::as_text(**original);
    if (!is.starts_with("\177ELF")) return true;
    return is.size() == should_be.size() && !is_made_of(should_be, is);
}

}  // namespace

std::vector<fs::path> damaged_standins(fs::path const& cache) {
    std::vector<fs::path> out;
    std::error_code failed;
    for (fs::directory_iterator at{folder_in(cache), failed}, end; !failed && at != end; at.increment(failed)) {
        if (!template_of(at->path()).empty() && is_damaged(at->path())) out.push_back(at->path());
    }
    return out;
}

void remove_standins(fs::path const& cache) {
    std::error_code ignored;
    fs::remove_all(folder_in(cache), ignored);
}

}  // namespace kiln::cli
