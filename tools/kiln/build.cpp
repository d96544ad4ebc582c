// SPDX-License-Identifier: Apache-2.0
#include "compile/standard_headers.hpp"
#include "depfile.hpp"
#include "embedding.hpp"
#include "engine/engine_state.hpp"
#include "engine/pack_verbs.hpp"
#include "keeping.hpp"
#include "misuse.hpp"
#include "named_toolkit.hpp"
#include "progress.hpp"
#include "unit_arguments.hpp"
#include "versions.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace kiln::cli {

namespace {

struct build_arguments {
    unit_arguments what;
    std::string output;
    std::string sign;
    std::string title;
    std::string depfile;
    std::vector<std::string> packs;
    std::string embed;
    std::string embed_name;
    std::vector<std::string> functions;
    bool images_only = false;
    bool compress = false;
    bool as_json = false;

    // What make and ninja know the work by.
    [[nodiscard]] std::string const& product() const { return embed.empty() ? output : embed; }
    [[nodiscard]] std::string space() const {
        return embed_name.empty() ? std::filesystem::path{embed}.stem().native() : embed_name;
    }
    // What the n-th file becomes.
    [[nodiscard]] std::string const& function_of(std::size_t n, unit const& u) const {
        return n < functions.size() ? functions[n] : u.name;
    }
    [[nodiscard]] std::vector<std::string> outputs() const {
        std::vector<std::string> out{output, depfile};
        if (!embed.empty()) out.insert(out.end(), {embed, embed + ".texts", header_beside(embed, space())});
        std::erase(out, "");
        return out;
    }
    [[nodiscard]] std::vector<std::string> inputs() const {
        auto out = what.files;
        if (!sign.empty()) out.push_back(sign);
        return out;
    }
};

using engine_detail::made_artifact;
using engine_detail::recipe;

// A file or a unit of a pack, or what a pack makes by a recipe; for one target.
struct item {
    unit const* of = nullptr;
    recipe const* by = nullptr;
    target for_target;
    std::string from = {};  // the source, for people
    std::optional<result<made_artifact>> answer = {};
    std::string images_of = {};  // what the bundle calls it where the text does not travel

