// SPDX-License-Identifier: Apache-2.0
// A trace in Perfetto's own protobuf, written by hand: the few messages that tracks, slices and counters need. The numbers are
// those of perfetto/protos/trace: TracePacket, TrackDescriptor, TrackEvent.
#include "audit/report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <limits>

namespace kiln::audit {

namespace {

constexpr std::size_t most_events = 200'000;

class message {
public:
    void number(unsigned field, std::uint64_t value) {
        varint(field << 3);
        varint(value);
    }
    void bytes(unsigned field, std::string_view value) {
        varint(field << 3 | 2u);
        varint(value.size());
        data += value;
    }
    void text(unsigned field, std::string_view value) { bytes(field, base::valid_utf8(value)); }
    std::string data;

private:
    void varint(std::uint64_t v) {
        for (; v >= 0x80; v >>= 7) data += static_cast<char>((v & 0x7f) | 0x80);
        data += static_cast<char>(v);
    }
};

class trace_writer {
public:
    explicit trace_writer(time_ns until) : until_{until} {}
    void process(std::uint64_t uuid, std::uint32_t pid, std::string const& name) {
        message about;
        about.number(1, pid);
        about.text(6, name);
        message track;
        track.number(1, uuid);
        track.bytes(3, about.data);
        add_track(track);
    }
    void track(std::uint64_t uuid, std::uint64_t parent, std::string const& name) {
        message t;
        t.number(1, uuid);
        t.number(5, parent);
        t.text(2, name);
        add_track(t);
    }
    void slice(std::uint64_t track, interval when, std::string const& name, std::string const& category) {
        if (when.from > until_) {
            ++left_out_;
            return;
        }
        event(track, when.from, 1, name, category);
        event(track, std::max(when.to, when.from + 1), 2, {}, {});
    }
    void leave_out() { ++left_out_; }
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
    [[nodiscard]] std::string take() && { return std::move(out_); }

private:
    void add_track(message const& t) {
        message packet;
        packet.number(10, 1);
        packet.bytes(60, t.data);
        add(packet);
    }
    void event(std::uint64_t track, time_ns at, std::uint64_t type, std::string const& name,
               std::string const& category) {
        message e;
        e.number(9, type);
        e.number(11, track);
        if (!category.empty()) e.bytes(22, category);
        if (!name.empty()) e.text(23, name);
        message packet;
        packet.number(8, at);
        packet.number(10, 1);
        packet.bytes(11, e.data);
        add(packet);
    }
    void add(message const& packet) {
        message whole;
        whole.bytes(1, packet.data);
        out_ += whole.data;
    }
    time_ns until_;
    std::string out_;
    std::uint64_t left_out_ = 0;
};

// Until when there are not too many: of a long run its beginning is shown, and all of that.
time_ns end_of_trace(model const& m) {
    auto const count_until = [&](time_ns t) {
        std::ptrdiff_t n = 0;
        auto const add = [&](auto const& sorted, auto const& start_of) {
            n += std::ranges::upper_bound(sorted, t, {}, start_of) - sorted.begin();
        };
        for (auto const& p : m.processes) {
            add(p.ops, &operation::start);
            add(p.calls, &call::start);
            add(p.gaps, [](gap const& g) { return g.when.from; });
            add(p.firsts, [](first_event const& f) { return f.when.from; });
        }
        return static_cast<std::size_t>(n);
    };
    time_ns low = 0, high = std::numeric_limits<time_ns>::max();
    if (count_until(high) <= most_events) return high;
    while (high - low > 1) {
        auto const middle = low + (high - low) / 2;
        (count_until(middle) <= most_events ? low : high) = middle;
    }
    return low;
}

// Slices of one track may not cross. On a stream a kernel may begin before the last one has ended (programmatic launches, graphs): each
// goes to the first track of its stream that is free.
class stream_tracks {
public:
    stream_tracks(process_model const& p, std::uint64_t base, trace_writer& out) : p_{p}, base_{base}, out_{out} {}
    void slice(operation const& o, std::string const& name) {
        auto& all = tracks_[o.stream];
        auto at = std::ranges::find_if(all, [&](auto const& track) { return track.second <= o.start; });
        if (at == all.end() && all.size() == most_tracks) return out_.leave_out();
        if (at == all.end()) at = all.insert(all.end(), {add_track(o.stream, all.size()), 0});
        at->second = std::max(o.end, o.start + 1);
        out_.slice(at->first, {o.start, o.end}, name, "gpu");
    }

private:
    static constexpr std::size_t most_tracks = 64;  // of a stream

