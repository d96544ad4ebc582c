// SPDX-License-Identifier: Apache-2.0
#include "compile/keys.hpp"

#include "compile/carried_headers.hpp"

#include <algorithm>
#include <set>

namespace kiln::compile {

namespace {

using base::key_builder;

digest request_of(digest const& family, kiln::target const& t, std::string_view toolchain) {
    return key_builder{"kiln.request.v1"}
        .add("family", family)
        .add("arch", t.arch.name())
        .add("kind", name_of(t.kind))
        .add("toolchain", toolchain)
        .finish();
}

void add_sorted(key_builder& key, std::string_view label, std::vector<std::string> values) {
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (auto const& value : values) key.add(label, value);
}

// Line splices may hide a directive from a plain search.
std::string without_splices(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            auto const next = i + 1 < text.size() && text[i + 1] == '\r' ? i + 2 : i + 1;
            if (next < text.size() && text[next] == '\n') {
                i = next;
                continue;
            }
        }
        out += text[i];
    }
    return out;
}

// Is the word "include" at `at` a plain directive for a header that is in memory?
bool is_answered(std::string_view text, std::size_t at, std::set<std::string_view> const& in_memory) {
    auto before = at;
    while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '\t')) --before;
    if (before == 0 || text[before - 1] != '#') return false;
    auto const open = text.find_first_not_of(" \t", at + std::string_view{"include"}.size());
    if (open == text.npos || (text[open] != '<' && text[open] != '"')) return false;
    auto const close = text.find(text[open] == '<' ? '>' : '"', open + 1);
    return close != text.npos && in_memory.contains(text.substr(open + 1, close - open - 1));
}

bool reads_no_file(std::string_view raw, std::set<std::string_view> const& in_memory) {
    auto const text = without_splices(raw);
    // "import" and "embed" may come to mean a file; trigraphs and digraphs can spell '#', and a trigraph the splice that hides a
    // directive.
    if (text.find("?\?/") != text.npos) return false;
    if (text.find("import") != text.npos || text.find("embed") != text.npos) return false;
    // "__has_include", perhaps pasted together, is a look that needs no directive.
    if (text.find("__has_") != text.npos) return false;
    for (auto at = text.find("include"); at != text.npos; at = text.find("include", at + 1)) {
        if (!is_answered(text, at, in_memory)) return false;
    }
    return true;
}

}  // namespace

namespace {

// What is found in directories is told header by header. In one more of them, nobody has looked yet.
struct directories {
    std::string beside;  // "s" where the source has one
    std::string count;
};
directories directories_of(kiln::unit const& u, normalized_options const& options) {
    bool const is_carried = !u.carried.empty();
    auto const count = count_directories(u) + (is_carried ? 0 : options.include_dirs.size());
    return {is_carried || !u.directory.empty() ? "s" : "", std::to_string(count)};
}

digest family_of(kiln::unit const& u, normalized_options const& options, bool self_contained) {
    key_builder key{"kiln.family.v1"};
    key.add("name", u.name).add("source", u.source);
    add_sorted(key, "kernel", u.kernels);
    add_sorted(key, "export", u.exports);
    for (auto const& option : options.keyed) key.add("option", option);
    auto headers = u.headers;
    std::ranges::sort(headers, {}, &header::name);
    for (auto const& h : headers) key.add("header.name", h.name).add("header.text", h.text);
    if (options.debug) {
        // Line information holds paths, so here, and only here, they are part of the result.
        key.add("directory", u.directory);
        for (auto const& dir : u.include_dirs) key.add("include", dir);
        for (auto const& dir : options.include_dirs) key.add("include", dir);
    }
    if (!self_contained) {
        auto const searched = directories_of(u, options);
        key.add("beside", searched.beside).add("directories", searched.count);
    }
    return key.finish();
}

}  // namespace

std::vector<input_field> describe_inputs(kiln::unit const& u, normalized_options const& options) {
    auto joined = [](std::vector<std::string> texts, bool sorted) {
        if (sorted) std::ranges::sort(texts);
        std::string out;
        for (auto const& t : texts) out += (out.empty() ? "" : " ") + t;
        return out;
    };
    std::vector<input_field> out{{"name", u.name},
                                 {"source", base::sha256_of(u.source).hex()},
                                 {"kernels", joined(u.kernels, true)},
                                 {"exports", joined(u.exports, true)},
                                 {"options", joined(options.keyed, false)}};
    auto headers = u.headers;
    std::ranges::sort(headers, {}, &header::name);
    for (auto const& h : headers) out.push_back({"header " + h.name, base::sha256_of(h.text).hex()});
    if (options.debug) out.push_back({"directory", u.directory});
    if (!is_self_contained(u, options)) {
        auto const searched = directories_of(u, options);
        out.push_back({"directories", searched.beside + searched.count});
    }
    return out;
}

bool is_self_contained(kiln::unit const& u, normalized_options const& options) {
    if (std::ranges::any_of(options.keyed, [](auto const& o) { return o.starts_with("--pre-include"); })) return false;
    // A macro's value can be an include's operand, but the directive itself must stand in the text; or the whole of a look.
    std::set<std::string_view> in_memory;
    if (!std::ranges::all_of(options.keyed, [&](auto const& o) { return reads_no_file(o, in_memory); })) return false;
    for (auto const& h : u.headers) in_memory.insert(h.name);
    return reads_no_file(u.source, in_memory) &&
           std::ranges::all_of(u.headers, [&](header const& h) { return reads_no_file(h.text, in_memory); });
}

