// SPDX-License-Identifier: Apache-2.0
#include "audit/changed_findings.hpp"

#include "audit/model.hpp"

#include <algorithm>
#include <charconv>

namespace kiln::audit {

namespace {

// Whether two runs speak of one: where a file of the same name came or went, it has got, or lost, its folder.
bool is_same(std::string_view a, std::string_view b) { return is_called(a, b) || is_called(b, a); }
bool is_at_one_place(finding const& f, finding const& g) { return f.rule == g.rule && is_same(f.where, g.where); }

// "a/train.py" of "a/train.py:12".
std::string_view file_of(finding const& f) { return std::string_view{f.where}.substr(0, f.where.rfind(':')); }
int line_of(finding const& f) {
    int out = 0;
    auto const number = std::string_view{f.where}.substr(std::min(f.where.size(), file_of(f).size() + 1));
    std::from_chars(number.data(), number.data() + number.size(), out);
    return out;
}
// That its line is in; empty: not known.
std::string_view function_of(finding const& f) {
    auto const begin = base_name(f.where) + " in ";
    for (std::string_view const frame : f.stack)
        if (frame.starts_with(begin)) return frame.substr(begin.size());
    return {};
}
bool is_in_one_function(finding const& f, finding const& g) {
    auto const function = function_of(f);
    return f.rule == g.rule && !function.empty() && function == function_of(g) && is_same(file_of(f), file_of(g));
}

bool is_of_weight(finding const& f) { return f.level >= severity::medium; }
bool hardly_mattered(finding const& f, finding const& now) {
    return f.level < severity::medium && now.level > severity::medium;
}

// In the order of their lines: of several that moved the first is the first.
std::vector<finding const*> by_line(std::vector<finding> const& all, auto const& keep) {
    std::vector<finding const*> out;
    for (auto const& f : all)
        if (is_of_weight(f) && keep(f)) out.push_back(&f);
    std::ranges::stable_sort(out, {}, [](finding const* f) { return line_of(*f); });
    return out;
}

}  // namespace

changed_findings changes_between(std::vector<finding> const& before, std::vector<finding> const& after) {
    changed_findings out;
    // Not there any more, or of no weight, be it because another line took its place.
    auto left = by_line(before, [&](finding const& f) {
        return std::ranges::none_of(after, [&](finding const& g) { return is_of_weight(g) && is_at_one_place(f, g); });
    });
    auto const came = by_line(after, [&](finding const& f) {
        return std::ranges::none_of(before,
                                    [&](finding const& g) { return is_at_one_place(f, g) && !hardly_mattered(g, f); });
    });
    // Several processes find the same.
    auto const has_moved = [&](finding const& f, auto which) {
        return std::ranges::any_of(out.moved, [&](auto const& m) { return is_at_one_place(m.*which, f); });
    };
    using pair = std::pair<finding, finding>;
    for (auto const* const f : came) {
        if (has_moved(*f, &pair::second)) continue;
        auto const from = std::ranges::find_if(
            left, [&](finding const* g) { return is_in_one_function(*g, *f) && !has_moved(*g, &pair::first); });
        if (from != left.end()) out.moved.emplace_back(**from, *f);
    }
    auto const worst_first = [](finding const& f, finding const& g) { return f.level > g.level; };
    for (auto const* const f : left)
        if (!has_moved(*f, &pair::first) &&
            std::ranges::none_of(after, [&](finding const& g) { return is_at_one_place(*f, g); }))
            out.gone.push_back(*f);
    for (auto const* const f : came)
        if (!has_moved(*f, &pair::second)) out.fresh.push_back(*f);
    std::ranges::stable_sort(out.gone, worst_first);
    std::ranges::stable_sort(out.fresh, worst_first);
    return out;
}

}  // namespace kiln::audit
