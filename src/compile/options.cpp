// SPDX-License-Identifier: Apache-2.0
#include "compile/options.hpp"

#include <algorithm>
#include <map>

namespace kiln::compile {

namespace {

using enum option_role;
using value = option_value;

constexpr std::string_view use_target = "the architecture and kind come from the target; remove the option";
constexpr std::string_view no_pch =
    "compile processes keep precompiled headers by themselves (KILN_PCH=0 turns that off); remove the option";
constexpr std::string_view writes_file =
    "it writes a file of its own, which a cached result would not; remove the option, or put it in uncached_options "
    "(kiln compile --uncached-option=OPT), which compiles around the cache";

constexpr option_row table[] = {
    {"--define-macro", "-D", value::required, macro, "A=1"},
    {"--undefine-macro", "-U", value::required, macro, "A"},
    {"--include-path", "-I", value::required, include, "."},
    {"--pre-include", "-include", value::required, repeated, "x.h"},
    {"--std", "-std", value::required, keyed, "c++17"},
    {"--fmad", "-fmad", value::required, keyed, "false"},
    {"--use_fast_math", "-use_fast_math", value::none, keyed, ""},
    {"--ftz", "-ftz", value::required, keyed, "true"},
    {"--prec-sqrt", "-prec-sqrt", value::required, keyed, "false"},
    {"--prec-div", "-prec-div", value::required, keyed, "false"},
    {"--extra-device-vectorization", "-extra-device-vectorization", value::none, keyed, ""},
    {"--maxrregcount", "-maxrregcount", value::required, keyed, "64"},
    {"--restrict", "-restrict", value::none, keyed, ""},
    {"--device-as-default-execution-space", "-default-device", value::none, keyed, ""},
    {"--device-int128", "-device-int128", value::none, keyed, ""},
    {"--device-float128", "-device-float128", value::none, keyed, ""},
    {"--relocatable-device-code", "-rdc", value::required, keyed, "true"},
    {"--device-c", "-dc", value::none, keyed, ""},
    {"--device-w", "-dw", value::none, keyed, ""},
    {"--extensible-whole-program", "-ewp", value::none, keyed, ""},
    {"--gen-opt-lto", "-gen-opt-lto", value::none, keyed, ""},
    {"--dopt", "-dopt", value::required, keyed, "on"},
    {"--Ofast-compile", "-Ofast-compile", value::required, keyed, "min", "-Ofc"},
    {"--ptxas-options", "-Xptxas", value::required, repeated, "-O2"},
    {"--device-debug", "-G", value::none, keyed, ""},
    {"--generate-line-info", "-lineinfo", value::none, keyed, ""},
    {"--minimal", "-minimal", value::none, keyed, ""},
    {"--modify-stack-limit", "-modify-stack-limit", value::required, keyed, "false"},
    {"--builtin-move-forward", "-builtin-move-forward", value::required, keyed, "false"},
    {"--builtin-initializer-list", "-builtin-initializer-list", value::required, keyed, "false"},
    {"--jump-table-density", "-jtd", value::required, keyed, "50"},
    {"--device-stack-protector", "-device-stack-protector", value::required, keyed, "true"},
    {"--frandom-seed", "-frandom-seed", value::required, keyed, "7"},
    {"--no-source-include", "-no-source-include", value::none, keyed, ""},
    {"--disable-warnings", "-w", value::none, keyed, ""},  // changes the bytes, and who did not ask wants the warnings
    {"--split-compile", "-split-compile", value::required, keyed, "2"},  // the parts come out in another order
    {"--diag-error", "-diag-error", value::required, repeated, "177"},
    {"--diag-suppress", "-diag-suppress", value::required, repeated, "177"},
    {"--diag-warn", "-diag-warn", value::required, repeated, "177"},
    {"--brief-diagnostics", "-brief-diag", value::required, unkeyed, "true"},
    {"--display-error-number", "-err-no", value::none, unkeyed, ""},
    {"--no-display-error-number", "-no-err-no", value::none, unkeyed, ""},
    {"--no-cache", "-no-cache", value::none, unkeyed, ""},
    {"--gpu-architecture", "-arch", value::required, refused, use_target},
    {"--dlink-time-opt", "-dlto", value::none, refused, use_target},
    {"--optix-ir", "-optix-ir", value::none, refused, "OptiX IR is not a kind of artifact Kiln makes"},
    {"--pch", "-pch", value::none, refused, no_pch},
    {"--create-pch", "-create-pch", value::required, refused, no_pch},
    {"--use-pch", "-use-pch", value::required, refused, no_pch},
    {"--pch-dir", "-pch-dir", value::required, refused, no_pch},
    {"--pch-verbose", "-pch-verbose", value::required, refused, no_pch},
    {"--pch-messages", "-pch-messages", value::required, refused, no_pch},
    {"--instantiate-templates-in-pch", "-instantiate-templates-in-pch", value::required, refused, no_pch},
    {"--time", "-time", value::required, refused, writes_file},
    {"--fdevice-time-trace", "-fdevice-time-trace", value::required, refused, writes_file},
    {"--fdevice-syntax-only", "-fdevice-syntax-only", value::none, refused, "it makes no artifact; remove the option"},
};

struct found_option {
    option_row const* row = nullptr;
    std::string value;
    bool has_value = false;
};

bool spells(option_row const& row, std::string_view text) {
    return text == row.name || (!row.alias.empty() && text == row.alias) || (!row.alias2.empty() && text == row.alias2);
}

// "-DA", "-I/x": the value directly behind a one-letter alias.
bool is_glued(option_row const& row, std::string_view text) {
    return row.alias.size() == 2 && (row.role == macro || row.role == include) && text.size() > 2 &&
           text.starts_with(row.alias);
}

// NVRTC does not see blanks around a word; behind a glued letter it passes over spaces, behind '=' over nothing.
std::string_view without_blanks(std::string_view word) {
    constexpr std::string_view blanks = " \t\n\v\f\r";
    auto const from = word.find_first_not_of(blanks);
    return from == word.npos ? std::string_view{} : word.substr(from, word.find_last_not_of(blanks) + 1 - from);
}

std::string_view glued_value(std::string_view rest) {
    if (rest.starts_with('=')) return rest.substr(1);
    return rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
}

result<found_option> parse_one(std::span<std::string const> options, std::size_t& at) {
    auto const text = without_blanks(options[at]);
    auto const equals = text.find('=');
    for (auto const& row : table) {
        if (spells(row, text)) {
            if (row.value != value::required) return found_option{&row, {}, false};
            if (row.role == refused) return found_option{&row, {}, false};
            if (at + 1 >= options.size()) return fail(errc::invalid_argument, "option {} needs a value", text);
            return found_option{&row, std::string{without_blanks(options[++at])}, true};
        }
        if (is_glued(row, text)) return found_option{&row, std::string{glued_value(text.substr(2))}, true};
        if (equals != text.npos && spells(row, text.substr(0, equals))) {
            if (row.value == value::none) return fail(errc::invalid_argument, "option {} takes no value", row.name);
            return found_option{&row, std::string{text.substr(equals + 1)}, true};
        }
    }
    return fail(
        errc::unsupported,
        "option '{}' is not in Kiln's option table, so its effect could not be part of the key; "
        "remove it, ask for it to be added, or put it in uncached_options (kiln compile --uncached-option=OPT), "
        "which compiles around the cache",
        text);
}

std::string macro_name(std::string_view definition) {
    return std::string{definition.substr(0, definition.find_first_of("=("))};
}

// A name that is nothing but a name: the compiler also takes comments and escapes for blanks and letters, and only it knows which
// macro is meant then.
bool is_plain_name(std::string_view name) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name.find_first_not_of(letters) == name.npos;
}

// The order of two macros is nobody's business, that of two words about one is. What is not understood keeps its place among all of
// them.
class macro_list {
public:
    void add(option_row const& row, std::string const& definition) {
        // -DA and -DA=1 mean the same.
        bool const is_short = row.alias == "-D" && definition.find('=') == definition.npos;
        auto const name = macro_name(definition);
        if (!is_plain_name(name)) is_understood_ = false;
        words_.emplace_back(name, fmt::format("{}{}{}", row.alias, definition, is_short ? "=1" : ""));
    }
    [[nodiscard]] std::vector<std::string> keyed() && {
        if (is_understood_) std::ranges::stable_sort(words_, {}, &std::pair<std::string, std::string>::first);
        std::vector<std::string> out;
        for (auto& [name, text] : words_) out.push_back(std::move(text));
        return out;
    }

private:
    std::vector<std::pair<std::string, std::string>> words_;  // macro, and what is said of it
    bool is_understood_ = true;
};

std::string spelled(found_option const& o) {
    return o.has_value ? fmt::format("{}={}", o.row->name, o.value) : std::string{o.row->name};
}

// NVRTC does not take every long spelling.
std::string argument(found_option const& o) {
    if (o.row->role == macro) return fmt::format("{}{}", o.row->alias, o.value);
    if (o.row->name == "--frandom-seed") return fmt::format("-frandom-seed={}", o.value);
    return spelled(o);
}

// Options of ptxas, and of nvJitLink, that read no file, write none and say nothing about the target.
struct passed_option {
    std::string_view name;
    std::string_view alias = {};
};

constexpr passed_option ptxas_options[] = {
    {"--Ofast-compile", "-Ofc"},
    {"--allow-expensive-optimizations", "-allow-expensive-optimizations"},
    {"--compile-only", "-c"},
    {"--compiler-annotations", "-annotate"},
    {"--def-load-cache", "-dlcm"},
    {"--def-store-cache", "-dscm"},
    {"--device-debug", "-g"},
    {"--device-function-maxrregcount", "-func-maxrregcount"},
    {"--device-stack-protector", "-device-stack-protector"},
    {"--disable-optimizer-constants", "-disable-optimizer-consts"},
    {"--disable-warnings", "-w"},
    {"--dont-merge-basicblocks", "-no-bb-merge"},
    {"--entry", "-e"},
    {"--extensible-whole-program", "-ewp"},
    {"--fmad", "-fmad"},
    {"--force-load-cache", "-flcm"},
    {"--force-store-cache", "-fscm"},
    {"--g-tensor-memory-access-check", "-g-tmem-access-check"},
    {"--generate-line-info", "-lineinfo"},
    {"--gno-tensor-memory-access-check", "-gno-tmem-access-check"},
    {"--legacy-bar-warp-wide-behavior", "-legacy-bar-warp-wide-behavior"},
    {"--make-errors-visible-at-exit", "-make-errors-visible-at-exit"},
    {"--maxntid", "-maxntid"},
    {"--maxrregcount", "-maxrregcount"},
    {"--minnctapersm", "-minnctapersm"},
    {"--opt-level", "-O"},
    {"--optimize-float-atomics", "-opt-fp-atomics"},
    {"--override-directive-values", "-override-directive-values"},
    {"--position-independent-code", "-pic"},
    {"--preserve-relocs", "-preserve-relocs"},
    {"--register-usage-level", "-regUsageLevel"},
    {"--return-at-end", "-ret-end"},
    {"--sp-bounds-check", "-sp-bounds-check"},
    {"--split-compile", "-split-compile"},
    {"--suppress-async-bulk-multicast-advisory-warning", "-suppress-async-bulk-multicast-advisory-warning"},
    {"--suppress-debug-info", "-suppress-debug-info"},
    {"--suppress-double-demote-warning", "-suppress-double-demote-warning"},
    {"--suppress-sparse-mma-advisory-info", "-suppress-sparse-mma-advisory-info"},
    {"--suppress-stack-size-warning", "-suppress-stack-size-warning"},
    {"--verbose", "-v"},
    {"--warn-on-double-precision-use", "-warn-double-usage"},
    {"--warn-on-local-memory-usage", "-warn-lmem-usage"},
    {"--warn-on-spills", "-warn-spills"},
    {"--warning-as-error", "-Werror"},
};

constexpr passed_option link_options[] = {
    {"-maxrregcount"},
    {"-verbose"},
    {"-g"},
    {"-lineinfo"},
    {"-ftz"},
    {"-prec-div"},
    {"-prec-sqrt"},
    {"-fma"},
    {"-kernels-used"},
    {"-variables-used"},
    {"-optimize-unused-variables"},
    {"-split-compile"},
    {"-split-compile-extended"},
    {"-jump-table-density"},
    {"-no-cache"},
    {"-device-stack-protector"},
};

bool is_listed(std::span<passed_option const> known, std::string_view option) {
    auto const name = option.substr(0, option.find('='));
    // "-O3" is the one whose value may stand right behind it.
    bool const level = name.size() == 3 && name.starts_with("-O") && name[2] >= '0' && name[2] <= '9';
    return level || std::ranges::any_of(known, [&](passed_option const& o) {
               return name == o.name || (!o.alias.empty() && name == o.alias);
           });
}

// One value of --ptxas-options may hold several, parted by commas or blanks; a word without a dash is a value of the one before.
result<void> check_ptxas_options(std::string_view rest) {
    while (!rest.empty()) {
        auto const end = std::min(rest.find_first_of(", \t"), rest.size());
        auto const word = rest.substr(0, end);
        rest.remove_prefix(std::min(rest.size(), end + 1));
        if (!word.starts_with('-') || is_listed(ptxas_options, word)) continue;
        return fail(
            errc::unsupported,
            "option '{}' of ptxas is refused: it is not among those known to read and write no file of their own",
            word);
    }
    return {};
}

}  // namespace

