// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "base/files.hpp"
#include "compile/standard_headers.hpp"

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

// By its full name: the header may have declared it in an inline namespace.
std::string definition_of(std::string_view space, embedded_unit const& e, text_file& texts) {
    auto const& u = e.what;
    std::string out =
        fmt::format("kiln::unit const& {}::{}() {{\n    static kiln::unit const u{{\n        .name = {},\n", space,
                    e.function, literal(u.name));
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

// Global, for link-time optimisation: it may put this text and the functions that use it into two objects.
std::string blob(std::string_view symbol, std::string_view file) {
    return fmt::format(
        "    \".globl {0}_begin\\n.hidden {0}_begin\\n.globl {0}_end\\n.hidden {0}_end\\n\"\n"
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

bool shares_names(std::string const& folder, std::vector<std::string> const& toolkit) {
    std::error_code why;
    for (std::filesystem::directory_iterator at{folder, why}, end; !why && at != end; at.increment(why)) {
        auto const name = at->path().filename();
        auto const is_in = [&](std::string const& kit) {
            std::error_code ignored;
            return std::filesystem::exists(kit / name, ignored);
        };
        if (compile::is_standard_header(name.native()) || std::ranges::any_of(toolkit, is_in)) return true;
    }
    return why && why != std::errc::no_such_file_or_directory && why != std::errc::not_a_directory;
}

// How many directories there are, and of which the toolkit's headers have nothing to fear.
std::vector<std::string> marks_of(compile::include_roots const& roots) {
    std::vector<std::string> out;
    auto const mark = [&](std::string_view name, std::string const& folder) {
        out.push_back(fmt::format("!{}/{}", name, shares_names(folder, roots.toolkit) ? "." : "*"));
    };
    mark("s", roots.source_directory);
    for (std::size_t i = 0; i < roots.include_directories.size(); ++i)
        mark(fmt::format("i{}", i), roots.include_directories[i]);
    return out;
}

// With line information a compiler sees this machine's paths. All places that such a path can have been found by, as it is without.
std::vector<dependency> without_paths(compile::include_roots const& roots, dependency const& d) {
    using root = dependency::root;
    std::vector<dependency> out;
    auto const add_if_below = [&](std::string const& folder, root from, std::size_t index) {
        auto const prefix = folder.ends_with('/') ? folder : folder + "/";
        if (!folder.empty() && d.path.starts_with(prefix))
            out.push_back({from, static_cast<std::uint16_t>(index), d.path.substr(prefix.size()), d.content});
    };
    if (d.from == root::absolute) {
        add_if_below(roots.source_directory, root::source_directory, 0);
        for (std::size_t i = 0; i < roots.include_directories.size(); ++i)
            add_if_below(roots.include_directories[i], root::include_directory, i);
        for (auto const& folder : roots.toolkit) add_if_below(folder, root::toolkit, 0);
    }
    if (out.empty()) out.push_back(d);
    return out;
}

std::vector<dependency> looks_of(compile::include_roots const& roots, unit const& u, artifact const& a) {
    auto const options = compile::normalize(u.options);
    if (!options || !options->debug) return a.dependencies;
    std::vector<dependency> out;
    for (auto const& d : a.dependencies) {
        for (auto& look : without_paths(roots, d)) out.push_back(std::move(look));
    }
    return out;
}

}  // namespace

result<unit> as_carried(engine::state& s, unit const& u, std::vector<artifact_ptr> const& made) {
    std::map<std::string, std::string> looks{{"!", {}}};
    for (auto const& a : made) {
        KILN_TRY(auto const order, s.order_for(u, a->target));
        auto const& roots = order.subject.roots;
        for (auto const& d : looks_of(roots, u, *a)) {
            auto const place = compile::place_of(d);
            auto const file = place.empty() ? std::string{} : roots.locate(d);
            if (file.empty() || compile::is_standard_header_path(file) || looks.contains(place)) continue;
            if (d.content.empty()) {
                looks.emplace("!" + place_in_vain(roots, d), std::string{});
                continue;
            }
            KILN_TRY(auto const text, base::read_file(file));
            if (!text || base::sha256_of(base::byte_span{*text}).hex() != compile::digest_of(d))
                return fail(errc::io, "{}: changed while '{}' was compiled; build again", file, u.name);
            looks.emplace(place, std::string{base::as_text(*text)});
            if (auto const copy = compile::copy_of(d); copy > 1)
                looks.emplace(fmt::format("#{} {}", copy, place), std::string{});
        }
        for (auto& mark : marks_of(roots)) looks.emplace(std::move(mark), std::string{});
    }
    auto out = u;
    out.directory.clear();
    out.include_dirs.clear();
    for (auto& [place, text] : looks) out.carried.push_back({place, std::move(text)});
    return out;
}

result<void> write_embedding(std::string const& file, embedding const& what) {
    text_file texts;
    std::string definitions;
    for (auto const& e : what.units) definitions += definition_of(what.name, e, texts);
    auto const texts_file = std::filesystem::absolute(file + ".texts").native();
    // In the source itself, so that whoever keeps objects by their sources' content keeps the right one.
    auto made_of = base::sha256_of(texts.all()).hex();
    if (!what.bundle.empty()) {
        KILN_TRY(auto const bytes, base::read_file(what.bundle));
        if (!bytes) return fail(errc::not_found, "{}: no such file", what.bundle);
        made_of += base::sha256_of(base::byte_span{*bytes}).hex();
    }
    // Another library of the program may have kernels by the same name.
    auto const symbol =
        fmt::format("kiln_{}_{}", what.name, base::sha256_of(texts_file + '\n' + made_of).hex().substr(0, 16));
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
        "// Generated by kiln build --embed: do not edit.\n"
        "#include \"{0}.hpp\"\n\n#include <kiln/embedded.hpp>\n\n#include <cstddef>\n#include <string>\n\n"
        "asm(\".pushsection .rodata,\\\"a\\\"\\n\"\n{1}    \".popsection\\n\");\n\n"
        "extern \"C\" __attribute__((visibility(\"hidden\"))) char const {5}_texts_begin[];\n\n"
        "namespace {0} __attribute__((visibility(\"hidden\"))) {{\n[[maybe_unused]] static char const made_of[] = "
        "\"{4}\";\n{2}"
        "[[maybe_unused]] static std::string text(std::size_t at, std::size_t size) {{\n"
        "    return std::string({5}_texts_begin + at, size);\n}}\n}}\n\n{3}",
        what.name, blobs, bundle, definitions, made_of, symbol);
    KILN_CHECK(replace_if_different(texts_file, texts.all()));
    return replace_if_different(file, source);
}

}  // namespace kiln::cli
