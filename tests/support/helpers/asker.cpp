// SPDX-License-Identifier: Apache-2.0
//
// A program that asks for what it is told, for tests from outside; needs no GPU. Run as
//
//     asker PLAN      a JSON file: {"units": [...], "steps": [...]}
//
// A unit has the fields of kiln::unit, and "arch" and "kind". Steps, in order:
//
//     ["ask", [0, 1]]          these units at once; one line of JSON for each: unit, from, key and image (both digests), or error
//     ["start", [0]]           the same without waiting for the answers, which are not shown
//     ["write", FILE, TEXT]    a file, made or changed
//     ["remove", FILE]         a file, a link or a directory with all that is in it
//     ["directory", PATH]  ["link", PATH, TARGET]  ["cd", PATH]
//     ["meanwhile", MICROSECONDS]  the program does something else for so long
//     ["fork", STEPS]          a child takes these, at most 20 s long; then one line of JSON: what it ended by
#include "base/digest.hpp"

#include <kiln/engine.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern "C" bool kiln_profile_is_on();  // brings in what records

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

kiln::unit unit_of(json const& j) {
    kiln::unit u{.name = j.at("name"), .source = j.at("source")};
    u.kernels = j.value("kernels", std::vector<std::string>{});
    u.options = j.value("options", std::vector<std::string>{});
    u.include_dirs = j.value("include_dirs", std::vector<std::string>{});
    u.directory = j.value("directory", std::string{});
    u.exports = j.value("exports", std::vector<std::string>{});
    for (auto const& h : j.value("headers", json::array())) u.headers.push_back({h.at(0), h.at(1)});
    return u;
}

kiln::target target_of(json const& j) {
    auto const kind = j.value("kind", "cubin");
    auto const which = kind == "ptx" ? kiln::artifact_kind::ptx : kiln::artifact_kind::cubin;
    return kiln::target::parse(j.value("arch", "sm_90"), which).value();
}

// Everything a program can see of an artifact.
std::string digest_of(kiln::artifact const& a) {
    kiln::base::key_builder all{"asker"};
    all.add("image", kiln::base::sha256_of(kiln::base::byte_span{a.image}));
    std::map<std::string, std::string> kernels;
    for (auto const& k : a.kernels) kernels[k.name] = k.lowered;
    for (auto const& [name, lowered] : kernels) all.add("kernel", name).add("lowered", lowered);
    for (auto const& c : a.constants) all.add("constant", c.name);
    return all.finish().hex();
}

std::vector<kiln::pending<kiln::obtained>> start(kiln::engine& with, json const& units, json const& which) {
    std::vector<kiln::pending<kiln::obtained>> asked;
    for (std::size_t const i : which) asked.push_back(with.artifact(unit_of(units.at(i)), target_of(units.at(i))));
    return asked;
}

void ask(kiln::engine& with, json const& units, json const& which) {
    auto const asked = start(with, units, which);
    for (std::size_t n = 0; n < asked.size(); ++n) {
        auto const got = asked[n].wait_sync();
        json line{{"unit", which[n]}};
        if (got) {
            line["from"] = kiln::name_of(got->from);
            line["key"] = got->what->key;
            line["image"] = digest_of(*got->what);
        } else line["error"] = got.error().message();
        std::puts(line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    }
}

void change(json const& step) {
    std::string const what = step.at(0);
    fs::path const path{step.at(1).get<std::string>()};
    if (what == "write") {
        fs::create_directories(path.parent_path());
        std::ofstream{path} << step.at(2).get<std::string>();
    } else if (what == "remove") fs::remove_all(path);
    else if (what == "directory") fs::create_directories(path);
    else if (what == "link") fs::create_symlink(step.at(2).get<std::string>(), path);
    else if (what == "cd") fs::current_path(path);
    else throw std::runtime_error{"no such step: " + what};
}

void take(kiln::engine& e, json const& units, json const& steps);

void in_child(kiln::engine& e, json const& units, json const& steps) {
    std::fflush(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(20);
        take(e, units, steps);
        std::fflush(nullptr);
        ::_exit(0);
    }
    int status = -1;
    (void)::waitpid(child, &status, 0);
    std::puts(json{{"child", status}}.dump().c_str());
}

void take(kiln::engine& e, json const& units, json const& steps) {
    for (auto const& step : steps) {
        if (step.at(0) == "ask") ask(e, units, step.at(1));
        else if (step.at(0) == "start") (void)start(e, units, step.at(1));
        else if (step.at(0) == "meanwhile") std::this_thread::sleep_for(std::chrono::microseconds{step.at(1)});
        else if (step.at(0) == "fork") in_child(e, units, step.at(1));
        else change(step);
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    (void)kiln_profile_is_on();
    auto const plan = json::parse(std::ifstream{arguments[1]});
    auto& e = kiln::engine::process();
    take(e, plan.at("units"), plan.at("steps"));
    return e.flush_sync() ? 0 : 3;
}
