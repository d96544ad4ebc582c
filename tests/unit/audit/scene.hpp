// SPDX-License-Identifier: Apache-2.0
// A recording made by hand: what a program does, step by step, without a GPU. Times are microseconds here.
#pragma once

#include "audit/rules.hpp"

namespace kiln::audit::testing {

inline constexpr std::uint32_t own_stream = 7;

struct launch_options {
    double takes = 50;
    std::uint32_t blocks = 1000, threads = 256;
    std::uint16_t registers = 32;
    std::uint32_t shared = 0, on_stream = own_stream, graph = 0;
};

struct copy_options {
    double takes = 5;
    bool async = true;
    memory_kind host = memory_kind::pinned;
    std::uint64_t hash = 0, pointer = 0;
    double call_takes = 3;
    std::uint32_t on_stream = own_stream;
};

class scene {
public:
    static constexpr std::uint32_t stream = own_stream, null_stream = 1, thread = 100;

    scene() { begin_process(42); }
    // What follows is done by another one.
    scene& another_process(std::uint32_t pid) {
        if (p().ends.empty()) ends();
        begin_process(pid);
        return *this;
    }

    process_recording& p() { return all_.processes[now_]; }
    recording& all() { return all_; }
    std::uint32_t text(std::string_view t) { return all_.strings.intern(t); }
    static std::uint64_t ns(double us) { return static_cast<std::uint64_t>(us * 1000); }
    [[nodiscard]] double now() const { return at_; }

    scene& on(std::string_view line) {  // "train.py:12"; what follows comes from there
        auto const colon = line.find(':');
        stack_ = line.empty()
                     ? 0
                     : text(fmt::format("/home/ann/{}\t{}\tstep\n", line.substr(0, colon), line.substr(colon + 1)));
        return *this;
    }
    scene& inside_library(std::string_view line) {
        auto const colon = line.find(':');
        stack_ = text(fmt::format("/usr/lib/python3/dist-packages/lib.py\t1\tf\n/home/ann/{}\t{}\tstep\n",
                                  line.substr(0, colon), line.substr(colon + 1)));
        return *this;
    }
    scene& passes(double us) { return at_ += us, *this; }

    // The call takes 3 us; the kernel begins when it has returned and the stream is free.
    scene& launch(std::string_view name, launch_options const& o = {}) {
        auto const id = call("cudaLaunchKernel", 3);
        auto const begin = std::max(at_, free_at_);
        format::kernel_record k;
        k.correlation = id;
        k.stream = o.on_stream;
        k.start = ns(begin);
        k.end = ns(begin + o.takes);
        k.grid_x = o.blocks;
        k.grid_y = k.grid_z = 1;
        k.block_x = static_cast<std::uint16_t>(o.threads);
        k.block_y = k.block_z = 1;
        k.registers = o.registers;
        k.dynamic_shared = o.shared;
        k.graph = o.graph;
        k.name = text(name);
        p().kernels.push_back(k);
        free_at_ = begin + o.takes;
        return *this;
    }

