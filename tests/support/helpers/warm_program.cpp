// SPDX-License-Identifier: Apache-2.0
//
// A program with a warm-up, for tests from outside; everything is for sm_90, no GPU is needed. Run as
//
//     warm_program use NAME...     asks for small units of these names, one after the other; specialisations as spec:NAME,
//                                  a scan with an operator that captured the value N as captured:N
//     warm_program hold NAME...    the same, then waits to be killed
//     warm_program busy N          demands N units that compile for long and leaves while they do
//     warm_program forge FILE      writes a profile of a unit that can be made and of recipes that went stale in every way
//     warm_program broken          demands a unit that cannot be compiled and one that can, and works on
//     warm_program hopeless        demands what comes to nothing in every way, and prints what became of each
//
// Prints what it did; "leaving <monotonic ns> <worker pids>" just before it goes.
#include "base/clock.hpp"
#include "engine/engine_state.hpp"
#include "prims/routes.hpp"
#include "warmup/profile_file.hpp"

#include <kiln/catalogue.hpp>
#include <kiln/demand.hpp>
#include <kiln/plan.hpp>
#include <kiln/status.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

extern "C" bool kiln_profile_is_on();

namespace {

using namespace kiln;

target sm90() { return target::parse("sm_90").value(); }

unit small(std::string const& name, std::string const& body = "x[0] = 1;") {
    return {.name = name,
            .source = "extern \"C\" __global__ void " + name + "(int* x) { " + body + " }\n",
            .kernels = {name}};
}

unit slow(std::string const& name) {
    auto source = "extern \"C\" __global__ void " + name + "(float* x) {\n";
    for (int i = 0; i < 500; ++i) source += "x[" + std::to_string(i) + "] += __sinf(x[1]) * sqrtf(x[2]) / x[3];\n";
    return {.name = name, .source = source + "}\n", .kernels = {name}};
}

void say(std::string const& text) {
    std::puts(text.c_str());
    std::fflush(stdout);
}

// As a program would with kiln::exclusive_scan, which needs a device to load it on.
result<obtained> captured(engine& with, int value) {
    auto const by = op{"a + b > s ? s : a + b"}.with(value);
    auto const what = prims::scan_request(prims::scan_form::exclusive, type_of<int>(), by);
    auto found = prims::obtain(with, what, sm90(), prims::closeness::exact, prim_route::automatic, {});
    if (!found) return std::move(found).error();
    return std::move(found->got);
}

int forge(std::string const& file) {
    warmup::profile out;
    auto const add = [&](engine_detail::recipe const& r) {
        out.recipes.emplace(r.id(), r);
        out.uses.push_back(
            {.recipe = r.id(), .arch = "sm_90", .kind = "cubin", .key = {}, .from = "compiled", .ns = out.uses.size()});
    };
    auto renamed = small("renamed");
    renamed.kernels = {"as_it_was_called"};
    auto without_option = small("without_option");
    without_option.options = {"--an-option-that-went-away"};
    auto without_header = small("without_header");
    without_header.source = "#include \"gone.h\"\n" + without_header.source;
    auto newer = engine_detail::recipe_of(small("newer"));
    newer.body.front() = std::byte{200};
    auto damaged = engine_detail::recipe_of(small("damaged"));
    damaged.body.pop_back();
    add(engine_detail::recipe_of(renamed));
    add(engine_detail::recipe_of(without_option));
    add(engine_detail::recipe_of(small("first")));
    add(engine_detail::recipe_of(without_header));
    add(newer);
    add(damaged);
    add({"prims", "a_specialisation_that_went_away", {}});
    add({"a_pack_that_went_away", "thing", {}});
    add(engine_detail::recipe_of(small("last")));
    auto const written = warmup::write_profile(file, out);
    if (!written) say(written.error().message());
    return written ? 0 : 1;
}

int use(int count, char** names) {
    auto& e = engine::process();
    for (int i = 0; i < count; ++i) {
        std::string const name = names[i];
        auto const got = name.starts_with("spec:")       ? artifact_of_sync(name.substr(5), sm90())
                         : name.starts_with("captured:") ? captured(e, std::atoi(name.c_str() + 9))
                                                         : e.artifact_sync(small(name), sm90());
        if (!got) {
            say(name + ": " + got.error().message());
            return 1;
        }
        say(name + ": " + std::string{name_of(got->from)});
    }
    return 0;
}

int busy(int count) {
    auto& e = engine::process();
    std::vector<want> what;
    for (int i = 0; i < count; ++i) what.emplace_back(slow("slow" + std::to_string(i)));
    demand(std::move(what), {.targets = {sm90()}});
    auto& pool = *e.internals().pool;
    for (std::size_t working = 0; working == 0;) {
        working = 0;
        for (auto const& w : pool.workers()) working += w.busy ? 1 : 0;
        std::this_thread::yield();
    }
    auto text = "leaving " + std::to_string(base::now_ns());
    for (auto const& w : pool.workers()) text += " " + std::to_string(w.pid);
    say(text);
    return 0;
}

int broken() {
    auto const bad = small("bad", "no_such_function(x);");
    plan const p{"start", {bad, small("good")}, {.targets = {sm90()}}};
    auto const report = p.ensure_warm(std::chrono::minutes{1});
    say(report.text());
    auto const s = status();
    say("status: " + std::to_string(s.ready) + " ready, " + std::to_string(s.failed) + " failed");
    auto const good = engine::process().artifact_sync(small("good"), sm90());
    say(good ? "good works" : "good does not work");
    auto const asked = engine::process().artifact_sync(bad, sm90());
    say(asked ? "bad works" : "log: " + asked.error().log());
    return 0;
}

int hopeless() {
    auto option = small("option");
    option.options = {"--zork"};
    auto const settle = [](std::vector<want> what, demand_options how) {
        (void)plan{"settle", std::move(what), std::move(how)}.ensure_warm(std::chrono::minutes{1});
    };
    settle({"select_i23"}, {.targets = {sm90()}, .consumer = "typo"});
    settle({option}, {.targets = {sm90()}, .consumer = "typo"});
    settle({small("nowhere")}, {.consumer = "join"});
    settle({small("never_made")}, {.targets = {sm90()}, .consumer = "join"});
    demand({small("never_made")}, {.targets = {sm90()}, .how = priority::blocking, .consumer = "another"});
    settle({small("never_made")}, {.targets = {sm90()}, .consumer = "a third"});
    for (auto const& u : status().units)
        say(u.name + ";" + std::string{name_of(u.state)} + ";" + std::string{name_of(u.how)} + ";" + u.consumers + ";" +
            u.error);
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    (void)kiln_profile_is_on();
    std::string const mode = arguments[1];
    if (mode == "broken") return broken();
    if (mode == "hopeless") return hopeless();
    if (mode == "forge" && count == 3) return forge(arguments[2]);
    if (mode == "busy" && count == 3) return busy(std::atoi(arguments[2]));
    if (mode != "use" && mode != "hold") return 2;
    auto const status = use(count - 2, arguments + 2);
    if (mode == "hold") {
        say("holding");
        ::pause();
    }
    return status;
}
