// SPDX-License-Identifier: Apache-2.0
// Where a program's steps begin, and from which of them on it does what it will go on doing.
#include "audit/model.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace kiln::audit {

namespace {

constexpr std::size_t least_steps = 8;
constexpr double least_cover = 0.5;

struct entry {
    time_ns at = 0;
    std::uint32_t line = 0;
};
struct line_entries {
    std::vector<entry> all;
    std::map<std::uint32_t, std::string> labels;
};

bool covers(process_model const& p, std::vector<time_ns> const& starts) {
    if (starts.size() < least_steps) return false;
    auto const in = std::ranges::upper_bound(p.ops, starts.back(), {}, &operation::start) -
                    std::ranges::lower_bound(p.ops, starts.front(), {}, &operation::start);
    return static_cast<double>(in) >= least_cover * static_cast<double>(p.ops.size());
}

enum class launches : std::uint8_t { left_out, too };

// User lines in order, neighbours that are equal folded: an inner loop of one line is one entry.
line_entries line_sequence(process_model const& p, launches which) {
    std::map<std::string, std::uint32_t> ids;
    std::vector<std::uint32_t> id_of_place(p.places.size());
    line_entries out;
    for (std::size_t i = 1; i < p.places.size(); ++i) {
        auto const& label = p.places[i].label;
        id_of_place[i] = ids.try_emplace(label, static_cast<std::uint32_t>(ids.size() + 1)).first->second;
        out.labels[id_of_place[i]] = label;
    }
    for (auto const& c : p.calls) {
        if (which == launches::left_out && c.what == call_class::launch) continue;
        auto const place = p.place_of(c.correlation);
        if (place == 0) continue;
        auto const line = id_of_place[place];
        if (out.all.empty() || out.all.back().line != line) out.all.push_back({c.start, line});
    }
    return out;
}

// The beginnings of the cycle in a sequence: a line that comes about once in it.
bool take_line_cycle(process_model& p, launches which) {
    auto const lines = line_sequence(p, which);
    auto const& sequence = lines.all;
    if (sequence.size() < 2 * least_steps) return false;
    std::vector<std::uint32_t> symbols;
    for (auto const& e : sequence) symbols.push_back(e.line);
    auto const lag = period_of(symbols);
    if (lag < 2) return false;
    std::unordered_map<std::uint32_t, std::size_t> often;
    auto const late = sequence.size() / 4;
    for (auto i = late; i < sequence.size(); ++i) ++often[sequence[i].line];
    auto const most = 1.1 * static_cast<double>(sequence.size() - late) / static_cast<double>(lag);
    for (auto i = sequence.size() / 2; i < sequence.size(); ++i) {
        auto const line = sequence[i].line;
        if (static_cast<double>(often[line]) > most) continue;
        steps out;
        for (auto const& e : sequence)
            if (e.line == line) out.starts.push_back(e.at);
        if (!covers(p, out.starts)) return false;
        out.anchor = "line " + lines.labels.at(line);
        p.cycle = std::move(out);
        return true;
    }
    return false;
}

// From where on a sequence repeats with that lag: before it a program does other things (a framework tries its kernels out), and
// counting those as steps would make a steady state of them. An act now and then (a log line, a checkpoint) does not end it.
std::size_t begin_of_cycle(std::vector<std::uint32_t> const& symbols, std::size_t lag) {
    auto const window = least_steps * lag;
    auto const repeats = [&](std::size_t i) { return symbols[i] == symbols[i + lag] ? std::size_t{1} : 0; };
    auto at = symbols.size() / 2;
    if (at + window + lag > symbols.size()) return symbols.size() % lag;
    std::size_t same = 0;
    for (auto i = at; i < at + window; ++i) same += repeats(i);
    while (at > 0 && 4 * (same + repeats(at - 1) - repeats(at + window - 1)) >= 3 * window) {
        --at;
        same = same + repeats(at) - repeats(at + window);
    }
    // What came before may look alike here and there, but not for two rounds.
    auto const last = at + window;
    for (std::size_t row = 0, i = at; i < last; ++i) {
        row = repeats(i) == 1 ? row + 1 : 0;
        if (row == 2 * lag) return i + 1 - row;
    }
    return at;
}

bool take_operation_cycle(process_model& p) {
    std::vector<std::uint32_t> symbols;
    std::map<std::tuple<int, std::uint32_t, std::uint64_t>, std::uint32_t> ids;
    for (auto const& o : p.ops) {
        auto const what = o.kind == op_kind::kernel ? std::tuple{0, o.name, std::uint64_t{o.threads}}
                                                    : std::tuple{1 + static_cast<int>(o.way), 0u, o.bytes};
        symbols.push_back(ids.try_emplace(what, static_cast<std::uint32_t>(ids.size())).first->second);
    }
    auto const lag = period_of(symbols);
    if (lag == 0) return false;
    for (auto i = begin_of_cycle(symbols, lag); i < symbols.size(); i += lag) p.cycle.starts.push_back(p.ops[i].start);
    p.cycle.anchor = lag == 1 ? "every operation" : fmt::format("every {} operations", lag);
    if (p.cycle.starts.size() >= least_steps) return true;
    p.cycle = {};
    return false;
}

bool take_named(process_model& p, std::string const& wanted) {
    steps out;
    for (auto const& r : p.from->ranges)
        if (p.text(r.name) == wanted) out.starts.push_back(r.start);
    std::string last;
    for (auto const& c : p.calls) {
        auto const& label = p.place_at(p.place_of(c.correlation)).label;
        if (is_called(label, wanted) && !is_called(last, wanted)) out.starts.push_back(c.start);
        if (label != "?") last = label;
    }
    if (out.starts.size() < 2) return false;
    std::ranges::sort(out.starts);
    out.anchor = "'" + wanted + "', as you said";
    p.cycle = std::move(out);
    return true;
}

bool take_ranges(process_model& p) {
    std::map<std::uint32_t, std::vector<time_ns>> by_name;
    for (auto const& r : p.from->ranges) by_name[r.name].push_back(r.start);
    for (auto& [name, starts] : by_name) {
        std::ranges::sort(starts);
        if (!covers(p, starts)) continue;
        p.cycle = {starts, "range " + p.text(name)};
        return true;
    }
    return false;
}

// Launches are only watched now and then in a long run: the lines of a few say nothing of where steps begin.
bool knows_most_launches(process_model const& p) {
    std::size_t all = 0, known = 0;
    for (auto const& c : p.calls) {
        if (c.what != call_class::launch) continue;
        ++all;
        known += p.place_of(c.correlation) != 0 ? 1 : 0;
    }
    return 10 * known >= 9 * all;
}

// Whether a sequence may repeat with that lag over its last half. What does not is seen at a few places, wherever they are (at even distances
// they might all be alike): there may be as many lags to try as there are kernels.
bool may_repeat_with(std::vector<std::uint32_t> const& symbols, std::size_t lag) {
    auto const n = symbols.size(), from = std::max(n / 2, lag);
    std::minstd_rand somewhere;
    auto const is_alike = [&](std::size_t looked_at, double least) {
        if (n - from <= 8 * looked_at) return true;
        std::size_t same = 0;
        for (std::size_t k = 0; k < looked_at; ++k) {
            auto const i = from + somewhere() % (n - from);
            same += symbols[i] == symbols[i - lag] ? 1 : 0;
        }
        return static_cast<double>(same) >= least * static_cast<double>(looked_at);
    };
    // What is alike in nine places of ten is taken for less by either not once in a million times.
    return is_alike(256, 0.75) && is_alike(4096, 0.87);
}
// Whether it does, but for a tenth.
bool repeats_with(std::vector<std::uint32_t> const& symbols, std::size_t lag) {
    auto const n = symbols.size(), from = std::max(n / 2, lag);
    std::size_t same = 0;
    for (auto i = from; i < n; ++i) same += symbols[i] == symbols[i - lag] ? 1 : 0;
    return static_cast<double>(same) >= 0.9 * static_cast<double>(n - from);
}

}  // namespace

