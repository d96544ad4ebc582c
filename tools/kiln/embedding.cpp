// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "base/files.hpp"
#include "compile/standard_headers.hpp"

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

std::string definition_of(embedded_unit const& e, text_file& texts) {
    auto const& u = e.what;
    std::string out = fmt::format("kiln::unit const& {}() {{\n    static kiln::unit const u{{\n        .name = {},\n",
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

}  // namespace

result<std::vector<carried_header>> headers_read(engine::state& s, unit const& u,
                                                 std::vector<artifact_ptr> const& made) {
    std::map<std::string, std::string> found;
    for (auto const& a : made) {
        KILN_TRY(auto const order, s.order_for(u, a->target));
        for (auto const& d : a->dependencies) {
            auto place = d.content.empty() ? std::string{} : compile::place_of(d);
            auto const file = place.empty() ? std::string{} : order.subject.roots.locate(d);
            if (file.empty() || compile::is_standard_header_path(file) || found.contains(place)) continue;
            KILN_TRY(auto const text, base::read_file(file));
            if (!text || base::sha256_of(base::byte_span{*text}).hex() != d.content)
                return fail(errc::io, "{}: changed while '{}' was compiled; build again", file, u.name);
            found.emplace(std::move(place), std::string{base::as_text(*text)});
        }
    }
    std::vector<carried_header> out;
    for (auto& [place, text] : found) out.push_back({place, std::move(text)});
    return out;
}

unit as_carried(unit const& u, std::vector<carried_header> headers) {
    auto out = u;
    out.directory.clear();
    out.include_dirs.clear();
    out.carried = std::move(headers);
    return out;
}

result<void> write_embedding(std::string const& file, embedding const& what) {
    text_file texts;
    std::string definitions;
    for (auto const& e : what.units) definitions += definition_of(e, texts);
    auto const texts_file = std::filesystem::absolute(file + ".texts").native();
    auto blobs = blob(fmt::format("kiln_{}_texts", what.name), texts_file);
    std::string bundle;
    // In the source itself, so that whoever keeps objects by their sources' content keeps the right one.
    auto made_of = base::sha256_of(texts.all()).hex();
    if (!what.bundle.empty()) {
        KILN_TRY(auto const bytes, base::read_file(what.bundle));
        if (!bytes) return fail(errc::not_found, "{}: no such file", what.bundle);
        made_of += base::sha256_of(base::byte_span{*bytes}).hex();
        blobs += blob(fmt::format("kiln_{}_bundle", what.name), std::filesystem::absolute(what.bundle).native());
        bundle = fmt::format(
            "extern \"C\" __attribute__((visibility(\"hidden\"))) std::byte const kiln_{0}_bundle_begin[], "
            "kiln_{0}_bundle_end[];\n"
            "static kiln::embedded_bundle const registered{{\"{0}\", {{kiln_{0}_bundle_begin, "
            "kiln_{0}_bundle_end}}}};\n",
            what.name);
    }
    auto const source = fmt::format(
        "// Generated by kiln build --embed: do not edit.\n"
        "#include \"{0}.hpp\"\n\n#include <kiln/embedded.hpp>\n\n#include <cstddef>\n#include <string>\n\n"
        "asm(\".pushsection .rodata,\\\"a\\\"\\n\"\n{1}    \".popsection\\n\");\n\n"
        "extern \"C\" __attribute__((visibility(\"hidden\"))) char const kiln_{0}_texts_begin[];\n\n"
        "namespace {0} __attribute__((visibility(\"hidden\"))) {{\n[[maybe_unused]] static char const made_of[] = "
        "\"{4}\";\n{2}"
        "[[maybe_unused]] static std::string text(std::size_t at, std::size_t size) {{\n"
        "    return std::string(kiln_{0}_texts_begin + at, size);\n}}\n\n{3}}}\n",
        what.name, blobs, bundle, definitions, made_of);
    KILN_CHECK(replace_if_different(texts_file, texts.all()));
    return replace_if_different(file, source);
}

}  // namespace kiln::cli
