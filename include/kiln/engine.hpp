// SPDX-License-Identifier: Apache-2.0
//
// The engine finds or makes what a unit needs: artifacts for any target, also on machines without a GPU, and kernels
// loaded on a device, ready to launch. However many threads ask, a unit is compiled once; across processes about once.
// Everything may be called from any thread. Functions ending in _sync block until there is an answer or the deadline
// has passed; the others return at once. An engine starts nothing (thread, process, dlopen, file) before it is asked.
//
//     auto unit  = kiln::engine::process().get_sync(saxpy).value();            // find or compile, load, resolve
//     auto launch = unit.kernel<void(int, float, float const*, float*)>("saxpy").value();
//     launch(stream, {{blocks}, {256}}, n, 2.0f, x, y).value();                 // a handle: no lookup, lock or allocation
#pragma once

#include <kiln/artifact.hpp>
#include <kiln/event.hpp>
#include <kiln/kernel.hpp>
#include <kiln/pending.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace KILN_PUBLIC kiln {

// Where an artifact came from.
enum class provenance { compiled, memory, disk, bundle, fleet };
[[nodiscard]] std::string_view name_of(provenance p) noexcept;

struct obtained {
    artifact_ptr what;
    provenance from = provenance::compiled;
    double ms = 0;     // from asking to answer
    std::string note;  // why this one, when it is not exactly what was asked for: "sm_90 cubin for sm_91", ...
};

// What to do when it is not ready: wait this long, then errc::timeout; the work goes on. {.deadline = 0ms} never waits for a
// compiler. Every wait is an event with `who`, for what, how long, and which miss caused it.
struct wait_options {
    std::chrono::milliseconds deadline{std::chrono::minutes{10}};
    std::string who = {};
};

// What to link with nvJitLink: artifacts of kind ltoir (or ptx, cubin), in order.
struct link_request {
    std::string name;
    kiln::target target;
    std::vector<artifact_ptr> inputs;
    std::vector<std::string> kernels = {};  // entry points to keep; none = all
    std::vector<std::string> exports = {};
    std::vector<std::string> options = {};
};

// A unit loaded on one device. Cheap to copy; keeps what is loaded alive.
class ready_unit {
public:
    struct state;
    explicit ready_unit(std::shared_ptr<state const> s) noexcept : state_{std::move(s)} {}

    [[nodiscard]] int device() const noexcept;
    [[nodiscard]] std::vector<kernel_info> const& kernels() const noexcept;
    [[nodiscard]] std::vector<constant_info> const& constants() const noexcept;
    [[nodiscard]] kiln::target target() const noexcept;
    [[nodiscard]] provenance from() const noexcept;

    // By the name it was declared with: "saxpy", "scale<float>". A lookup: do it once and keep the handle.
    [[nodiscard]] result<untyped_kernel> kernel(std::string_view name) const;
    // The same with its parameter types, checked against the image where the driver can tell.
    template <class Signature>
    [[nodiscard]] result<kiln::kernel<Signature>> kernel(std::string_view name) const {
        auto found = kernel(name);
        if (!found) return std::move(found).error();
        return found->template typed<Signature>();
    }

    // A __device__, __constant__ or __managed__ variable: "taps", "ns::taps", "table<float>", with or without "&" before it.
    // Static ones cannot be reached. errc::not_found with what there is.
    [[nodiscard]] result<device_variable> variable(std::string_view name) const;

    [[nodiscard]] state const& internals() const noexcept { return *state_; }

private:
    std::shared_ptr<state const> state_;
};

struct engine_options {
    // Knobs by the names of the environment variables; they win over environment and file: {{"KILN_WORKERS", "2"}}. A program
    // that has a compiler of its own names it: {{"KILN_NVRTC", "/opt/app/lib/libnvrtc.so.13"}}.
    std::vector<std::pair<std::string, std::string>> settings = {};
    event_log* events = nullptr;  // default: event_log::process()
};

struct engine_status {
    // Artifacts asked for and answered: found, compiled or failed. Whoever joins one in progress is not counted again, and what
    // was withdrawn not at all.
    std::uint64_t requests = 0;
    std::uint64_t from_memory = 0, from_disk = 0, from_bundle = 0, from_fleet = 0;
    std::uint64_t compiled = 0;
    std::uint64_t headers_made = 0, headers_reused = 0;  // of those compiled: with a precompiled header made, used
    std::uint64_t failed = 0;
    std::uint64_t blocked = 0;  // callers that had to wait: for a compile, or for another machine
    double blocked_ms = 0;
    std::uint64_t in_progress = 0;
};

class engine {
public:
    // The process's engine, configured by environment and file, made at the first call. At exit it kills its workers and
    // gives what is not sent 0.2 s, and what is not on disk 0.5 s for each entry, 5 s in all; a forked child gets an engine of its own.
    [[nodiscard]] static engine& process();

    explicit engine(engine_options options = {});
    ~engine();
    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    // An artifact for a target; needs no GPU.
    [[nodiscard]] result<obtained> artifact_sync(unit const& u, target t, wait_options how = {});
    [[nodiscard]] pending<obtained> artifact(unit const& u, target t);

    // Looks in memory, on disk and in bundles; never compiles, and waits for no server. nullopt: nobody has it.
    [[nodiscard]] result<std::optional<obtained>> find(unit const& u, target t);

    // The unit on a device: artifact, load, kernels resolved.
    [[nodiscard]] result<ready_unit> get_sync(unit const& u, int device = 0, wait_options how = {});
    [[nodiscard]] pending<ready_unit> get(unit const& u, int device = 0);

    // An artifact on a device, wherever it came from: artifact_sync, artifact::from_bytes, link_sync. It is loaded as it is: its
    // headers are not compared with any, and nothing is compiled in its place. LTO-IR is linked before: link_sync.
    [[nodiscard]] result<ready_unit> load_sync(kiln::artifact const& what, int device = 0);

    // errc::invalid_argument without inputs.
    [[nodiscard]] result<obtained> link_sync(link_request const& what, wait_options how = {});

    // Waits until what was made is also on disk, and on the servers that are shared; false if the deadline came first. A server that
    // says nothing is not waited for.
    bool flush_sync(std::chrono::milliseconds deadline = std::chrono::seconds{10});

    [[nodiscard]] engine_status status() const;

    // For Kiln's own tools and packs.
    struct state;
    [[nodiscard]] state& internals() noexcept { return *state_; }

private:
    std::unique_ptr<state> state_;
};

}  // namespace kiln
