// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "base/files.hpp"
#include "compile/carried_headers.hpp"
#include "compile/file_numbers.hpp"
#include "compile/standard_headers.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace kiln::cli {

namespace {

// A C++ literal of any bytes: what is not plain is written in octal, and no two question marks make a trigraph.
std::string literal(std::string_view text) {
    std::string out = "\"";
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '?') out += fmt::format("\\{:03o}", byte);
        else out += c;
    }
    return out + "\"";
}

std::string literal(std::vector<std::string> const& texts) {
    std::string out;
    for (auto const& t : texts) out += literal(t) + ", ";
    return out;
}

// All texts in one file, taken in by the assembler: a compiler is slow with long literals.
class text_file {
public:
    // The expression that makes it a std::string again.
    [[nodiscard]] std::string add(std::string_view text) {
        auto const at = all_.size();
        all_ += text;
        return fmt::format("text({}, {})", at, text.size());
    }
    [[nodiscard]] std::string const& all() const noexcept { return all_; }

private:
    std::string all_;
};

// By its full name: the header declares it in an inline namespace. Weak: whoever has the same name for it has the same contents.
std::string definition_of(std::string_view space, embedded_unit const& e, text_file& texts) {
    auto const& u = e.what;
    std::string out = fmt::format(
        "__attribute__((weak)) kiln::unit const& {}::{}() {{\n    static kiln::unit const u{{\n        .name = {},\n",
        space, e.function, literal(u.name));
    out += fmt::format("        .source = {},\n", u.source.empty() ? "{}" : texts.add(u.source));
    out += fmt::format("        .kernels = {{{}}},\n", literal(u.kernels));
    out += fmt::format("        .options = {{{}}},\n", literal(u.options));
    out += fmt::format("        .exports = {{{}}},\n", literal(u.exports));
    out += fmt::format("        .licence = {},\n", literal(u.licence));
    out += "        .carried = {";
    for (auto const& h : u.carried)
        out += fmt::format("\n            {{{}, {}}},", literal(h.place), texts.add(h.text));
    out += fmt::format("}},\n        .images_of = {},\n    }};\n    return u;\n}}\n", literal(u.images_of));
    return out;
}

// As it is where it says the same: what is compiled from it need not be compiled again.
result<void> replace_if_different(std::string const& file, std::string_view text) {
    if (auto const is = base::read_file(file); is && *is && base::as_text(**is) == text) return {};
    return base::replace_file(file, base::as_bytes(text), 0644);
}

std::string escaped_for_assembler(std::string_view path) {
    std::string out;
    for (char const c : path) {
        if (c == '"' || c == '\\') out += R"(\\\)";
        out += c;
    }
    return out;
}

// Not local, for link-time optimisation: it may put this text and the functions that use it into two objects.
std::string blob(std::string_view symbol, std::string_view file) {
    return fmt::format(
        "    \".weak {0}_begin\\n.hidden {0}_begin\\n.weak {0}_end\\n.hidden {0}_end\\n\"\n"
        "    \".balign 16\\n{0}_begin:\\n.incbin \\\"{1}\\\"\\n{0}_end:\\n\"\n",
        symbol, escaped_for_assembler(file));
}

// The look itself, or the first folder on its way that is not there.
std::string place_in_vain(compile::include_roots const& roots, dependency const& look) {
    auto folder = look;
    for (auto slash = look.path.find('/', 1); slash != look.path.npos; slash = look.path.find('/', slash + 1)) {
        folder.path = look.path.substr(0, slash);
        std::error_code why;
        if (!std::filesystem::exists(roots.locate(folder), why) && !why) return compile::place_of(folder) + "/";
    }
    return compile::place_of(look);
}

// What there was in each folder of the unit's own that this look went through, also in vain: another toolkit looks for more there.
void add_names(compile::include_roots& told, compile::include_roots const& roots, dependency const& look) {
    if (look.from == dependency::root::absolute || look.from == dependency::root::toolkit) return;
    auto folder = look;
    for (std::size_t end = 0; end != look.path.npos; end = look.path.find('/', end + 1)) {
        folder.path = look.path.substr(0, end);
        auto const real = roots.locate(folder);
        std::error_code none;
        if (end != 0 && !std::filesystem::is_directory(real, none)) return;
        auto const place = compile::place_of(folder);
        auto const key = place.substr(0, place.find_last_not_of('/') + 1);
        if (told.names.contains(key)) continue;
        if (auto names = compile::names_in(real)) told.names.emplace(key, *std::move(names));
        else told.in_vain.insert(key + "/.");  // at least that there is such a directory
    }
}

