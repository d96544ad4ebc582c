// SPDX-License-Identifier: Apache-2.0
//
// What a text can learn about itself from the compiler: what its file is called, what the file is called that includes it, and when
// it is compiled. Where it may, directories must not be hidden from the compiler, nothing be shared between sources, or nothing
// be kept. All of these answer too often rather than once too seldom: comments count, and so do pieces of a name, which macros
// can paste together, and names that are cut by a line's end.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace kiln::compile {

// __FILE__, __BASE_FILE__ and their kin, or a macro that is named after them. Pieces without an underscore and of three letters
// and less are looked for in __FILE__ alone, in which every other name ends; of two letters and less not at all.
[[nodiscard]] bool may_name_its_file(std::string_view text);
// The same of a header, without what is harmless in those of CUDA and CuPy: see known_phrases.hpp. A macro that is named after __FILE__ has it
// in its definition, which is in a text, too.
[[nodiscard]] bool header_may_name_its_file(std::string_view text);
// __BASE_FILE__ alone: in a header it says something else in every source that includes it.
[[nodiscard]] bool may_name_its_source(std::string_view text);
// The same of a header of the toolkit, which pastes no name together from pieces of three letters and less.
[[nodiscard]] bool library_may_name_its_source(std::string_view text);
// __DATE__, __TIME__, __TIMESTAMP__; whole, in pieces that this text has all of, or by an end for which another may have the middle.
[[nodiscard]] bool may_name_the_time(std::string_view text);
// The same of a header, without what is harmless.
[[nodiscard]] bool header_may_name_the_time(std::string_view text);

// Which names the words of a text make when they are pasted together, each as often as one likes.
class pasted_names {
public:
    explicit pasted_names(std::span<std::string_view const> names) : names_{names} {}

    void add(std::string_view word);
    [[nodiscard]] bool make_one() const;

private:
    static constexpr std::size_t most_names = 3, longest = 16;
    std::span<std::string_view const> names_;
    std::array<std::array<unsigned, longest>, most_names>
        steps_{};  // from each letter, a bit for each length of a word
};

// Texts that are compiled together: a macro of one can paste what others have. Single letters count in a program's own texts and not
// between what libraries wrap in underscores: the alphabet is in every larger text, as names of parameters.
class texts_together {
public:
    enum class pieces {
        all,             // of a program's own text
        of_two_letters,  // and more, and underscores: of a header in a file
        underscores,     // two: of libraries that paste names of their own between them
    };
    texts_together();

    void add(std::string_view text, pieces which = pieces::all);
    // A header, in a file or in a list that a program has; what is harmless in those of CUDA and CuPy does not count.
    void add_header(std::string_view text);

    [[nodiscard]] bool may_name_a_file() const { return says_.file || own_.files.make_one() || all_.files.make_one(); }
    [[nodiscard]] bool may_name_their_source() const { return own_.sources.make_one() || all_.sources.make_one(); }
    [[nodiscard]] bool may_name_the_time() const {
        return says_.time || own_.times.make_one() || all_.times.make_one();
    }

private:
    void add_piece(std::string_view word, pieces which);
    void read_closely(std::string_view header);
    struct names {
        pasted_names files, sources, times;
        void add(std::string_view word) {
            files.add(word);
            sources.add(word);
            times.add(word);
        }
    };
    names own_;  // without libraries
    names all_;  // without single letters
    struct {
        bool file = false, time = false;
    } says_;  // one of the headers alone
};

}  // namespace kiln::compile