std::size_t period_of(std::vector<std::uint32_t> const& symbols) {
    std::unordered_map<std::uint32_t, std::size_t> last;
    std::unordered_map<std::uint32_t, std::unordered_map<std::size_t, std::size_t>> distances;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        auto const [at, fresh] = last.try_emplace(symbols[i], i);
        if (!fresh) {
            ++distances[symbols[i]][i - at->second];
            at->second = i;
        }
    }
    std::set<std::size_t> lags;
    for (auto const& [symbol, counts] : distances) {
        std::size_t all = 0;
        std::pair<std::size_t, std::size_t> best{};
        for (auto const& [distance, count] : counts) {
            all += count;
            best = std::max(best, std::pair{count, distance});
        }
        if (all + 1 >= least_steps) lags.insert(best.second);
    }
    auto const n = symbols.size();
    // Where one kernel is nearly all there is, each lag is nearly one.
    constexpr std::size_t most_looked_at = 300'000'000;
    std::size_t looked_at = 0;
    for (auto const lag : lags) {
        if (lag == 0 || lag > n / least_steps || !may_repeat_with(symbols, lag)) continue;
        if (repeats_with(symbols, lag)) return lag;
        if (looked_at += n / 2; looked_at > most_looked_at) return 0;
    }
    return 0;
}

