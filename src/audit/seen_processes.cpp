// SPDX-License-Identifier: Apache-2.0
#include "audit/seen_processes.hpp"

#include "audit/system_tools.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace kiln::audit {

namespace {

constexpr std::array compilers{"ptxas",   "nvlink", "cicc",  "nvcc",     "gcc",    "g++",
                               "cc1plus", "cc1",    "clang", "clang++",  "ld",     "as",
                               "cc",      "c++",    "lld",   "collect2", "ld.bfd", "nvcc_internal"};

// "x86_64-linux-gnu-gcc-13" is gcc.
bool is_compiler(std::string_view name) {
    if (std::ranges::find(compilers, name) != compilers.end()) return true;
    while (!name.empty() && (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.'))
        name.remove_suffix(1);
    if (name.ends_with('-')) name.remove_suffix(1);
    if (auto const dash = name.rfind('-'); dash != name.npos) name.remove_prefix(dash + 1);
    return std::ranges::find(compilers, name) != compilers.end();
}

// Names that a test may have as well, as those of connected components have: "cc". So may what ends like a compiler, "test-as".
bool is_compilers_alone(std::string_view name) {
    constexpr std::array shared{"as", "cc", "c++", "ld"};
    if (name.find("-linux-") != name.npos) return true;  // "x86_64-conda-linux-gnu-cc"
    auto const dash = name.find('-');
    auto const first = name.substr(0, dash);
    bool const has_version = dash == name.npos || std::isdigit(static_cast<unsigned char>(name.back())) != 0;
    return has_version && std::ranges::find(compilers, first) != compilers.end() &&
           std::ranges::find(shared, first) == shared.end();
}

// No work of anybody's. Whoever only looks like it is counted.
bool is_helper(std::string_view path, std::string_view command) {
    auto const name = path.substr(path.rfind('/') + 1);
    if (is_system_tool(path)) return true;
    if (name == "cmake" && command.starts_with("cmake -E ")) return true;  // makefiles echo by it
    return is_compiler(name) && (is_compilers_alone(name) || is_of_the_system(path));
}

void add_unnumbered(std::vector<child_process>& out, format::child_record const& from, std::string const& name) {
    auto& to = out.emplace_back();
    to.parent = from.parent;
    to.name = base_name(name);
    to.when = {from.time, from.time};
    to.out_of_sight = true;
}

// A number comes again, and at once in another namespace of processes.
class seen_processes {
public:
    seen_processes(recording const& from, std::uint32_t runner) : from_{from}, runner_{runner} {
        std::vector<format::child_record> told;
        for (auto const& p : from.processes) {
            told.insert(told.end(), p.children.begin(), p.children.end());
            if (p.recorded()) recorded_.emplace(p.about.pid, &p);
        }
        std::ranges::stable_sort(told, {}, &format::child_record::time);
        for (auto const& c : told) {
            if (c.pid != 0) take(c);
            else if (c.event == 5)  // started by libc itself: that it is out of sight is all that is known
                add_unnumbered(unnumbered_, c, from.strings.at(c.name));
        }
    }
    [[nodiscard]] std::vector<child_process> all() && {
        for (auto& c : all_) {
            if (c.when.from == 0) c.when.from = c.when.to;
            if (c.when.to < c.when.from) c.when.to = c.when.from;
            c.is_compiler = is_compiler(c.name);
        }
        for (auto& c : all_) {
            auto const* const parent = parent_of(c);
            bool const by_compiler = parent != nullptr && parent->is_compiler;
            c.is_outermost = !by_compiler;
            c.is_helper = c.is_helper || (c.is_compiler && by_compiler && parent->is_helper);
            if (c.is_compiler) name_starter(c);
        }
        unnumbered_.insert(unnumbered_.end(), all_.begin(), all_.end());
        return std::move(unnumbered_);
    }

private:
    // What is told of a number, and nobody else has it until it is over.
    struct life {
        std::vector<std::size_t> of;  // in all_, the last is the one of now
        child_process before;         // what it was until it was to become another
    };

    void take(format::child_record const& c) {
        std::string_view const text = from_.strings.at(c.name);  // "/usr/bin/python3\tpython3 train.py"
        auto const tab = text.find('\t');
        auto const name = base_name(text.substr(0, tab));
        auto& life = lives_[c.pid];
        auto const known = known_as(life, c);
        if (known != nobody) {
            std::erase(life.of, known);
            life.of.push_back(known);
        } else if (life.of.empty() || is_another(all_[life.of.back()], c, name)) {
            life.of.push_back(all_.size());
            life.before = {};
            all_.emplace_back().pid = c.pid;
            identities_.push_back(0);
        }
        auto& to = all_[life.of.back()];
        if (c.event == 1) identities_[life.of.back()] = c.status;
        if (c.event == 4) {
            to.when.to = std::max(to.when.to, c.time);
            to.was_waited_for = true;
            to.parent = c.parent;
            return;
        }
        if (c.event == 6) {
            to = life.before;
            to.pid = c.pid;
            return;
        }
        life.before = to;
        if (to.when.from == 0 || c.time < to.when.from) to.when.from = c.time;
        to.out_of_sight = to.out_of_sight || c.event == 5;
        if (c.parent != 0 && to.parent == 0) to.parent = c.parent;
        to.name = name;
        if (tab != text.npos) to.command = short_command(text.substr(tab + 1));
        to.is_helper = is_helper(text.substr(0, tab), to.command);
    }

    // Who said when it began that it is the same: an exec. Recordings of old do not say who anybody is.
    [[nodiscard]] std::size_t known_as(life const& of, format::child_record const& c) const {
        if (c.event != 1 || c.status == 0) return nobody;
        auto const at = std::ranges::find_if(of.of, [&](auto i) { return identities_[i] == c.status; });
        return at == of.of.end() ? nobody : *at;
    }

    // Whether it is told of another process than the one that had the number until then.
    [[nodiscard]] bool is_another(child_process const& known, format::child_record const& c,
                                  std::string const& name) const {
        // That it was asked for may be told after its end, where one thread starts and another collects.
        bool const is_late = c.event == 3 && c.parent == known.parent && (known.name.empty() || known.name == name);
        if (known.was_waited_for) return !is_late && c.event != 6;
        // What is out of sight tells nothing, neither that it began nor what it is to become.
        if (known.out_of_sight && (c.event == 3 || c.event == 5) && name != known.name) return true;
        if (c.event != 1) return false;
        if (auto const is = identity_of(known); is != 0 && c.status != 0) return is != c.status;
        // Who loses its parent gets one that is none of ours.
        bool const has_other_parent = known.parent != 0 && c.parent != known.parent && lives_.contains(c.parent);
        return known.out_of_sight || has_other_parent;
    }

    [[nodiscard]] std::uint32_t identity_of(child_process const& c) const {
        return identities_[static_cast<std::size_t>(&c - all_.data())];
    }

    // Null: nothing is known of it.
    [[nodiscard]] child_process const* parent_of(child_process const& c) const {
        auto const at = lives_.find(c.parent);
        if (at == lives_.end()) return nullptr;
        auto const& of = at->second.of;
        auto const later = std::ranges::find_if(of, [&](auto i) { return all_[i].when.from > c.when.from; });
        return &all_[later == of.begin() ? of.front() : *(later - 1)];
    }

    // Null: nobody of that number was recorded then.
    [[nodiscard]] process_recording const* recorded_as(std::uint32_t pid, time_ns when) const {
        constexpr time_ns resolution = 50 * ms;  // of when a process began
        process_recording const *last = nullptr, *first = nullptr;
        for (auto [at, end] = recorded_.equal_range(pid); at != end; ++at) {
            auto const& r = *at->second;
            bool const is_over = !r.ends.empty() && r.ends.back().time + resolution < when;
            bool const had_begun = r.about.started <= when + resolution;
            if (!had_begun || is_over) continue;
            // One number began once, and was several programs, one after the other (exec).
            if (r.about.begun <= when + resolution && (last == nullptr || r.about.begun > last->about.begun)) last = &r;
            if (first == nullptr || r.about.begun < first->about.begun) first = &r;
        }
        return last != nullptr ? last : first;
    }
    void name_starter(child_process& to) const {
        constexpr int most_generations = 1000;  // numbers come again: none is its own ancestor
        child_process const* c = &to;
        for (int n = 0; c != nullptr && n < most_generations; ++n) {
            to.by = recorded_as(c->parent, c->when.from);
            to.is_apart = to.by == nullptr && runner_ != 0 && c->parent == runner_;
            if (to.by != nullptr || to.is_apart) return;
            c = parent_of(*c);
        }
    }

    recording const& from_;
    std::uint32_t runner_;
    std::multimap<std::uint32_t, process_recording const*> recorded_;  // by number
    std::map<std::uint32_t, life> lives_;
    std::vector<child_process> all_, unnumbered_;
    std::vector<std::uint32_t> identities_;  // of all_, as they said when they began; 0: not known
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
};

}  // namespace

std::vector<child_process> processes_seen(recording const& from, std::uint32_t runner) {
    return seen_processes{from, runner}.all();
}

}  // namespace kiln::audit
