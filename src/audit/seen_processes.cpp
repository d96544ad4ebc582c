// SPDX-License-Identifier: Apache-2.0
#include "audit/seen_processes.hpp"

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
    explicit seen_processes(recording const& from) : from_{from} {
        std::vector<format::child_record> told;
        for (auto const& p : from.processes) told.insert(told.end(), p.children.begin(), p.children.end());
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
        for (auto& c : all_) c.is_outermost = !is_compiler(name_of_parent(c));
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
        if (life.of.empty() || is_another(all_[life.of.back()], c, name)) {
            life.of.push_back(all_.size());
            life.before = {};
            all_.emplace_back().pid = c.pid;
        }
        auto& to = all_[life.of.back()];
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
        // Who loses its parent gets one that is none of ours.
        bool const has_other_parent = known.parent != 0 && c.parent != known.parent && lives_.contains(c.parent);
        return known.out_of_sight || has_other_parent;
    }

    [[nodiscard]] std::string_view name_of_parent(child_process const& c) const {
        auto const at = lives_.find(c.parent);
        if (at == lives_.end()) return {};
        auto const& of = at->second.of;
        auto const later = std::ranges::find_if(of, [&](auto i) { return all_[i].when.from > c.when.from; });
        return all_[later == of.begin() ? of.front() : *(later - 1)].name;
    }

    recording const& from_;
    std::map<std::uint32_t, life> lives_;
    std::vector<child_process> all_, unnumbered_;
};

}  // namespace

std::vector<child_process> processes_seen(recording const& from) { return seen_processes{from}.all(); }

}  // namespace kiln::audit