void find_steps(process_model& p, model_options const& how) {
    if (p.ops.empty()) return;
    if (!how.step.empty() && take_named(p, how.step)) return;
    p.missing_step = how.step;
    if (take_ranges(p) || take_line_cycle(p, launches::left_out)) return;
    if (knows_most_launches(p) && take_line_cycle(p, launches::too)) return;
    take_operation_cycle(p);
}

void find_trials(process_model& p) {
    using shape =
        std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>;  // not the grid: it follows the data
    std::map<std::uint32_t, std::set<shape>> shapes, kept;
    std::map<shape, std::size_t> launched;
    auto const shape_of = [](operation const& o) { return shape{o.name, o.threads, o.registers, o.shared}; };
    std::size_t kernels = 0;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel) continue;
        shapes[o.name].insert(shape_of(o));
        ++launched[shape_of(o)];
        ++kernels;
    }
    auto const late = kernels - std::min(kernels, std::max<std::size_t>(10, kernels / 200));
    std::size_t seen = 0;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel) continue;
        if (seen++ >= late) kept[o.name].insert(shape_of(o));
    }
    // What ran more than all of that did not lose: the end of a program may be something else, as a test after training.
    std::map<std::uint32_t, std::size_t> launched_of_kept;
    std::map<std::uint32_t, std::pair<std::size_t, shape>> most;
    for (auto const& [variant, often] : launched) {
        auto const name = std::get<0>(variant);
        auto const stay = kept.find(name);
        if (stay == kept.end()) continue;
        if (stay->second.contains(variant)) launched_of_kept[name] += often;
        most[name] = std::max(most[name], std::pair{often, variant});
    }
    for (auto const& [name, m] : most)
        if (m.first > 2 * launched_of_kept[name]) kept[name].insert(m.second);
    struct course {
        std::size_t before_first = 0, before_last = 0;  // launches of what is kept
        std::size_t runs = 0;                           // of this one without another between
    };
    std::map<shape, course> courses;
    std::map<std::uint32_t, std::size_t> of_kept;  // so far, by name
    std::map<std::uint32_t, shape> before;
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel || shapes[o.name].size() < 3) continue;
        auto const now = shape_of(o);
        auto const [last, is_first] = before.try_emplace(o.name, now);
        bool const is_other = is_first || last->second != now;
        last->second = now;
        auto& so_far = of_kept[o.name];
        if (kept[o.name].contains(now)) {
            ++so_far;
            continue;
        }
        auto& c = courses.try_emplace(now, course{so_far, so_far, 0}).first->second;
        c.before_last = so_far;
        if (is_other) ++c.runs;
    }
    for (auto const& o : p.ops) {
        if (o.kind != op_kind::kernel || shapes[o.name].size() < 3) continue;
        auto const& stay = kept[o.name];
        auto const often = launched[shape_of(o)];
        if (stay.empty() || stay.contains(shape_of(o)) || often < 2) continue;
        // What comes now and then among those that stayed follows the data, as blocks of sizes that differ from batch to batch do: few of it
        // come in a row, and it is rare among them or does not end early. Trials come in a row, or by turns at the beginning.
        auto const& c = courses[shape_of(o)];
        auto const among = c.before_last - c.before_first, after = of_kept[o.name] - c.before_last;
        if (2 * c.runs > often && (among > 2 * often * stay.size() || after < among)) continue;
        p.trials.push_back(&o);
    }
}

namespace {

// After 95 % of the time of these, which are disjoint and in order.
time_ns after_most_of(std::vector<interval> const& firsts, time_ns begin) {
    time_ns all = 0, so_far = 0, last = begin;
    for (auto const& i : firsts) all += i.length();
    for (auto const& i : firsts) {
        if (20 * so_far >= 19 * all) break;
        so_far += i.length();
        last = std::max(last, i.to);
    }
    return last;
}

}  // namespace