// All that can have made a compiler look for a path as it stands.
std::string texts_of(compile::include_roots const& roots, unit const& u, artifact const& a) {
    auto out = u.source;
    for (auto const& option : u.options) out += '\n' + option;
    for (auto const& d : a.dependencies) {
        if (d.from == dependency::root::toolkit || d.content.empty()) continue;
        auto const text = base::read_file(roots.locate(d));
        if (text && *text) out += base::as_text(**text);
    }
    return out;
}

// With line information a compiler sees this machine's paths. All places that such a path can have been found by, as it is without; and
// the path itself where a text names the directory that it is in.
std::vector<dependency> without_paths(compile::include_roots const& roots, std::string const& texts,
                                      dependency const& d) {
    using root = dependency::root;
    std::vector<dependency> out;
    bool is_named = false;
    auto const add_if_below = [&](std::string const& folder, root from, std::size_t index) {
        auto const prefix = folder.ends_with('/') ? folder : folder + "/";
        if (folder.empty() || !d.path.starts_with(prefix)) return;
        out.push_back({from, static_cast<std::uint16_t>(index), d.path.substr(prefix.size()), d.content});
        is_named = is_named || texts.find(folder) != texts.npos;
    };
    if (d.from == root::absolute) {
        add_if_below(roots.source_directory, root::source_directory, 0);
        for (std::size_t i = 0; i < roots.include_directories.size(); ++i)
            add_if_below(roots.include_directories[i], root::include_directory, i);
        for (auto const& folder : roots.toolkit) add_if_below(folder, root::toolkit, 0);
    }
    if (out.empty() || is_named) out.push_back(d);
    return out;
}

std::vector<dependency> looks_of(compile::include_roots const& roots, unit const& u, artifact const& a) {
    auto const options = compile::normalize(u.options);
    if (!options || !options->debug) return a.dependencies;
    auto const texts = texts_of(roots, u, a);
    std::vector<dependency> out;
    for (auto const& d : a.dependencies) {
        for (auto& look : without_paths(roots, texts, d)) out.push_back(std::move(look));
    }
    return out;
}

// `files`: those that were read for any architecture.
result<void> add_look(compile::include_roots& told, compile::file_numbers& files, compile::include_roots const& roots,
                      dependency const& d) {
    auto const place = compile::place_of(d);
    auto const file = place.empty() ? std::string{} : roots.locate(d);
    if (file.empty() || compile::is_standard_header_path(file) || told.carried.contains(place)) return {};
    add_names(told, roots, d);
    if (d.content.empty()) {
        if (told.is_unknown(d)) told.in_vain.insert(place_in_vain(roots, d));
        return {};
    }
    KILN_TRY(auto const text, base::read_file(file));
    if (!text || base::sha256_of(base::byte_span{*text}).hex() != compile::digest_of(d))
        return fail(errc::io, "{}: changed while it was compiled; build again", file);
    struct ::stat about {};
    if (::stat(file.c_str(), &about) != 0) return fail(errc::io, "{}: gone while it was compiled; build again", file);
    told.carried.emplace(place, base::as_text(*text));
    auto const before = files.of(compile::digest_of(d), {about.st_dev, about.st_ino});
    if (before > 0) told.copies.emplace(place, static_cast<unsigned>(before + 1));
    return {};
}

}  // namespace

result<unit> as_carried(engine::state& s, unit const& u, std::vector<artifact_ptr> const& made) {
    using root = dependency::root;
    compile::include_roots told;
    told.all_known = true;
    compile::file_numbers files;
    for (auto const& a : made) {
        KILN_TRY(auto const order, s.order_for(u, a->target));
        auto const& roots = order.subject.roots;
        auto const& as_compiled = std::get<compile::compile_job>(order.job.task).unit;
        for (auto const& d : looks_of(roots, as_compiled, *a)) {
            if (auto added = add_look(told, files, roots, d); !added) return std::move(added).error().within(u.name);
        }
        add_names(told, roots, {root::source_directory, 0, {}, {}});
        for (std::size_t i = 0; i < roots.include_directories.size(); ++i)
            add_names(told, roots, {root::include_directory, static_cast<std::uint16_t>(i), {}, {}});
    }
    auto out = u;
    out.directory.clear();
    out.include_dirs.clear();
    // What was found by an -I among the options is carried as what was found in the other directories.
    KILN_TRY(auto const options, compile::normalize(u.options));
    if (!options.include_dirs.empty()) out.options = options.arguments;
    out.carried = compile::carried_of(told);
    return out;
}