    [[nodiscard]] std::string const& name() const { return of != nullptr ? of->name : by->name; }
};

result<made_artifact> make(engine& e, item const& i) {
    wait_options const forever{.deadline = std::chrono::hours{24}};
    if (i.of != nullptr) return engine_detail::make_unit(e, *i.of, i.for_target, forever);
    return engine_detail::find_pack(i.by->kind)->make(e, *i.by, i.for_target, forever);
}

// Some take several steps (template, operator, link), so that all are driven by as many threads as there are workers.
void make_all(engine& e, std::vector<item>& items) {
    auto const bar = std::make_shared<progress>("build", items.size());
    std::atomic<std::size_t> next{0};
    auto const drive = [&] {
        for (auto n = next++; n < items.size(); n = next++) {
            auto& i = items[n];
            i.answer = make(e, i);
            bar->step(fmt::format("{} {} {}", i.name(), i.for_target.arch.name(),
                                  *i.answer ? name_of((*i.answer)->got.from) : "failed"));
        }
    };
    std::vector<std::jthread> threads;
    try {
        for (int n = 1; n < e.internals().pool->capacity(); ++n) threads.emplace_back(drive);
    } catch (std::system_error const&) {  // there are no more: those that there are do all of it
    }
    drive();
}

json describe(item const& i) {
    json out{{"unit", i.name()}, {"target", i.for_target.arch.name()}, {"kind", name_of(i.for_target.kind)}};
    auto const& answer = *i.answer;
    if (answer)
        out.update({{"from", name_of(answer->got.from)},
                    {"ms", answer->got.ms},
                    {"bytes", answer->got.what->image.size()},
                    {"key", answer->got.what->key}});
    else out["error"] = answer.error().message();
    return out;
}

made_artifact shipped_as(item const& i) {
    auto out = **i.answer;
    if (i.images_of.empty()) return out;
    unit const images{.name = i.name(), .source = {}, .images_of = i.images_of};
    auto const id = compile::identify(images, out.got.what->target, out.got.what->toolchain).value();
    out.at.family = id.family;
    out.at.request = id.request;
    return out;
}

result<void> write_bundle(build_arguments const& a, engine::state& s, std::vector<item> const& items) {
    auto const form = a.compress ? store::bundle_form::packed : store::bundle_form::plain;
    store::bundle_writer writer;
    writer.set("title", a.title.empty() ? a.output : a.title);
    writer.set("producer", s.producer());
    unit_versions versions;
    for (auto const& i : items) {
        if (!*i.answer) continue;
        auto const& made = **i.answer;
        // What a program carries knows its headers.
        if (a.embed.empty())
            KILN_CHECK(versions.add(made.at.family,
                                    {i.name(), i.for_target.arch.name(), i.from, made.got.what->dependencies}));
        KILN_CHECK(writer.add(*engine_detail::entry_of(shipped_as(i), s.producer())));
    }
    if (a.sign.empty()) return writer.write(a.output, nullptr, form);
    KILN_TRY(auto const key, store::private_key::load(a.sign));
    return writer.write(a.output, &key, form);
}

// The sources, and every file that was read or looked for in vain.
result<std::set<std::string>> looks_of(build_arguments const& a, engine::state& s, std::vector<item> const& items) {
    std::set<std::string> out{a.what.files.begin(), a.what.files.end()};
    for (auto const& i : items) {
        if (i.of == nullptr || !*i.answer) continue;
        KILN_TRY(auto const order, s.order_for(*i.of, i.for_target));
        for (auto const& d : (*i.answer)->got.what->dependencies) {
            auto const file = order.subject.roots.locate(d);
            if (!file.empty() && !compile::is_standard_header_path(file)) out.insert(file);
        }
    }
    return out;
}

result<void> write_depfile(build_arguments const& a, std::set<std::string> const& looks) {
    depfile out;
    for (auto const& file : looks) out.add_look(file);
    for (auto const& output : a.outputs()) out.leave_out(output);
    return base::replace_file(a.depfile, base::as_bytes(out.rule_for(a.product())), 0644);
}

// From units as they lie here to units as a program carries them. What was made of the former is what was made of the latter; only
// line information, which has paths in it, is made anew.
std::vector<unit> carried_units(engine& e, std::vector<unit> const& units, std::vector<item>& items) {
    std::vector<unit> out;
    for (auto const& u : units) {
        std::vector<artifact_ptr> made;
        for (auto const& i : items) {
            if (i.of == &u) made.push_back((*i.answer)->got.what);
        }
        out.push_back(as_carried(e.internals(), u, made).value());
    }
    return out;
}

unit without_text(unit const& u, std::vector<item>& items) {
    std::vector<base::digest> keys;
    for (auto const& i : items) {
        if (i.of == &u) keys.push_back((*i.answer)->at.key);
    }
    auto const images = compile::family_of_images(keys).hex();
    for (auto& i : items) {
        if (i.of == &u) i.images_of = images;
    }
    return {.name = u.name, .source = {}, .images_of = images};
}

// Returns the embedding's units; the bundle is made of `items`, which are theirs afterwards.
std::vector<embedded_unit> embed_units(build_arguments const& a, engine& e, std::vector<unit>& units,
                                       std::vector<item>& items) {
    auto carried = carried_units(e, units, items);
    for (auto& i : items) {
        i.of = &carried[static_cast<std::size_t>(i.of - units.data())];
        i.answer = make(e, i);
        if (!*i.answer) throw error{i.answer->error()};
    }
    std::vector<embedded_unit> out;
    for (std::size_t n = 0; n < carried.size(); ++n) {
        auto shipped = a.images_only ? without_text(carried[n], items) : carried[n];
        out.push_back({a.function_of(n, carried[n]), std::move(shipped)});
    }
    units.swap(carried);  // the items point at what they were made of
    return out;
}

// Empty: fine.
std::string misuse_of(build_arguments const& a) {
    if (a.what.files.empty() && a.packs.empty()) return "nothing to build: name files, or packs with --pack";
    if (a.output.empty() && a.embed.empty()) return "nothing to write: -o, --output or --embed";
    if (!a.embed.empty() && !a.packs.empty()) return "--embed is for files; packs are in the library";
    if (a.images_only && (a.embed.empty() || a.output.empty()))
        return "--images-only needs --embed, and a bundle (-o) to have the images in";
    if (!a.functions.empty() && a.functions.size() != a.what.files.size())
        return fmt::format("--as names one function for each file, and there are {} and {} ({})",
                           count_of(a.functions.size(), "name"), count_of(a.what.files.size(), "file"),
                           fmt::join(a.what.files, ", "));
    if (a.output.empty() && !(a.sign.empty() && a.title.empty() && !a.compress))
        return "--sign, --title and --compress are about the bundle, and there is none: add -o FILE";
    if (a.embed.empty() && !(a.embed_name.empty() && a.functions.empty()))
        return "--embed-name and --as are about C++ source, and there is none: add --embed FILE";
    return {};
}

// As in KilnAddKernels.cmake: keywords, what compilers and the C library have macros of, and what the generated source calls its own.
constexpr std::string_view taken_names =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "compl concept const "
    "consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double "
    "dynamic_cast else "
    "enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr "
    "operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static "
    "static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using "
    "virtual void "
    "volatile wchar_t while xor xor_eq text registered kiln std linux unix errno assert stdin stdout stderr major "
    "minor makedev "
    "offsetof setjmp NULL EOF NAN INFINITY ";

bool may_name_a_function(std::string_view text) {
    auto const is_letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !text.empty() && is_letter(text.front()) &&
           taken_names.find(fmt::format(" {} ", text)) == std::string_view::npos &&
           std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Of the functions that files become. Empty: fine.
std::string misnamed(build_arguments const& a, std::vector<unit> const& units) {
    if (!may_name_a_function(a.space()))
        return fmt::format("no C++ namespace can be called '{}': name one with --embed-name", a.space());
    std::map<std::string, std::string> taken;  // by function: the file
    for (std::size_t n = 0; n < units.size(); ++n) {
        auto const& function = a.function_of(n, units[n]);
        auto const& file = a.what.files[n];
        if (!may_name_a_function(function))
            return fmt::format(
                "{} would be the function '{}', and no C++ function can be called so: name one for "
                "each file with --as",
                file, function);
        if (auto const [at, is_new] = taken.emplace(function, file); !is_new)
            return fmt::format("{} and {} would both be the function {}(): name one for each file with --as",
                               at->second, file, function);
    }
    return {};
}

int run(build_arguments const& a) {
    if (auto const wrong = misuse_of(a); !wrong.empty()) {
        complain(wrong);
        return misused;
    }
    for (auto const& output : a.outputs()) check_output(output).value();
    check_apart(a.outputs(), a.inputs()).value();
    if (!a.embed.empty()) check_header(header_beside(a.embed, a.space())).value();
    auto units = a.what.units().value();
    if (auto const wrong = a.embed.empty() ? std::string{} : misnamed(a, units); !wrong.empty()) {
        complain(wrong);
        return misused;
    }
    std::vector<recipe> recipes;
    for (auto const& name : a.packs) {
        auto const& pack = *meant(engine_detail::pack_named(name));
        units.insert(units.end(), pack.units().begin(), pack.units().end());
        if (!pack.units().empty()) continue;
        for (auto& r : pack.recipes()) recipes.push_back(std::move(r));
    }
    auto const targets = meant(a.what.targets());
    if (a.what.archs.empty() && !arch_of_this_machine().found)
        complain(fmt::format("no --arch, and no GPU here: for {}", targets.front().arch.name()));
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();  // before the work, not after it
    std::vector<item> items;
    for (auto const& t : targets) {
        for (std::size_t n = 0; n < units.size(); ++n)
            items.push_back(
                {.of = &units[n], .for_target = t, .from = n < a.what.files.size() ? a.what.files[n] : "a pack"});
        for (auto const& r : recipes) items.push_back({.by = &r, .for_target = t});
    }
    engine e{a.what.engine()};
    insist_on_toolkit(e);
    make_all(e, items);
    std::size_t bad = 0;
    for (auto const& i : items) {
        if (*i.answer) continue;
        ++bad;
        complain(i.answer->error());
    }
    auto const looks = looks_of(a, e.internals(), items).value();
    check_apart(a.outputs(), {looks.begin(), looks.end()}).value();
    if (!a.depfile.empty()) write_depfile(a, looks).value();
    // A bundle with what did succeed is still of use; the exit status and the report say that it is not whole. A program is not.
    std::vector<embedded_unit> embedded;
    if (!a.embed.empty() && bad == 0) embedded = embed_units(a, e, units, items);
    bool const writes_bundle = !a.output.empty() && bad < items.size() && (a.embed.empty() || bad == 0);
    if (writes_bundle) write_bundle(a, e.internals(), items).value();
    if (!embedded.empty()) write_embedding(a.embed, {a.space(), a.output, std::move(embedded)}).value();
    keeping made;
    for (auto const& i : items) {
        if (*i.answer && (*i.answer)->got.from == provenance::compiled)
            made.expect((*i.answer)->at, *(*i.answer)->got.what);
    }
    made.complain_of_lost(e, keeping::chosen::silent);
    if (a.as_json) {
        json list = json::array();
        for (auto const& i : items) list.push_back(describe(i));
        print_json(json{{"bundle", writes_bundle ? json(a.output) : json()},
                        {"artifacts", items.size() - bad},
                        {"failed", bad},
                        {"items", std::move(list)}});
    } else {
        bool const is_written = writes_bundle || (!a.embed.empty() && bad == 0);
        print(fmt::format("{}: {} of {} ({}, {}){}\n", is_written ? a.product() : "nothing written", items.size() - bad,
                          count_of(items.size(), "artifact"),
                          count_of(units.size() + recipes.size(), "unit or spec", "units and specs"),
                          count_of(targets.size(), "target"), a.sign.empty() ? "" : ", signed"));
    }
    return bad == 0 ? ok : failed;
}

}  // namespace

void add_build(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<build_arguments>();
    auto* const app = add_command(root, "build");
    arguments->what.add_to(*app, unit_arguments::files_are::optional);
    app->add_option("--pack", arguments->packs, "packs");
    app->add_option("-o,--output", arguments->output, "bundle to write");
    app->add_option("--embed", arguments->embed, "C++ source to write");
    app->add_option("--embed-name", arguments->embed_name, "namespace and header");
    app->add_option("--as", arguments->functions, "functions")->delimiter(',');
    app->add_flag("--images-only", arguments->images_only, "without sources");
    app->add_flag("--compress", arguments->compress, "pack the artifacts");
    app->add_option("--sign", arguments->sign, "private key");
    app->add_option("--title", arguments->title, "what the bundle is called");
    app->add_option("--depfile", arguments->depfile, "rule for make and ninja to write");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