void find_windows(process_model& p) {
    if (p.ops.empty()) {
        p.steady = {p.ended, p.ended};
        return;
    }
    auto const end = p.busy.back().to;
    auto const& starts = p.cycle.starts;
    auto const half = p.ops[p.ops.size() / 2].start;
    if (!p.cycle.found() || starts.size() < 2) {
        std::vector<interval> done, early;
        for (auto const& f : p.firsts) {
            if (f.when.to >= end) continue;
            done.push_back(f.when);
            if (f.when.from < half) early.push_back(f.when);
        }
        done = joined(std::move(done));
        auto const is_mostly_firsts = [&](time_ns from) { return 2 * overlap({from, end}, done) > end - from; };
        auto last = after_most_of(done, p.ops.front().start);
        // What is loaded for the last kernels does not make all before it a beginning.
        auto const left = p.ops.end() - std::ranges::lower_bound(p.ops, last, {}, &operation::start);
        if (4 * static_cast<std::size_t>(left) < p.ops.size() && 4 * (end - last) < end - p.ops.front().start) {
            auto const sooner = after_most_of(joined(std::move(early)), p.ops.front().start);
            auto const late = p.ops[3 * p.ops.size() / 4].start;
            bool const are_at_the_end = 20 * overlap({half, late}, done) <= overlap({half, end}, done);
            if (are_at_the_end && !is_mostly_firsts(sooner)) last = sooner;
        }
        // A program that compiles to the end.
        if (!done.empty() && is_mostly_firsts(last)) last = std::max(last, done.back().to);
        p.steady = {last, std::max(last, end)};
    } else {
        for (std::size_t i = 0; i + 1 < starts.size(); ++i) p.durations.push_back(starts[i + 1] - starts[i]);
        std::vector<time_ns> later(p.durations.begin() + static_cast<std::ptrdiff_t>(p.durations.size() / 4),
                                   p.durations.end());
        std::ranges::nth_element(later, later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2));
        p.median = later[later.size() / 2];
        time_ns last = 0;
        for (auto const& f : p.firsts)
            if (f.when.from < half) last = std::max(last, f.when.to);
        for (auto const* t : p.trials) last = std::max(last, t->end);
        // A step many times as long as the others, early on, is still the beginning.
        for (std::size_t i = 0; i < p.durations.size() / 4; ++i)
            if (p.durations[i] > 20 * p.median && p.durations[i] > 5 * ms) last = std::max(last, starts[i + 1]);
        std::set<std::size_t> late_steps;
        for (auto const& f : p.firsts) {
            if (f.when.from < half || f.when.from <= last || f.kind == first_kind::lazy) continue;
            late_steps.insert(static_cast<std::size_t>(std::ranges::upper_bound(starts, f.when.from) - starts.begin()));
        }
        p.settled = late_steps.size() < 3;
        std::size_t cut = p.durations.size() - 1;
        auto const quarter = std::min(cut, std::max(least_steps, p.durations.size() / 4));
        auto const is_even = [&](time_ns d) { return static_cast<double>(d) <= 1.5 * static_cast<double>(p.median); };
        auto const steps_from = [&](std::size_t i) { return p.durations.begin() + static_cast<std::ptrdiff_t>(i); };
        if (!p.settled) {
            cut = quarter;
        } else {
            for (std::size_t i = 0; i < p.durations.size(); ++i) {
                auto const to = std::min(i + 3, p.durations.size());
                if (starts[i] < last || !std::all_of(steps_from(i), steps_from(to), is_even)) continue;
                cut = i;
                break;
            }
            // As where every third batch is late: no three in a row are of one length, or these come late and most before
            // them were so, too. It is as steady as it will be.
            auto const after = static_cast<std::size_t>(std::ranges::lower_bound(starts, last) - starts.begin());
            auto const sooner = std::min(cut, std::max(quarter, after));
            auto const even = static_cast<std::size_t>(std::count_if(steps_from(sooner), steps_from(cut), is_even));
            bool const is_as_before =
                cut > p.durations.size() / 2 && cut - sooner >= least_steps && 2 * even > cut - sooner;
            if (cut + 3 > p.durations.size() || is_as_before) cut = sooner;
        }
        p.steady_from_step = cut;
        p.steady = {starts[cut], std::max(starts[cut], end)};
    }
    for (auto const& b : p.busy)
        p.steady_busy += interval{std::max(b.from, p.steady.from), std::min(b.to, p.steady.to)}.length();
}

}  // namespace kiln::audit