    scene& copy(direction way, std::uint64_t bytes, copy_options const& o = {}) {
        auto const id = call(o.async ? "cudaMemcpyAsync" : "cudaMemcpy", o.call_takes, o.hash, o.pointer);
        auto const begin = std::max(at_, free_at_);
        format::copy_record c;
        c.correlation = id;
        c.stream = o.on_stream;
        c.start = ns(begin);
        c.end = ns(begin + o.takes);
        c.bytes = bytes;
        c.direction = way == direction::to_device ? 1 : way == direction::to_host ? 2 : 8;
        auto const host = static_cast<std::uint8_t>(o.host);
        c.source = way == direction::to_device ? host : 3;
        c.target = way == direction::to_host ? host : 3;
        c.flags = o.async ? 1 : 0;
        p().copies.push_back(c);
        free_at_ = begin + o.takes;
        if (!o.async) {
            at_ = free_at_ + 1;
            p().calls.back().end = ns(at_);
        }
        return *this;
    }
    scene& read(std::uint64_t bytes) { return copy(direction::to_host, bytes).wait("cudaStreamSynchronize"); }
    // Until the stream is free.
    scene& wait(std::string_view name, double more = 1) {
        auto const id = call(name, std::max(0.0, free_at_ - at_) + more);
        format::wait_record w;
        w.correlation = id;
        w.type = name.find("Device") != name.npos ? 4 : 3;
        w.stream = stream;
        w.start = p().calls.back().start;
        w.end = p().calls.back().end;
        p().waits.push_back(w);
        return *this;
    }
    scene& allocate(double takes = 20, std::uint32_t status = 0, std::uint64_t bytes = 1 << 20) {
        auto const id = call("cudaMalloc", takes);
        p().calls.back().status = status;
        format::memory_record m;
        m.correlation = id;
        m.operation = 1;
        m.memory = 3;
        m.time = ns(at_);
        m.bytes = bytes;
        p().memory.push_back(m);
        return *this;
    }
    scene& release(double takes = 20) { return call("cudaFree", takes), *this; }
    // A compile of NVRTC's, seen by the companion.
    scene& compile(double takes, std::uint64_t bytes = 100) {
        format::compile_record c;
        c.what = static_cast<std::uint8_t>(format::compiler::nvrtc);
        c.thread = thread;
        c.start = ns(at_);
        c.end = ns(at_ += takes);
        c.bytes = bytes;
        p().compiles.push_back(c);
        return *this;
    }
    scene& jit(std::uint8_t operation, double takes) {
        format::jit_record j;
        j.operation = operation;
        j.thread = thread;
        j.start = ns(at_);
        j.end = ns(at_ += takes);
        p().jits.push_back(j);
        return *this;
    }
    scene& child(std::string_view name, double takes) {
        auto const pid = ++pids_;
        auto const add = [&](std::uint32_t event) {
            format::child_record c;
            c.pid = pid;
            c.parent = 42;
            c.event = event;
            c.time = ns(at_);
            c.name = text(name);
            p().children.push_back(c);
        };
        add(1);
        at_ += takes;
        add(4);
        return *this;
    }
    std::uint32_t call(std::string_view name, double takes, std::uint64_t hash = 0, std::uint64_t pointer = 0) {
        format::call_record c;
        c.correlation = ++correlation_;
        c.thread = thread;
        c.start = ns(at_);
        c.end = ns(at_ += takes);
        c.name = text(name);
        p().calls.push_back(c);
        if (stack_ != 0 || hash != 0 || pointer != 0) {
            format::site_record s;
            s.correlation = correlation_;
            s.thread = thread;
            s.stack = stack_;
            s.time = c.start;
            s.hash = hash;
            s.pointer = pointer;
            p().sites.push_back(s);
        }
        return correlation_;
    }
    // The thread, or with 0 the process, was on a processor for so long at this moment.
    scene& cpu(std::uint32_t of, double used) {
        format::cpu_record c;
        c.thread = of;
        c.time = ns(at_);
        c.used = ns(used);
        p().cpu.push_back(c);
        return *this;
    }
    scene& stream_flag(std::uint32_t id, std::uint32_t flag) {
        format::stream_record s;
        s.id = id;
        s.flag = flag;
        p().streams.push_back(s);
        return *this;
    }
    scene& dispatch(std::uint64_t id, std::string_view event) {
        format::dispatch_record d;
        d.id = id;
        d.time = ns(at_);
        d.text = text(event);
        p().dispatches.push_back(d);
        return *this;
    }
    // The last kernel ran under this id.
    scene& under(std::uint64_t id) {
        format::external_record e;
        e.correlation = p().kernels.back().correlation;
        e.id = id;
        p().externals.push_back(e);
        return *this;
    }
    scene& repeat(int times, auto const& body) {
        for (int i = 0; i < times; ++i) body(*this, i);
        return *this;
    }
    scene& ends() {
        format::end_record e;
        e.time = ns(std::max(at_, free_at_) + 10);
        p().ends.push_back(e);
        return *this;
    }

private:
    void begin_process(std::uint32_t pid) {
        now_ = all_.processes.size();
        all_.processes.emplace_back();
        free_at_ = 0;
        correlation_ = stack_ = 0;
        auto& about = p().about;
        about.pid = pid;
        about.started = ns(1);
        about.begun = ns(1000);
        about.level = 1;
        format::device_record d;
        d.multiprocessors = 132;
        d.major = 9;
        d.name = text("NVIDIA H200");
        p().devices.push_back(d);
        format::context_record c;
        c.null_stream = null_stream;
        p().contexts.push_back(c);
        at_ = 2000;
    }

    recording all_;
    std::size_t now_ = 0;
    double at_ = 0, free_at_ = 0;
    std::uint32_t correlation_ = 0, stack_ = 0, pids_ = 1000;
};

// Two kernels from two lines, 100 us.
inline void plain_step(scene& x) { x.on("a.py:1").launch("mul").on("a.py:2").launch("add").passes(94); }

struct judged {
    model m;
    audit_result r;
    [[nodiscard]] finding const* found(std::string_view rule) const {
        for (auto const& f : r.findings)
            if (f.rule == rule) return &f;
        return nullptr;
    }
    [[nodiscard]] std::uint64_t exempt(std::string_view rule) const {
        std::uint64_t out = 0;
        for (auto const& e : r.exempt)
            if (e.rule == rule) out += e.count;
        return out;
    }
    [[nodiscard]] std::string rules() const {
        std::string out;
        for (auto const& f : r.findings)
            out += fmt::format("{} {} {} {}: {}\n", f.rule, f.count, name_of(f.level), f.where, f.what);
        for (auto const& e : r.exempt) out += fmt::format("exempt {} {} {}: {}\n", e.rule, e.count, e.where, e.why);
        return out;
    }
};

inline judged judge_scene(scene& s, rule_options const& how = {}) {
    if (s.p().ends.empty()) s.ends();
    judged out;
    out.m = model_of(s.all());
    out.r = audit(out.m, how);
    return out;
}

}  // namespace kiln::audit::testing