namespace {

// What the linker calls it all: of two archives with kernels by the same name it takes one, and says nothing. So kernels that differ
// in anything are called differently, and those that do not may be taken for each other.
struct contents {
    text_file texts;
    std::string definitions;
    std::string digest;
};

result<contents> contents_of(embedding const& what) {
    contents out;
    for (auto const& e : what.units) out.definitions += definition_of(what.name, e, out.texts);
    base::key_builder key{"kiln.embedding.v1"};
    key.add("definitions", out.definitions).add("texts", out.texts.all());
    if (!what.bundle.empty()) {
        KILN_TRY(auto const bytes, base::read_file(what.bundle));
        if (!bytes) return fail(errc::not_found, "{}: no such file", what.bundle);
        key.add("bundle", base::as_text(*bytes));
    }
    out.digest = key.finish().hex().substr(0, 32);
    return out;
}

constexpr std::string_view generated = "// Generated by kiln build --embed: do not edit.\n";

std::string header_text(embedding const& what, std::string_view digest) {
    std::string macros;
    std::string declarations;
    for (auto const& e : what.units) {
        macros += fmt::format(
            "#ifdef {0}\n#error \"{1}.hpp: a file becomes {0}(), and {0} is a macro: include this header first, or "
            "rename the file\"\n#endif\n",
            e.function, what.name);
        declarations += fmt::format("[[nodiscard]] kiln::unit const& {}();\n", e.function);
    }
    return fmt::format(
        "{0}#pragma once\n\n#include <kiln/unit.hpp>\n\n{1}\n"
        "// Called by their contents: another library of the program may have kernels by the same name.\n"
        "namespace {2} __attribute__((visibility(\"hidden\"))) {{\ninline namespace of_{3} {{\n{4}}}\n}}\n",
        generated, macros, what.name, digest, declarations);
}

}  // namespace

std::string header_beside(std::string const& file, std::string_view name) {
    return (std::filesystem::path{file}.parent_path() / fmt::format("{}.hpp", name)).native();
}

result<void> check_header(std::string const& header) {
    KILN_TRY(auto const there, base::read_file(header));
    if (!there || base::as_text(*there).starts_with(generated)) return {};
    return fail(errc::invalid_argument,
                "{}: --embed writes the header that declares its functions there, and this one was written by somebody "
                "else; move it, or choose another --embed-name",
                header);
}

result<void> write_embedding(std::string const& file, embedding const& what) {
    KILN_TRY(auto const all, contents_of(what));
    auto const texts_file = std::filesystem::absolute(file + ".texts").native();
    auto const symbol = fmt::format("kiln_{}_{}", what.name, all.digest);
    auto blobs = blob(symbol + "_texts", texts_file);
    std::string bundle;
    if (!what.bundle.empty()) {
        blobs += blob(symbol + "_bundle", std::filesystem::absolute(what.bundle).native());
        bundle = fmt::format(
            "extern \"C\" __attribute__((visibility(\"hidden\"))) std::byte const {1}_bundle_begin[], "
            "{1}_bundle_end[];\n"
            "static kiln::embedded_bundle const registered{{\"{0}\", {{{1}_bundle_begin, {1}_bundle_end}}}};\n",
            what.name, symbol);
    }
    auto const source = fmt::format(
        "{5}#include \"{0}.hpp\"\n\n#include <kiln/embedded.hpp>\n\n#include <cstddef>\n#include <string>\n\n"
        "asm(\".pushsection .rodata,\\\"a\\\"\\n\"\n{1}    \".popsection\\n\");\n\n"
        "extern \"C\" __attribute__((visibility(\"hidden\"))) char const {4}_texts_begin[];\n\n"
        "namespace {0} __attribute__((visibility(\"hidden\"))) {{\n{2}"
        "[[maybe_unused]] static std::string text(std::size_t at, std::size_t size) {{\n"
        "    return std::string({4}_texts_begin + at, size);\n}}\n}}\n\n{3}",
        what.name, blobs, bundle, all.definitions, symbol, generated);
    KILN_CHECK(replace_if_different(texts_file, all.texts.all()));
    KILN_CHECK(replace_if_different(header_beside(file, what.name), header_text(what, all.digest)));
    return replace_if_different(file, source);
}

}  // namespace kiln::cli
