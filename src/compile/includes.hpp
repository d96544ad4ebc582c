// SPDX-License-Identifier: Apache-2.0
//
// Where headers come from. NVRTC is given virtual directories (/.kiln/s, /.kiln/i0, /.kiln/i1, ..., /.kiln/t) instead of
// real ones, and a hook on its fopen maps them: so every look is seen, the bytes that are hashed are the bytes that are
// compiled, and no path of this machine gets into an artifact. Log texts are mapped back for people.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "compile/file_numbers.hpp"
#include "compile/header_answers.hpp"
#include "compile/own_names.hpp"

#include <kiln/artifact.hpp>
#include <kiln/unit.hpp>

#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace kiln::compile {

// By folder, what names_in() tells of it.
using folder_names = std::map<std::string, std::string, std::less<>>;

struct include_roots {
    std::string source_directory;  // may be empty
    std::vector<std::string> include_directories;
    std::vector<std::string> toolkit;  // searched as one
    bool real_paths = false;           // debug builds: the compiler sees this machine's own paths
    // Headers that came with the unit, by their places; with any, the directories above are names for them and lie nowhere.
    std::map<std::string, std::string, std::less<>> carried = {};
    // Which of the files that say the same a place is, where it is not the first.
    std::map<std::string, unsigned, std::less<>> copies = {};
    // Places where the build looked in vain. One that ends in '/' was no folder then, so that nothing can have been below it.
    std::set<std::string, std::less<>> in_vain = {};
    // Of each folder that the build looked in ("i0", "i0/lib").
    folder_names names = {};
    // What was read, what was looked for in vain and these names are all that is known of the unit's own directories: what another
    // toolkit's headers ask for there was not there if its name is not among them. Of anything else nobody knows what lay there.
    bool all_known = false;
    // The unit is its images: there is no header that could differ.
    bool images_only = false;

    // Real path of a dependency on this machine; empty when its root does not exist here.
    [[nodiscard]] std::string locate(dependency const& d) const;
    // True of a place of the unit's own of which the build did not tell what lay there, if anything.
    [[nodiscard]] bool is_unknown(dependency const& d) const;
};

// The SHA-256 of a dependency, without what tells files apart that say the same.
[[nodiscard]] std::string_view digest_of(dependency const& d);

// The path from the innermost of the folders that it is below; empty where it is below none.
[[nodiscard]] std::string_view path_below(std::span<std::string const> folders, std::string_view path);

// What NVRTC is told.
[[nodiscard]] std::string virtual_source_name(std::string_view unit, include_roots const& roots);
[[nodiscard]] std::vector<std::string> virtual_include_options(include_roots const& roots);
// "/.kiln/i0/a.h(3): error" → "<real directory>/a.h(3): error".
[[nodiscard]] std::string with_real_paths(std::string text, include_roots const& roots);

// What was found at a path, all of it at one moment.
struct header_file {
    bool there = false;
    struct ::stat about {};
    std::optional<base::bytes> text;  // of a regular file; nothing else is a header
};

// What was asked for, by the name the compiler has for it, and what was found: an empty content where there was nothing.
using header_looks = std::map<std::string, dependency>;

// Records every look during one compile and answers from memory: whatever was asked of a file, and however often, the answers are
// of the moment it was first asked about.
class include_capture final : public header_answers {
public:
    explicit include_capture(include_roots roots) : roots_{std::move(roots)} {}

    // A relative path means the working directory.
    std::FILE* open(std::string const& path) override;
    int stat(std::string const& path, struct ::stat* out) override;
    // Why a file that is there could not be read or handed over: the compiler took it for absent, so what it made is wrong.
    [[nodiscard]] std::optional<error> const& fault() const noexcept { return fault_; }
    // Sorted, each look once. `#pragma once` tells a header's other names from its copies: of own headers that say the same, the content of the
    // second file ends in "#2", of the third in "#3".
    [[nodiscard]] std::vector<dependency> dependencies() const;

    [[nodiscard]] header_looks const& looks() const noexcept { return seen_; }
    // Makes the looks of another compile this one's own, if they would find the same now. All or none.
    [[nodiscard]] bool take_over(header_looks const& others);
    // A file that was taken over was read once more, by a name that nobody had for it. Where its texts are read it is skipped, if
    // `#pragma once` is in it; a precompiled header has forgotten that.
    [[nodiscard]] bool has_read_again() const noexcept { return read_again_; }
    // Whether the headers that were read so far can tell what the source is called, by themselves or together with `own` texts of it.
    [[nodiscard]] bool may_name_the_source(texts_together own) const;

private:
    [[nodiscard]] dependency classify(std::string const& path) const;
    [[nodiscard]] header_looks looks_to_tell() const;
    [[nodiscard]] std::string locate(dependency const& d);
    [[nodiscard]] result<header_file const*> read_once(std::string const& real);
    void remember(std::string const& path, dependency look, header_file const& file);
    void refuse(error why);
    include_roots roots_;
    header_looks seen_;
    std::map<std::string, file_identity> who_;  // of what was found, by the compiler's name
    std::set<file_identity> read_;              // those that were opened
    std::set<std::string> names_taken_over_;
    std::set<file_identity> taken_over_;
    bool read_again_ = false;
    std::map<std::string, std::string> toolkit_;  // real paths by the toolkit's
    std::map<std::string, header_file> files_;    // by real path
    std::optional<error> fault_;
};

// Stands for "what was read is not known": no machine ever has it, so the artifact is never found again.
[[nodiscard]] dependency unseen_reads();

enum class absent_headers { are_misses, toolkits_are_sealed, are_sealed };

// Do the headers on this machine still say what the artifact was made from? Returns an empty text when they do, else
// the first that does not, with the reason: "q.h changed", "first/q.h appeared", "q.h is gone", or why it cannot be read. With
// are_sealed a header that is not there, or not for us to read, is taken as sealed in (bundles; toolkits_are_sealed: only where it is
// the toolkit's), unless another one would be found in its place; one that differs or shadows never is, nor is one that a unit with all
// of its headers does not have. Such a unit was shipped as it was built: whatever toolkit is here, its bundle goes by its own headers.
[[nodiscard]] std::string first_change(std::span<dependency const> dependencies, include_roots const& roots,
                                       absent_headers how);

// A header of the unit's own that two of its artifacts found in the same place with another content, or that one of them did not find;
// empty where they may have been made from the same headers. The toolkit's do not count: it comes with the compiler.
[[nodiscard]] std::string first_contradiction(std::span<dependency const> one, std::span<dependency const> other);

}  // namespace kiln::compile