namespace {

// Which of the two an #include means is the compiler's secret.
result<void> check_names_of_headers(kiln::unit const& u) {
    std::set<std::string_view> seen;
    for (auto const& h : u.headers) {
        if (!seen.insert(h.name).second)
            return fail(errc::invalid_argument, "unit '{}': it has two headers named '{}'; keep one", u.name, h.name);
    }
    return {};
}

// NVRTC is given texts that end at the first NUL: what follows would be hashed and not compiled.
result<void> check_texts(kiln::unit const& u) {
    KILN_CHECK(check_names_of_headers(u));
    auto const has_nul = [](std::string const& text) { return text.find('\0') != text.npos; };
    if (has_nul(u.source))
        return fail(errc::invalid_argument, "unit '{}': its source has a NUL character in line {}", u.name,
                    1 + std::ranges::count(u.source.substr(0, u.source.find('\0')), '\n'));
    for (auto const& h : u.headers) {
        if (has_nul(h.text) || has_nul(h.name))
            return fail(errc::invalid_argument, "unit '{}': its header '{}' has a NUL character", u.name, h.name);
    }
    for (auto const& h : u.carried) {
        if (has_nul(h.text) || has_nul(h.place))
            return fail(errc::invalid_argument, "unit '{}': its header '{}' has a NUL character", u.name, h.place);
    }
    for (auto const* list : {&u.options, &u.kernels, &u.exports, &u.include_dirs, &u.uncached_options}) {
        if (std::ranges::any_of(*list, has_nul))
            return fail(errc::invalid_argument, "unit '{}': a NUL character in an option, a name or a path", u.name);
    }
    return {};
}

}  // namespace

result<identity> identify(kiln::unit const& u, kiln::target const& t, std::string_view toolchain) {
    KILN_CHECK(check_texts(u));
    KILN_TRY(auto const options, normalize(u.options));
    identity out;
    out.self_contained = is_self_contained(u, options);
    out.family = family_of(u, options, out.self_contained);
    if (!u.images_of.empty()) {
        auto const known = digest::from_hex(u.images_of);
        if (!known)
            return fail(errc::invalid_argument, "unit '{}': images_of is '{}', not 64 hexadecimal digits", u.name,
                        u.images_of);
        bool const is_plain = u.source.empty() && u.options.empty() && u.kernels.empty() && u.exports.empty() &&
                              u.headers.empty() && u.include_dirs.empty() && u.carried.empty();
        if (!is_plain)
            return fail(
                errc::invalid_argument,
                "unit '{}' was not shipped so: it is its images (IMAGES_ONLY), and they are what they were made "
                "from; a source, options, names or headers of one's own need a unit with its text",
                u.name);
        out.family = *known;
        out.self_contained = false;
    }
    out.request = request_of(out.family, t, toolchain);
    return out;
}

digest family_of_images(std::span<digest const> keys) {
    std::vector<digest> sorted{keys.begin(), keys.end()};
    std::ranges::sort(sorted);
    key_builder key{"kiln.images.v1"};
    for (auto const& one : sorted) key.add("key", one);
    return key.finish();
}

identity made_by(identity of, kiln::target const& t, std::string_view toolchain) {
    of.request = request_of(of.family, t, toolchain);
    return of;
}

identity with_uncached(identity of, std::span<std::string const> options) {
    for (auto const& option : options) {
        of.family = key_builder{"kiln.uncached.v1"}.add("of", of.family).add("option", option).finish();
        of.request = key_builder{"kiln.uncached.v1"}.add("of", of.request).add("option", option).finish();
    }
    return of;
}

identity identify(link_job const& j, std::string_view toolchain) {
    key_builder key{"kiln.link.v1"};
    key.add("name", j.name);
    for (auto const& in : j.inputs) {
        key.add("input.name", in.name)
            .add("input.kind", name_of(in.kind))
            .add("input.image", base::sha256_of(in.image));
    }
    add_sorted(key, "kernel", j.kernels);
    add_sorted(key, "export", j.exports);
    for (auto const& option : j.options) key.add("option", option);
    identity out;
    out.family = key.finish();
    out.request = request_of(out.family, j.target, toolchain);
    out.self_contained = true;
    return out;
}

digest seal(digest const& request, std::span<dependency const> dependencies) {
    // Only what was read counts: a probe that found nothing guards the lookup but does not change the bytes.
    std::vector<std::pair<std::string, std::string>> read;
    for (auto const& d : dependencies) {
        if (d.content.empty()) continue;
        read.emplace_back(fmt::format("{}:{}:{}", static_cast<int>(d.from), d.index, d.path), d.content);
    }
    std::ranges::sort(read);
    key_builder key{"kiln.artifact.v1"};
    key.add("request", request);
    for (auto const& [where, content] : read) key.add("path", where).add("content", content);
    return key.finish();
}

}  // namespace kiln::compile
