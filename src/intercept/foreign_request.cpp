// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_request.hpp"

#include "compile/own_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace kiln::intercept {

namespace {

using namespace std::string_view_literals;

// The compiler does not see blanks around an option.
std::string_view trimmed(std::string_view option) {
    constexpr auto blanks = " \t\n\v\f\r"sv;
    auto const from = option.find_first_not_of(blanks);
    return from == option.npos ? std::string_view{} : option.substr(from, option.find_last_not_of(blanks) + 1 - from);
}

// "-arch=sm_90", "--gpu-architecture=sm_90", "-arch sm_90" as two options: the name without its dashes.
std::string_view bare(std::string_view option) {
    auto const plain = trimmed(option);
    auto const from = plain.find_first_not_of('-');
    return from == plain.npos ? std::string_view{} : plain.substr(from);
}

std::string_view option_name(std::string_view option) {
    return trimmed(bare(option).substr(0, bare(option).find('=')));
}

// Where the compiler was, in what it made: in debug information and in intermediate code, also where every name is absolute.
constexpr std::array telling_directory{"G"sv,    "device-debug"sv,   "lineinfo"sv, "generate-line-info"sv,
                                       "dlto"sv, "dlink-time-opt"sv, "optix-ir"sv};

// The directory of an include option that is one word, in the spellings that NVRTC has. Two words are left as they are, and so are blanks and
// relative directories, which the compiler joins in its own way.
std::optional<std::string_view> include_directory_in(std::string_view option) {
    std::string_view directory;
    if (trimmed(option) != option) return std::nullopt;
    for (auto const spelling : {"-I"sv, "-I="sv, "--include-path="sv}) {
        if (option.starts_with(spelling)) directory = option.substr(spelling.size());
    }
    bool const plain = directory.size() > 1 && directory.starts_with('/') && !directory.ends_with('/') &&
                       directory.find_first_of(",\"'\n") == directory.npos;
    return plain ? std::optional{directory} : std::nullopt;
}

// Whether the next word is this one's value, whatever it looks like.
bool takes_the_next(std::string_view option) {
    constexpr std::array names{"I"sv,
                               "D"sv,
                               "U"sv,
                               "include-path"sv,
                               "define-macro"sv,
                               "undefine-macro"sv,
                               "include"sv,
                               "pre-include"sv,
                               "arch"sv,
                               "gpu-architecture"sv,
                               "std"sv,
                               "maxrregcount"sv,
                               "Xptxas"sv,
                               "ptxas-options"sv};
    return std::ranges::find(names, bare(option)) != names.end();
}

// A header in memory that is named by where it would be is found only from there.
bool has_placed_headers(foreign_program const& program) {
    return std::ranges::any_of(program.headers, [](auto const& h) { return h.first.starts_with('/'); });
}

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word before the parenthesis that follows __global__; what else has parentheses there begins with two underscores, and so does
// nothing that people name.
std::string_view first_kernel_in(std::string_view source) {
    constexpr auto mark = "__global__"sv;
    auto at = source.find(mark);
    while (at != source.npos) {
        auto const open = source.find('(', at);
        if (open == source.npos) return {};
        auto end = open;
        while (end > at && std::isspace(static_cast<unsigned char>(source[end - 1])) != 0) --end;
        auto from = end;
        while (from > at && is_name_part(source[from - 1])) --from;
        auto const name = source.substr(from, end - from);
        if (!name.empty() && !name.starts_with("__")) return name;
        at = source.find_first_of(")", open);
    }
    return {};
}

// An include folder may be called anything.
bool defines_virtual_root(std::string_view option) {
    auto const name = bare(option);
    bool const is_macro = name.starts_with('D') || name.starts_with("define-macro");
    return option.find(virtual_root) != option.npos || (is_macro && may_name_virtual_root(option));
}

std::string joined_decimal(std::string_view text) {
    std::string out;
    for (auto const c : text) out += fmt::format("{}{}", out.empty() ? "" : ", ", static_cast<unsigned>(c));
    return out;
}

}  // namespace

