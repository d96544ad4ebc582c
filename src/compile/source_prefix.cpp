// SPDX-License-Identifier: Apache-2.0
#include "compile/source_prefix.hpp"

#include "compile/carried_headers.hpp"
#include "compile/options.hpp"
#include "compile/own_names.hpp"

#include <algorithm>

namespace kiln::compile {

namespace {

// Reads a source as the first phases of translation do, as far as directives need it.
class directive_reader {
public:
    explicit directive_reader(std::string_view text) : text_{text} {}

    [[nodiscard]] std::size_t position() const noexcept { return at_; }
    [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
    [[nodiscard]] bool at_directive() const noexcept { return !at_end() && text_[at_] == '#'; }

    // Over blanks, line ends, splices and comments.
    void skip_blank() {
        while (!at_end() && (skip_comment() || skip_splice() || is_blank(text_[at_]))) {
            if (!at_end() && is_blank(text_[at_])) ++at_;
        }
    }

    // Over the rest of this line and what splices and comments make part of it.
    void skip_line() {
        while (!at_end() && text_[at_] != '\n') {
            if (!skip_comment() && !skip_splice()) ++at_;
        }
        if (!at_end()) ++at_;
    }

    // "include" of "# include <a>", from the '#'.
    [[nodiscard]] std::string_view directive_name() const {
        auto const from = text_.find_first_not_of(" \t", at_ + 1);
        if (from == text_.npos) return {};
        auto const to = text_.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", from);
        return text_.substr(from, to == text_.npos ? to : to - from);
    }

private:
    static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

    [[nodiscard]] bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

    bool skip_splice() {
        if (starts("\\\n")) return at_ += 2, true;
        if (starts("\\\r\n")) return at_ += 3, true;
        return false;
    }
    bool skip_comment() {
        if (starts("/*")) {
            auto const end = text_.find("*/", at_ + 2);
            at_ = end == text_.npos ? text_.size() : end + 2;
            return true;
        }
        if (!starts("//")) return false;
        while (!at_end() && text_[at_] != '\n') {
            if (!skip_splice()) ++at_;
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool opens_group(std::string_view directive) {
    return directive == "if" || directive == "ifdef" || directive == "ifndef";
}

}  // namespace

std::string_view leading_directives(std::string_view source) {
    directive_reader in{source};
    std::size_t end = 0;
    int depth = 0;
    bool includes = false;
    for (in.skip_blank(); !in.at_end(); in.skip_blank()) {
        bool const directive = in.at_directive();
        if (!directive && depth == 0) break;
        auto const name = directive ? in.directive_name() : std::string_view{};
        if (opens_group(name)) ++depth;
        if (name == "endif" && depth > 0) --depth;
        includes = includes || name == "include";
        in.skip_line();
        if (depth == 0) end = in.position();
    }
    return includes ? source.substr(0, end) : std::string_view{};
}

std::vector<std::string_view> included_names(std::string_view directives) {
    std::vector<std::string_view> out;
    directive_reader in{directives};
    for (in.skip_blank(); !in.at_end(); in.skip_blank()) {
        auto const from = in.position();
        bool const include = in.at_directive() && in.directive_name() == "include";
        in.skip_line();
        if (!include) continue;
        auto const line = directives.substr(from, in.position() - from);
        auto const open = line.find_first_of("<\"");
        if (open == line.npos) continue;
        auto const close = line.find(line[open] == '<' ? '>' : '"', open + 1);
        if (close != line.npos) out.push_back(line.substr(open + 1, close - open - 1));
    }
    return out;
}

std::optional<base::digest> prefix_of(job const& j) {
    auto const* const c = std::get_if<compile_job>(&j.task);
    // What is compiled around the cache is compiled as it was asked for and in no other way.
    if (c == nullptr || !c->unit.uncached_options.empty()) return std::nullopt;
    auto const directives = leading_directives(c->unit.source);
    auto const options = normalize(c->unit.options);
    if (directives.empty() || !options) return std::nullopt;
    auto const is_pre_include = [](std::string const& option) { return option.starts_with("--pre-include"); };
    if (std::ranges::any_of(options->arguments, is_pre_include)) return std::nullopt;
    // What a header knows of the source that includes it holds for that source only. Headers in files are looked at when they are read.
    auto const text_of = [](header const& h) -> std::string_view { return h.text; };
    if (may_name_its_source(directives) || std::ranges::any_of(options->arguments, may_name_its_source) ||
        std::ranges::any_of(c->unit.headers, may_name_its_source, text_of))
        return std::nullopt;

    base::key_builder key{"kiln.prefix.v1"};
    key.add("nvrtc", j.tools.nvrtc).add("arch", c->target.arch.name()).add("kind", name_of(c->target.kind));
    for (auto const& option : options->arguments) key.add("option", option);
    // The compiler is told virtual directories, so that only their number counts; debug builds are told real ones, and a name.
    if (options->debug) key.add("name", c->unit.name).add("directory", c->unit.directory);
    auto const roots = roots_of(c->unit);
    // Where there is none, nobody looked for "a.h" beside the source: what was found then says nothing of a source that lies somewhere.
    key.add("lies", roots.source_directory.empty() ? "nowhere" : "somewhere");
    for (auto const* directories : {&roots.include_directories, &options->include_dirs, &j.tools.toolkit_includes}) {
        key.add("directories", static_cast<std::uint64_t>(directories->size()));
        for (auto const& directory : *directories) key.add("include", options->debug ? directory : std::string{});
    }
    for (auto const& h : c->unit.headers) key.add("header.name", h.name).add("header.text", h.text);
    return key.add("directives", directives).finish();
}

}  // namespace kiln::compile