result<void> check_link_options(std::span<std::string const> options) {
    for (auto const& option : options) {
        constexpr std::string_view to_ptxas = "-Xptxas=";
        if (option.starts_with(to_ptxas)) {
            KILN_CHECK(check_ptxas_options(std::string_view{option}.substr(to_ptxas.size())));
        } else if (!is_listed(link_options, option)) {
            return fail(
                errc::unsupported,
                "option '{}' of nvJitLink is refused: it belongs to the target, or is not among those known to read "
                "and write no file of their own",
                option);
        }
    }
    return {};
}

result<void> check_uncached_options(std::span<std::string const> options) {
    for (std::string_view const option : options) {
        auto const name = without_blanks(option.substr(0, option.find('=')));
        for (auto const& row : table) {
            if (row.role != refused || row.note == writes_file || !spells(row, name)) continue;
            return fail(errc::unsupported, "option {} is refused: {}", option, row.note);
        }
    }
    return {};
}

std::span<option_row const> option_table() noexcept { return table; }

result<normalized_options> normalize(std::span<std::string const> options) {
    normalized_options out;
    std::map<std::string, std::string> single;  // keyed: last one wins
    macro_list macros;
    std::vector<std::string> ordered;
    for (std::size_t i = 0; i < options.size(); ++i) {
        KILN_TRY(auto found, parse_one(options, i));
        auto const& row = *found.row;
        if (row.name == "--device-debug" || row.name == "--generate-line-info") out.debug = true;
        if (row.name == "--ptxas-options") KILN_CHECK(check_ptxas_options(found.value));
        switch (row.role) {
            case refused: return fail(errc::unsupported, "option {} is refused: {}", options[i], row.note);
            case include:
                if (found.value.empty()) return fail(errc::invalid_argument, "option {} names no directory", row.alias);
                out.include_dirs.push_back(found.value);
                continue;
            case macro:
                // Behind '=' NVRTC leaves blanks to the compiler's front end, to which they are nothing.
                found.value = without_blanks(found.value);
                // What is given to NVRTC would take the next option for the name.
                if (macro_name(found.value).empty())
                    return fail(errc::invalid_argument, "option {} names no macro", row.alias);
                macros.add(row, found.value);
                break;
            case keyed: single[std::string{row.name}] = spelled(found); break;
            case repeated: ordered.push_back(spelled(found)); break;
            case unkeyed: break;
        }
        out.arguments.push_back(argument(found));
    }
    for (auto const& [name, text] : single) out.keyed.push_back(text);
    for (auto& text : std::move(macros).keyed()) out.keyed.push_back(std::move(text));
    out.keyed.insert(out.keyed.end(), ordered.begin(), ordered.end());
    return out;
}

}  // namespace kiln::compile
