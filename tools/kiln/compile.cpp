// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"
#include "base/files.hpp"
#include "compile/reproduction.hpp"
#include "engine/engine_state.hpp"
#include "engine/thread_role.hpp"
#include "keeping.hpp"
#include "misuse.hpp"
#include "named_toolkit.hpp"
#include "progress.hpp"
#include "unit_arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>

namespace kiln::cli {

namespace {

struct compile_arguments {
    unit_arguments what;
    std::string output;
    bool as_json = false;
};

struct compile_item {
    unit const* of = nullptr;
    target for_target;
    std::optional<result<obtained>> answer;
};

// Of what was compiled now: the rest of `ms` was waiting for a worker and for those before it.
double compile_ms(obtained const& got) { return got.from == provenance::compiled ? got.what->compile_ms : 0; }
double queued_ms(obtained const& got) {
    return got.from == provenance::compiled ? std::max(0.0, got.ms - got.what->compile_ms) : 0;
}

json describe(compile_item const& i) {
    if (!*i.answer)
        return {{"unit", i.of->name},
                {"target", i.for_target.arch.name()},
                {"kind", name_of(i.for_target.kind)},
                {"error", i.answer->error().message()}};
    auto const& got = **i.answer;
    json kernels = json::array();
    for (auto const& k : got.what->kernels) {
        kernels.push_back({{"name", k.name},
                           {"lowered", k.lowered},
                           {"registers", k.registers},
                           {"shared_bytes", k.shared_bytes},
                           {"local_bytes", k.local_bytes}});
    }
    return {{"unit", got.what->unit},
            {"target", i.for_target.arch.name()},
            {"kind", name_of(i.for_target.kind)},
            {"from", name_of(got.from)},
            {"ms", got.ms},
            {"queued_ms", queued_ms(got)},
            {"compile_ms", compile_ms(got)},
            {"bytes", got.what->image.size()},
            {"key", got.what->key},
            {"compiler", got.what->compiler},
            {"kernels", std::move(kernels)}};
}

result<void> save(std::string const& directory, artifact const& a) {
    KILN_CHECK(base::make_directories(directory, 0755));
    auto const file = std::filesystem::path{directory} /
                      fmt::format("{}.{}.{}", a.unit, a.target.arch.name(), name_of(a.target.kind));
    // The driver wants a text to end in a NUL, and files of text have none.
    base::byte_span image = a.image;
    while (a.target.kind == artifact_kind::ptx && !image.empty() && image.back() == std::byte{0})
        image = image.first(image.size() - 1);
    return base::replace_file(file, image, 0644);
}

void run_all(std::vector<compile_item>& items, engine& e, std::shared_ptr<progress> const& bar) {
    std::vector<pending<obtained>> waiting;
    for (auto const& i : items) {
        waiting.push_back(e.artifact(*i.of, i.for_target));
        waiting.back().then([bar, name = i.of->name, arch = i.for_target.arch.name()](result<obtained> const& got) {
            bar->step(fmt::format("{} {} {}", name, arch, got ? name_of(got->from) : "failed"));
        });
    }
    // Whoever runs this waits for all of them.
    for (auto const& i : items) {
        if (auto const asked = e.internals().order_for(*i.of, i.for_target))
            e.internals().requests->raise(engine_detail::identity_of(asked->subject), priority::blocking);
    }
    // And for every compile, whichever of them is looked at first: counted here, and by nobody else.
    engine_detail::role_scope const here{{.what = engine_detail::thread_role::kind::background}};
    for (std::size_t n = 0; n < items.size(); ++n) {
        base::stopwatch const watch;
        auto answer = waiting[n].wait_sync(std::chrono::hours{24});
        if (!answer || answer->from == provenance::compiled) e.internals().requests->count_blocked(watch.ns());
        items[n].answer = std::move(answer);
    }
}

std::string text_of(std::vector<compile_item> const& items) {
    std::vector<std::vector<std::string>> rows{{"unit", "target", "kind", "from", "queued ms", "compile ms", "size",
                                                "kernel", "registers", "shared", "local"}};
    for (auto const& i : items) {
        if (!*i.answer) continue;
        auto const& got = **i.answer;
        std::vector<std::string> row{got.what->unit,
                                     i.for_target.arch.name(),
                                     std::string{name_of(i.for_target.kind)},
                                     std::string{name_of(got.from)},
                                     fmt::format("{:.1f}", queued_ms(got)),
                                     fmt::format("{:.1f}", compile_ms(got)),
                                     bytes_text(got.what->image.size())};
        if (got.what->kernels.empty()) rows.push_back(row);
        for (auto const& k : got.what->kernels) {
            auto number = [](int n) { return n < 0 ? std::string{"-"} : std::to_string(n); };
            row.insert(row.end(), {k.name, number(k.registers), number(k.shared_bytes), number(k.local_bytes)});
            rows.push_back(row);
            row.assign(7, "");
        }
    }
    return rows.size() > 1 ? table(rows) : std::string{};
}

bool is_reproduction(std::string const& file) { return file.ends_with(compile::reproduction_suffix); }

// Runs the job of a reproduction file again, around every cache: with the compiler it names if that is still there, else
// with this machine's.
result<artifact> run_again(std::string const& file, engine& e) {
    KILN_TRY(auto work, compile::read_reproduction(file));
    auto& s = e.internals();
    std::error_code ignored;
    if (!std::filesystem::exists(work.tools.nvrtc, ignored)) work.tools.nvrtc = s.tools().nvrtc;
    if (!std::filesystem::exists(work.tools.nvjitlink, ignored)) work.tools.nvjitlink = s.tools().nvjitlink;
    std::promise<result<artifact>> answer;
    s.pool->submit(std::move(work), priority::blocking,
                   [&](result<artifact> made) { answer.set_value(std::move(made)); });
    return answer.get_future().get();
}

int run_reproductions(compile_arguments const& a) {
    engine e{a.what.engine()};
    int status = ok;
    json all = json::array();
    for (auto const& file : a.what.files) {
        auto made = run_again(file, e);
        if (made && !a.output.empty()) {
            if (auto saved = save(a.output, *made); !saved) made = std::move(saved).error();
        }
        if (!made) {
            complain(made.error());
            status = failed;
            continue;
        }
        if (!made->log.empty()) std::fputs(made->log.c_str(), stderr);
        all.push_back({{"file", file},
                       {"unit", made->unit},
                       {"target", made->target.arch.name()},
                       {"kind", name_of(made->target.kind)},
                       {"from", "compiled"},
                       {"ms", made->compile_ms},
                       {"bytes", made->image.size()},
                       {"compiler", made->compiler}});
        if (!a.as_json)
            print(fmt::format("{}: '{}' for {} compiles here: {}, {:.1f} ms, {}\n", file, made->unit,
                              made->target.arch.name(), bytes_text(made->image.size()), made->compile_ms,
                              made->compiler));
    }
    if (a.as_json) print_json(all);
    return status;
}

int run(compile_arguments const& a) {
    auto const reproductions = std::ranges::count_if(a.what.files, is_reproduction);
    if (reproductions > 0 && static_cast<std::size_t>(reproductions) != a.what.files.size()) {
        complain("reproduction files and sources are compiled apart");
        return misused;
    }
    if (reproductions > 0) return run_reproductions(a);
    auto read = a.what.units();
    if (!read && a.as_json) print_json(json::array({{{"error", read.error().message()}}}));
    auto const units = std::move(read).value();
    auto const targets = meant(a.what.targets());
    if (!a.output.empty()) {
        std::set<std::string> names;
        for (auto const& u : units) {
            if (names.insert(u.name).second) continue;
            complain(fmt::format("two files make '{}': their images would have one name in {}; compile them apart",
                                 u.name, a.output));
            return misused;
        }
    }
    std::vector<compile_item> items;
    for (auto const& u : units) {
        for (auto const& t : targets) items.push_back({&u, t, {}});
    }
    engine e{a.what.engine()};
    insist_on_toolkit(e);
    {
        auto const bar = std::make_shared<progress>(
            "compile", items.size(), items.size() < 2 ? progress::style::silent : progress::style::automatic);
        run_all(items, e, bar);
    }
    int status = ok;
    json all = json::array();
    keeping made;
    for (auto const& i : items) {
        auto const& answer = *i.answer;
        all.push_back(describe(i));
        if (!answer) {
            complain(answer.error());
            status = failed;
            continue;
        }
        if (!answer->what->log.empty()) std::fputs(answer->what->log.c_str(), stderr);
        made.expect(e, *i.of, *answer);
        if (a.output.empty()) continue;
        if (auto saved = save(a.output, *answer->what); !saved) {
            complain(saved.error());
            status = failed;
        }
    }
    if (a.as_json) print_json(all);
    else print(text_of(items));
    made.complain_of_lost(e, keeping::chosen::silent);
    return status;
}

}  // namespace

void add_compile(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<compile_arguments>();
    auto* const app = add_command(root, "compile");
    arguments->what.add_to(*app);
    app->add_option("--uncached-option", arguments->what.uncached_options, "an NVRTC option no key can have");
    app->add_option("-o,--output", arguments->output, "directory for the images");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