    std::uint64_t add_track(std::uint32_t stream, std::size_t number) {
        auto const uuid = number == 0 ? base_ + 0x1000 + stream : base_ + 0x4000'0000u + ++further_;
        auto const name =
            p_.null_streams.contains(stream) ? std::string{"GPU, null stream"} : fmt::format("GPU, stream {}", stream);
        out_.track(uuid, base_ + 1, number == 0 ? name : fmt::format("{}, at the same time", name));
        return uuid;
    }
    process_model const& p_;
    std::uint64_t base_, further_ = 0;
    trace_writer& out_;
    std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, time_ns>>> tracks_;  // with when each is free
};

// Of processes that used no GPU: a track for each.
void put_compile_tracks(model const& m, trace_writer& out) {
    std::map<std::uint32_t, time_ns> last;
    for (auto const& c : m.compiles) {
        auto const base = std::uint64_t{c.pid} << 32;
        auto const [at, is_new] = last.try_emplace(c.pid, 0);
        if (is_new) {
            out.process(base + 1, c.pid, c.program.substr(0, 100));
            out.track(base + 3, base + 1, "compiles");
        }
        if (c.when.from < at->second) continue;  // slices of one track may not cross
        at->second = c.when.to;
        out.slice(base + 3, c.when, fmt::format("{} {}", compiler_name(c.kind), c.name.substr(0, 80)), "first");
    }
}

}  // namespace

std::string to_perfetto(report_input const& in) {
    trace_writer out{end_of_trace(in.m)};
    for (auto const& p : in.m.processes) {
        auto const base = std::uint64_t{p.pid} << 32;
        out.process(base + 1, p.pid, p.program.substr(0, 100));
        out.track(base + 2, base + 1, "findings: idle, by cause");
        for (auto const& g : p.gaps)
            out.slice(base + 2, g.when, fmt::format("{} {}", name_of(g.cause), p.place_at(g.place).label), "gap");
        out.track(base + 3, base + 1, "first calls");
        time_ns last = 0;
        for (auto const& f : p.firsts) {  // slices of one track may not cross
            if (f.when.from < last) continue;
            last = f.when.to;
            out.slice(base + 3, f.when, f.name == 0 ? "compile or load" : p.text(f.name).substr(0, 80), "first");
        }
        std::set<std::uint32_t> threads;
        stream_tracks streams{p, base, out};
        for (auto const& c : p.calls) threads.insert(c.thread);
        for (auto const t : threads) out.track(base + 0x8000'0000u + t, base + 1, fmt::format("thread {}", t));
        std::unordered_map<std::uint32_t, std::string> kernels;  // of which there are few, and many launches
        for (auto const& o : p.ops) {
            auto const kernel_name = [&] {
                auto const [at, is_new] = kernels.try_emplace(o.name);
                if (is_new) at->second = short_kernel_name(p.text(o.name), 100);
                return at->second;
            };
            auto const name = o.kind == op_kind::kernel ? kernel_name()
                              : o.kind == op_kind::set  ? fmt::format("set {} B", o.bytes)
                                                        : fmt::format("copy {} B", o.bytes);
            streams.slice(o, name);
        }
        std::map<std::uint32_t, time_ns> open;
        for (auto const& c : p.calls) {
            auto& until = open[c.thread];
            if (c.start < until && c.end > until) continue;
            until = std::max(until, c.end);
            auto const place = p.place_of(c.correlation);
            out.slice(base + 0x8000'0000u + c.thread, {c.start, c.end},
                      place == 0 ? p.text(c.name) : fmt::format("{} {}", p.text(c.name), p.place_at(place).label),
                      "call");
        }
    }
    put_compile_tracks(in.m, out);
    // A file without anything in it is no trace to who opens it.
    if (in.m.processes.empty()) out.track(2, 0, "nothing of a GPU was recorded");
    if (out.left_out() > 0) out.track(1, 0, fmt::format("cut short: {} later events are not shown", out.left_out()));
    return std::move(out).take();
}

}  // namespace kiln::audit
