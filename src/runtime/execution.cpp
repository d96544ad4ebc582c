// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.hpp"

#include "base/config.hpp"
#include "base/fork_guard.hpp"
#include "cuda/context.hpp"

#include <kiln/runtime/precision.hpp>

#include <atomic>
#include <mutex>

namespace kiln {

namespace runtime {

namespace {

// Environment and file are read once: getenv on every dispatch would be slow and racy. -1: not read yet.
struct from_settings {
    std::atomic<int> mode{-1}, determinism{-1}, strict{-1};
};
// -1: no explicit call.
struct from_calls {
    std::atomic<int> mode{-1}, determinism{-1}, strict{-1};
};
constinit from_settings preset;
constinit from_calls called;

constinit thread_local std::optional<execution_mode> scoped_mode;
constinit thread_local bool scoped_determinism = false;

void read_settings() {
    auto const settings = base::config::load();
    auto const mode = parse_execution_mode(settings.text("KILN_EXECUTION_MODE"));
    preset.determinism.store(settings.flag("KILN_DETERMINISM") ? 1 : 0, std::memory_order_relaxed);
    preset.strict.store(settings.flag("KILN_STRICT") ? 1 : 0, std::memory_order_relaxed);
    preset.mode.store(static_cast<int>(mode ? *mode : execution_mode::automatic), std::memory_order_release);
}

int setting(std::atomic<int> const& explicit_one, std::atomic<int> const& read) {
    if (int const set = explicit_one.load(std::memory_order_relaxed); set >= 0) return set;
    if (preset.mode.load(std::memory_order_acquire) < 0) read_settings();
    return read.load(std::memory_order_relaxed);
}

int encode(std::optional<bool> on) noexcept { return on ? (*on ? 1 : 0) : -1; }

// The answer about the GPU. Old answers are kept: another thread may be reading one, and modes change rarely.
struct gpu_answers {
    // One asks, and others wait for him: as long as a driver takes to start. fork() does not wait for that, and a child asks itself.
    base::per_process<std::mutex> asking{[] { return std::make_unique<std::mutex>(); }};
    base::forkable_mutex mutex;  // the rest, within the other
    std::vector<std::unique_ptr<result<device_info> const>> all;
    std::atomic<result<device_info> const*> current{nullptr};
    gpu_probe probe;
    std::atomic<int> ratio{-1};  // f32_per_f64; -1: not asked
};
gpu_answers& answers() {
    static constinit base::made_once<gpu_answers> made;
    return made.get([] { return std::make_unique<gpu_answers>(); });
}

result<device_info> ask_the_driver() {
    KILN_TRY(auto const where, cuda::context::of(0));
    return where->info();
}

void forget_gpu() {
    auto& a = answers();
    std::scoped_lock const turn{a.asking.get()};
    std::scoped_lock const lock{a.mutex};
    a.current.store(nullptr);
    a.ratio.store(-1);
}

}  // namespace

void set_gpu_probe(gpu_probe how) {
    auto& a = answers();
    std::scoped_lock const turn{a.asking.get()};
    std::scoped_lock const lock{a.mutex};
    a.probe = std::move(how);
    a.current.store(nullptr);
    a.ratio.store(-1);
}

int gpu_f32_per_f64() {
    auto& known = answers().ratio;
    if (known.load(std::memory_order_relaxed) < 0) {
        auto const& there = gpu_answer();
        known.store(there ? f32_per_f64(there->ordinal).value_or(0) : 0, std::memory_order_relaxed);
    }
    return known.load(std::memory_order_relaxed);
}

void set_f32_per_f64(std::optional<int> ratio) { answers().ratio.store(ratio.value_or(-1)); }

void reload_settings() { read_settings(); }

result<device_info> const& gpu_answer() {
    auto& a = answers();
    if (auto const* known = a.current.load(std::memory_order_acquire)) return *known;
    std::scoped_lock const turn{a.asking.get()};
    if (auto const* known = a.current.load(std::memory_order_acquire)) return *known;
    auto const probe = [&] {
        std::scoped_lock const lock{a.mutex};
        return a.probe;
    }();
    auto fresh = std::make_unique<result<device_info> const>(probe ? probe() : ask_the_driver());
    std::scoped_lock const lock{a.mutex};
    a.all.push_back(std::move(fresh));
    a.current.store(a.all.back().get(), std::memory_order_release);
    return *a.all.back();
}

}  // namespace runtime

std::string_view name_of(execution_mode mode) noexcept {
    switch (mode) {
        case execution_mode::automatic: return "auto";
        case execution_mode::cpu: return "cpu";
        case execution_mode::gpu: return "gpu";
    }
    return "unknown";
}

result<execution_mode> parse_execution_mode(std::string_view text) {
    for (auto const mode : {execution_mode::automatic, execution_mode::cpu, execution_mode::gpu})
        if (text == name_of(mode)) return mode;
    return fail(errc::invalid_argument, "'{}' is not an execution mode; write auto, cpu or gpu", text);
}

execution_mode requested_mode() {
    if (runtime::scoped_mode) return *runtime::scoped_mode;
    return static_cast<execution_mode>(runtime::setting(runtime::called.mode, runtime::preset.mode));
}

void set_execution_mode(std::optional<execution_mode> mode) {
    runtime::called.mode.store(mode ? static_cast<int>(*mode) : -1);
    runtime::forget_gpu();
}

scoped_execution_mode::scoped_execution_mode(execution_mode mode) noexcept
    : outer_{std::exchange(runtime::scoped_mode, mode)} {}
scoped_execution_mode::~scoped_execution_mode() { runtime::scoped_mode = outer_; }

result<device_info> usable_gpu() { return runtime::gpu_answer(); }

bool determinism_requested() {
    return runtime::scoped_determinism ||
           runtime::setting(runtime::called.determinism, runtime::preset.determinism) == 1;
}
void set_determinism(std::optional<bool> on) { runtime::called.determinism.store(runtime::encode(on)); }
deterministic_scope::deterministic_scope() noexcept : outer_{std::exchange(runtime::scoped_determinism, true)} {}
deterministic_scope::~deterministic_scope() { runtime::scoped_determinism = outer_; }

bool strict() { return runtime::setting(runtime::called.strict, runtime::preset.strict) == 1; }
void set_strict(std::optional<bool> on) { runtime::called.strict.store(runtime::encode(on)); }

}  // namespace kiln
