// SPDX-License-Identifier: Apache-2.0
//
// The files a foreign compile looked for, present or absent: what decides, beside the request, whether a kept answer still
// holds. Directories that differ from run to run (the one in a program's name: CuPy makes a new one each time; include
// directories of a moved environment) are virtual while the compiler works, so looks in them are kept relative to
// them. All other names are kept as the compiler said them: a relative one means the directory the program is in.
#pragma once

#include "base/digest.hpp"
#include "base/file_state.hpp"
#include "base/files.hpp"
#include "base/fork_guard.hpp"
#include "compile/header_answers.hpp"
#include "compile/own_names.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::intercept {

// Why names are not hidden from what is compiled.
inline constexpr std::string_view may_ask_its_name = "it may ask what it is called";

struct look {
    enum class root : std::uint8_t { as_named, source_directory, include_directory };
    root from = root::as_named;
    std::uint16_t index = 0;  // of the include directory
    std::string path;
    std::optional<base::digest> content;  // nullopt: there was no such file
    std::uint8_t file =
        0;  // of the files that had this content the first, the second, ...: '#pragma once' goes by that
    bool operator==(look const&) const = default;
};

// What virtual directories stand for in this process.
struct look_roots {
    std::optional<std::string> source_directory;
    std::vector<std::string> include_directories;

    // nullopt: there is no such root here.
    [[nodiscard]] std::optional<std::string> locate(look const& what) const;
    [[nodiscard]] bool empty() const noexcept { return !source_directory && include_directories.empty(); }
};

inline constexpr std::string_view virtual_root = "/.kiln/";
// Whether a text could ask for a file by a virtual name, whole or pasted of pieces longer than a letter: it would be found, as it is
// not without us, and what a message says of it would be taken for one of our own.
[[nodiscard]] bool may_name_virtual_root(std::string_view text);
[[nodiscard]] std::string virtual_source(std::string_view file);
[[nodiscard]] std::string virtual_include(std::size_t index);
// What the compiler wrote about virtual directories, as it would have written it about the real ones.
[[nodiscard]] std::string with_real_paths(std::string text, look_roots const& roots);
// A path as the compiler asks for it. nullopt: a virtual one that nobody gave it.
[[nodiscard]] std::optional<look> parse_look(std::string_view path);

// A file that was read, and what would not be the same if it had changed since.
struct known_file {
    std::string path;
    base::file_state state{};
    base::digest content;
    bool operator==(known_file const&) const = default;
};
// nullopt: no regular file that can be read, or one that changed so lately that another change might not show.
[[nodiscard]] std::optional<known_file> read_settled(std::string const& path);
[[nodiscard]] base::bytes encode(std::span<known_file const> files);
// Empty for anything encode() did not write.
[[nodiscard]] std::vector<known_file> decode_known_files(base::byte_span data);

// Digests of files, each read once in a process for as long as it stays what it is. Safe from any thread.
class header_contents {
public:
    // nullopt: nothing that a compiler could read. What is there and cannot be read has a content that no file has.
    [[nodiscard]] std::optional<base::digest> of(std::string const& path);
    // One of many in one look. Who has not the rights of everybody (`how`) believes no one else that a file can be read.
    enum class belief { in_what_is_known, in_own_eyes };
    [[nodiscard]] std::optional<base::digest> of(std::string const& path, base::settled_contents& settled, belief how);

    // What somebody else has read for us while the program started: taken from `list` once it is there.
    void look_at(std::string list) { list_ = std::move(list); }
    void take_what_is_known();
    // What somebody else has read just now, as if it had been read here.
    void take(std::vector<known_file> files);
    // A file that the next run will need.
    void will_be_needed(std::string path);
    // What was read here, and by nobody else, and what will be needed.
    [[nodiscard]] std::vector<std::string> to_be_read_ahead();

private:
    struct known {
        base::file_state state{};
        base::digest content;
        bool here = false;
    };
    std::string list_;
    base::forkable_mutex mutex_;
    std::unordered_map<std::string, known> known_;
    std::set<std::string> needed_;
};

// Empty: all files are as they were. Else the first that is not: "q.h changed", "first/q.h appeared", "q.h is gone".
[[nodiscard]] std::string first_change(std::span<look const> looks, look_roots const& roots, header_contents& contents);

// Whether this thread may read every file that was there. Who looked may have had rights that it has not.
[[nodiscard]] bool may_read(std::span<look const> looks, look_roots const& roots);

// What a compiler makes of a name that is relative to the working directory before it looks: NVRTC 13.1 and later put that in front.
enum class relative_names : std::uint8_t { left, made_whole };

// Answers the compiler and notes every look. What is hashed is what is compiled: the compiler is given what was read, or the file
// itself where a change of it would show, and finish() finds that it has not changed.
class look_capture final : public compile::header_answers {
public:
    // `own` are the texts that the headers are compiled with.
    explicit look_capture(look_roots roots, compile::texts_together own = {});

    std::FILE* open(std::string const& path) override;
    int stat(std::string const& path, struct ::stat* out) override;
    // What a path the compiler asks about is on this machine; an unknown virtual path stays as it is.
    [[nodiscard]] std::string real_path(std::string const& path) const;
    // After the compile, before anything is asked.
    void finish(relative_names how);
    // Why what was made may be wrong, or what was read is not known: it must not be kept.
    [[nodiscard]] std::optional<error> const& fault() const noexcept { return fault_; }
    // Sorted, each once.
    [[nodiscard]] std::vector<look> looks() const;
    // The files among them that others need not read again, as long as they stay what they are.
    [[nodiscard]] std::vector<known_file> known() const;

private:
    std::FILE* refuse(error why);
    // Why a text that is compiled cannot be kept, or not with its names hidden.
    [[nodiscard]] std::optional<error> objection_to(std::string const& path, std::string_view text);
    look_roots roots_;
    compile::texts_together together_;
    struct seen {
        look what;
        base::file_state state{};
        std::optional<base::bytes> text;  // neither: there was no such file
        std::optional<known_file> known;
    };
    // Names that were found to be those of files that were read already: looks, too.
    void note_other_names();
    // Where the compiler makes names whole nobody can tell such a one from what was whole, so that what is there by either name decides.
    void note_relative_names();
    std::string here_;  // the working directory, with a slash at its end; empty: it is not known
    std::map<std::string, seen> seen_;
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> asked_about_;  // device and inode
    base::settled_contents settled_;
    std::optional<error> fault_;
};

}  // namespace kiln::intercept
