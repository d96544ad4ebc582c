// SPDX-License-Identifier: Apache-2.0
//
// What another program asks of its NVRTC or nvJitLink, in that program's own words: options verbatim and in order, all
// outputs at once. From it come the digests its answer is kept under, and how the compiler is to be called so that the
// answer depends on nothing but what is in the key.
#pragma once

#include "base/digest.hpp"
#include "intercept/looks.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::intercept {

struct foreign_program {
    std::string source;
    std::optional<std::string> name;                           // nullopt: the program gave none
    std::vector<std::pair<std::string, std::string>> headers;  // name, text
    std::vector<std::string> expressions;
};

// How the compiler is called: as the program did, or with the directories that do not matter out of sight.
struct foreign_call {
    std::optional<std::string> name;
    std::vector<std::string> options;
    look_roots roots;            // not empty: directories are virtual
    std::string directory = {};  // the working directory, where what is made tells it; empty: it does not matter

    [[nodiscard]] bool is_virtual() const noexcept { return !roots.empty(); }
};
// Whether what is made tells the compiler's working directory, so that the same words mean something else in another.
[[nodiscard]] bool tells_directory(std::span<std::string const> options);
[[nodiscard]] foreign_call literal_call(foreign_program const& program, std::span<std::string const> options,
                                        std::string_view directory);
// nullopt: nothing can be hidden, or what is made would tell (debug information, bitcode, __FILE__). The file's
// own name, after which symbols are called, is not hidden.
[[nodiscard]] std::optional<foreign_call> virtual_call(foreign_program const& program,
                                                       std::span<std::string const> options);

// Whether it is named by a file with an absolute path.
[[nodiscard]] bool has_a_place(foreign_program const& program);
// Whether what the program itself wrote may ask for the names that would be hidden.
[[nodiscard]] bool asks_for_names(foreign_program const& program, std::span<std::string const> options);

// Whether what was made under virtual names has one of them in it: __FILE__ in a string.
[[nodiscard]] bool tells_virtual_names(std::string_view made);

// The option for which an answer cannot be kept, because the compiler does more than answer or reads what nobody sees: files it
// writes, precompiled headers, option files, this machine's GPU. Empty: it can be kept.
[[nodiscard]] std::string_view unkeepable_option(std::span<std::string const> options);

// Whether the program asks when it is compiled. Headers on disk are the capture's affair.
[[nodiscard]] bool depends_on_the_time(foreign_program const& program, std::span<std::string const> options);
// Whatever the program gives the compiler: what one text has the beginning of, another may have the end of.
[[nodiscard]] compile::texts_together own_texts(foreign_program const& program, std::span<std::string const> options);

// What people call it: a name expression, else a kernel in the text, else the file it says it is from.
[[nodiscard]] std::string name_for_people(foreign_program const& program);

// "sm_90", "compute_80"; "default" when no option says. For people.
[[nodiscard]] std::string target_in(std::span<std::string const> options);

struct request_digests {
    base::digest family;   // whoever compiles it
    base::digest request;  // by this compiler
};
[[nodiscard]] request_digests digests_of(foreign_program const& program, foreign_call const& call,
                                         std::string_view toolchain);
// Request and everything that was looked for.
[[nodiscard]] base::digest key_of(base::digest const& request, std::span<look const> looks);

// A link is a chain: the options, then each input after all before it. `before` is the chain so far.
[[nodiscard]] base::digest link_begun(std::string_view toolchain, std::span<std::string const> options);
// What an input is called decides nothing but messages.
[[nodiscard]] base::digest link_added(base::digest const& before, int type, base::byte_span data);
// Of a link whose answer tells what its inputs are called.
[[nodiscard]] base::digest link_named(base::digest const& link, std::span<std::string const> names);
// Whether the name of an input, or a part of it that a message may have, is in what was made. Too often rather than once too seldom.
[[nodiscard]] bool tells_a_name(std::string_view made, std::string_view name);

}  // namespace kiln::intercept