// Name expressions are compiled, too.
bool asks_for_names(foreign_program const& program, std::span<std::string const> options) {
    if (may_name_virtual_root(program.source) || std::ranges::any_of(options, defines_virtual_root) ||
        std::ranges::any_of(program.expressions, may_name_virtual_root) ||
        std::ranges::any_of(program.headers, [](auto const& h) { return may_name_virtual_root(h.second); }))
        return true;
    return compile::may_name_its_file(program.source) || std::ranges::any_of(options, compile::may_name_its_file) ||
           std::ranges::any_of(program.expressions, compile::may_name_its_file) ||
           std::ranges::any_of(program.headers,
                               [](auto const& h) { return compile::header_may_name_its_file(h.second); });
}

bool tells_directory(std::span<std::string const> options) {
    return std::ranges::any_of(options, [](std::string const& o) {
        return std::ranges::find(telling_directory, option_name(o)) != telling_directory.end();
    });
}

foreign_call literal_call(foreign_program const& program, std::span<std::string const> options,
                          std::string_view directory) {
    foreign_call out{.name = program.name, .options = {options.begin(), options.end()}, .roots = {}};
    if (tells_directory(options)) out.directory = directory;
    return out;
}

bool has_a_place(foreign_program const& program) {
    return program.name && program.name->starts_with('/') && program.name->rfind('/') > 0 &&
           !program.name->ends_with('/');
}

std::optional<foreign_call> virtual_call(foreign_program const& program, std::span<std::string const> options) {
    if (tells_directory(options) || has_placed_headers(program) || asks_for_names(program, options))
        return std::nullopt;
    auto out = literal_call(program, options, {});
    if (has_a_place(program)) {
        auto const slash = program.name->rfind('/');
        out.roots.source_directory = program.name->substr(0, slash);
        out.name = virtual_source(program.name->substr(slash + 1));
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
        auto const directory = include_directory_in(options[i]);
        if (!directory || (i > 0 && takes_the_next(options[i - 1]))) continue;
        out.roots.include_directories.emplace_back(*directory);
        out.options[i] = "-I" + virtual_include(out.roots.include_directories.size() - 1);
    }
    if (!out.is_virtual()) return std::nullopt;
    return out;
}

bool tells_virtual_names(std::string_view made) {
    // Strings in PTX are lists of numbers.
    auto const as_numbers = joined_decimal(virtual_root);
    return made.find(virtual_root) != made.npos || made.find(as_numbers) != made.npos;
}

std::string_view unkeepable_option(std::span<std::string const> options) {
    // Parts of names, also of what is passed on to ptxas and the others (-Xptxas, --nvvm-options).
    constexpr std::array parts{"pch"sv,  "time"sv, "trace"sv,  "-file"sv,
                               "optf"sv, "dump"sv, "native"sv, "apply-controls"sv};
    // Of these, what only sounds like one of them.
    constexpr std::array harmless{"dlink-time-opt"sv};
    for (auto const& option : options) {
        auto const o = trimmed(option);
        if (o.starts_with('@')) return option;
        auto const name = bare(o);
        bool const defines = name.starts_with('D') || name.starts_with('U') || name.starts_with("define-macro"sv) ||
                             name.starts_with("undefine-macro"sv) || name.starts_with('I') ||
                             name.starts_with("include-path"sv) || !o.starts_with('-');
        bool const known = std::ranges::any_of(harmless, [&](auto h) { return name.starts_with(h); });
        if (defines || known) continue;
        if (std::ranges::any_of(parts, [&](auto p) { return o.find(p) != o.npos; })) return option;
    }
    return {};
}

