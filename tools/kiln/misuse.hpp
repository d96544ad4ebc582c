// SPDX-License-Identifier: Apache-2.0
// A command line that makes no sense: exit status 2, and words that name the remedy. Everything else that fails ends with 1.
#pragma once

#include "command.hpp"

namespace kiln::cli {

// A word that means nothing here: an age, an architecture, a pack.
class misuse : public error {
public:
    explicit misuse(error const& why) : error{why} {}
    explicit misuse(std::string why) : error{errc::invalid_argument, std::move(why)} {}
};

// What words of the command line stand for. errc::invalid_argument is misuse; what this machine lacks (a GPU for 'native', a
// compiler for 'all', a file) is no fault of the words.
template <class T>
[[nodiscard]] T meant(result<T> words) {
    if (!words && words.error().code() == errc::invalid_argument) throw misuse{words.error()};
    return std::move(words).value();
}

// "--opt=", or the "--opt" that has "--" for its value, among the arguments: the parser would take what follows. Empty: none.
[[nodiscard]] std::string option_without_value(CLI::App const& root, int count, char const* const* arguments);

// The parser's complaint as one of ours.
[[nodiscard]] std::string in_words(CLI::App const& root, CLI::ParseError const& why);

}  // namespace kiln::cli