bool depends_on_the_time(foreign_program const& program, std::span<std::string const> options) {
    return compile::may_name_the_time(program.source) || std::ranges::any_of(options, compile::may_name_the_time) ||
           std::ranges::any_of(program.expressions, compile::may_name_the_time) ||
           std::ranges::any_of(program.headers,
                               [](auto const& h) { return compile::header_may_name_the_time(h.second); });
}

compile::texts_together own_texts(foreign_program const& program, std::span<std::string const> options) {
    compile::texts_together out;
    out.add(program.source);
    for (auto const& option : options) out.add(option);
    for (auto const& expression : program.expressions) out.add(expression);
    for (auto const& [name, text] : program.headers) out.add_header(text);
    return out;
}

std::string name_for_people(foreign_program const& program) {
    if (!program.expressions.empty()) return program.expressions.front();
    if (auto const kernel = first_kernel_in(program.source); !kernel.empty()) return std::string{kernel};
    auto const name = program.name.value_or("default_program");
    return name.substr(name.rfind('/') + 1);
}

std::string target_in(std::span<std::string const> options) {
    std::string out = "default";
    for (std::size_t i = 0; i < options.size(); ++i) {
        auto const name = option_name(options[i]);
        if (name != "arch"sv && name != "gpu-architecture"sv && name != "gpu-name"sv) continue;
        auto const equals = options[i].find('=');
        if (equals != std::string::npos) out = options[i].substr(equals + 1);
        else if (i + 1 < options.size()) out = options[i + 1];
    }
    return out.substr(0, 32);
}

request_digests digests_of(foreign_program const& program, foreign_call const& call, std::string_view toolchain) {
    base::key_builder family{"kiln.foreign.nvrtc.v4"};
    if (call.name) family.add("name", *call.name);
    family.add("source", program.source);
    for (auto const& [name, text] : program.headers) family.add("header", name).add("text", text);
    for (auto const& option : call.options) family.add("option", option);
    for (auto const& expression : program.expressions) family.add("expression", expression);
    if (!call.directory.empty()) family.add("directory", call.directory);
    request_digests out{.family = family.finish(), .request = {}};
    out.request =
        base::key_builder{"kiln.foreign.request.v1"}.add("family", out.family).add("toolchain", toolchain).finish();
    return out;
}

base::digest key_of(base::digest const& request, std::span<look const> looks) {
    base::key_builder key{"kiln.foreign.key.v1"};
    key.add("request", request);
    for (auto const& one : looks) {
        key.add("root", std::uint64_t{static_cast<std::uint8_t>(one.from)}).add("index", std::uint64_t{one.index});
        key.add("path", one.path);
        if (one.file != 0) key.add("file", std::uint64_t{one.file});
        if (one.content) key.add("content", *one.content);
        else key.add("absent", std::string_view{});
    }
    return key.finish();
}

base::digest link_begun(std::string_view toolchain, std::span<std::string const> options) {
    base::key_builder begun{"kiln.foreign.nvjitlink.v1"};
    begun.add("toolchain", toolchain);
    for (auto const& option : options) begun.add("option", option);
    return begun.finish();
}

base::digest link_added(base::digest const& before, int type, base::byte_span data) {
    return base::key_builder{"kiln.foreign.input.v2"}
        .add("before", before)
        .add("type", static_cast<std::uint64_t>(static_cast<std::int64_t>(type)))
        .add("data", data)
        .finish();
}

base::digest link_named(base::digest const& link, std::span<std::string const> names) {
    base::key_builder named{"kiln.foreign.names.v1"};
    named.add("link", link);
    for (auto const& name : names) named.add("name", name);
    return named.finish();
}

bool tells_a_name(std::string_view made, std::string_view name) {
    auto const file = name.substr(name.rfind('/') + 1);
    auto const stem = file.substr(0, file.find('.'));
    return !stem.empty() ? made.find(stem) != made.npos : !name.empty() && made.find(name) != made.npos;
}

}  // namespace kiln::intercept
