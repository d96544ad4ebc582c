// SPDX-License-Identifier: Apache-2.0
// What happened and what there is: status, events, devices, where operations run.
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <kiln/activity.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::python {

namespace nb = nanobind;

namespace {

nb::dict row_of(unit_status const& u) {
    nb::dict out;
    out["name"] = text_of(u.name);
    out["target"] = u.target;
    out["state"] = std::string{kiln::name_of(u.state)};
    out["origin"] = u.from ? nb::object{nb::cast(std::string{kiln::name_of(*u.from)})} : nb::none();
    out["miss"] = text_of(u.miss);
    out["consumers"] = text_of(u.consumers);
    out["compile"] = u.compile_ms * 1e-3;
    out["load"] = u.load_ms * 1e-3;
    out["waits"] = u.waits;
    out["blocked"] = u.blocked_ms * 1e-3;
    out["bytes"] = u.bytes;
    out["error"] = text_of(u.error);
    out["log"] = text_of(u.log);
    return out;
}

nb::dict status_of() {
    auto const now = [] { without_gil const unlocked; return status(); }();
    nb::dict out;
    out["ready"] = now.ready, out["compiling"] = now.compiling, out["loading"] = now.loading, out["queued"] = now.queued;
    out["failed"] = now.failed, out["deferred"] = now.deferred, out["compiled"] = now.compiled;
    out["waits"] = now.waits, out["blocked"] = now.blocked_ms * 1e-3;
    nb::list units;
    for (auto const& u : now.units) units.append(row_of(u));
    out["units"] = units;
    return out;
}

nb::list recent(std::string const& kind) {
    auto const all = event_log::process().recent();
    nb::list out;
    for (auto const& e : all) {
        if (!kind.empty() && kind != kiln::name_of(e.kind)) continue;
        nb::dict one;
        one["sequence"] = e.sequence;
        one["time"] = static_cast<double>(e.time_ns) * 1e-9;
        one["kind"] = std::string{kiln::name_of(e.kind)};
        one["unit"] = text_of(e.unit.view());
        one["target"] = text_of(e.target.view());
        one["reason"] = text_of(e.reason.view());
        one["detail"] = text_of(e.detail.view());
        one["duration"] = static_cast<double>(e.duration_ns) * 1e-9;
        one["value"] = e.value;
        out.append(one);
    }
    return out;
}

// What another process decided for this one, as it told it.
void tell(std::string const& kind, std::string const& unit, std::string const& target, std::string const& reason, std::string const& detail, std::uint64_t key,
          std::uint64_t request, std::int64_t duration_ns, std::int64_t value, std::int64_t time_ns) {
    event e{.unit = unit, .target = target, .reason = reason, .detail = detail, .key = key, .request = request, .duration_ns = duration_ns, .value = value, .time_ns = time_ns};
    for (int i = 0; i <= static_cast<int>(event_kind::note); ++i)
        if (kind == kiln::name_of(static_cast<event_kind>(i))) e.kind = static_cast<event_kind>(i);
    without_gil const unlocked;
    event_log::process().emit(e);
}

// A scope of C++ as a with block, which may be entered again inside of itself. It is a thread's: where it does not end on the one that began it, it
// stays there for as long as that thread lives.
template <class Scope>
class block {
public:
    block() = default;
    block(block const&) = delete;
    block& operator=(block const&) = delete;
    ~block() {
        for (auto& one : begun_) leave_elsewhere(one);
    }
    void enter() { begun_.push_back({.on = this_thread(), .scope = std::make_unique<counted>()}); }
    // What was tried inside is told, unless something else is on its way out already.
    void exit(nb::handle thrown) {
        if (begun_.empty()) return;
        auto last = std::move(begun_.back());
        begun_.pop_back();
        if (leave_elsewhere(last))
            throw error{errc::invalid_argument, "this block was begun by another thread, and what it forbids stays forbidden there: end it where it was begun"};
        if (thrown.is_none()) last.scope->check().value();
    }

private:
    struct counted : Scope {
        counted() { waits_are_forbidden += std::is_same_v<Scope, no_sync>; }
        ~counted() { waits_are_forbidden -= std::is_same_v<Scope, no_sync>; }
    };
    struct begun {
        std::uint64_t on;
        std::unique_ptr<counted> scope;
    };
    // The system's own numbers come again.
    static std::uint64_t this_thread() {
        static std::atomic<std::uint64_t> last{0};
        thread_local auto const number = ++last;
        return number;
    }
    static bool leave_elsewhere(begun& one) {
        if (one.on == this_thread()) return false;
        (void)one.scope.release();
        return true;
    }

    std::vector<begun> begun_;
};
template <class Scope>
void bind_block(nb::module_& m, char const* name, char const* doc) {
    nb::class_<block<Scope>>(m, name, doc)
        .def(nb::init<>())
        .def("__enter__", [](nb::handle self) { nb::cast<block<Scope>&>(self).enter(); return nb::borrow(self); })
        .def("__exit__", [](block<Scope>& b, nb::handle type, nb::handle, nb::handle) { b.exit(type); }, nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none());
}

nb::dict activity_now() {
    auto const a = activity_so_far();
    nb::dict out;
    out["transfers_to_device"] = a.transfers_to_device, out["bytes_to_device"] = a.bytes_to_device;
    out["transfers_to_host"] = a.transfers_to_host, out["bytes_to_host"] = a.bytes_to_host;
    out["synchronisations"] = a.synchronisations, out["allocations"] = a.allocations, out["allocated_bytes"] = a.allocated_bytes;
    out["dispatched_to_gpu"] = a.dispatched_to_gpu, out["dispatched_to_cpu"] = a.dispatched_to_cpu, out["fallbacks"] = a.fallbacks;
    return out;
}

}  // namespace

void bind_views(nb::module_& m) {
    bind_block<no_sync>(m, "no_sync", "with kiln.no_sync(): a wait for the GPU inside, of Kiln and on this thread, is kiln.Forbidden.");
    bind_block<no_transfers>(m, "no_transfers", "with kiln.no_transfers(): a copy between host and device inside, of Kiln and on this thread, is kiln.Forbidden.");
    m.def("activity", &activity_now);
    m.def("tell_cpu", [](std::string const& operation, std::string const& why) {
        event_log::process().emit({.kind = event_kind::dispatched, .unit = operation, .target = "cpu", .reason = why});
    });
    m.def("tell", &tell);
    m.def("status", &status_of);
    m.def("events", &recent);
    m.def("event_kinds", [] {
        nb::list out;
        for (int i = 0; i <= static_cast<int>(event_kind::note); ++i) out.append(std::string{kiln::name_of(static_cast<event_kind>(i))});
        return out;
    });
    m.def("devices", [] {
        nb::list out;
        auto const found = [] { without_gil const unlocked; return devices(); }();
        for (auto const& d : found.value()) {
            nb::dict one;
            one["ordinal"] = d.ordinal, one["name"] = d.name, one["target"] = d.target(), one["memory"] = d.memory_bytes;
            one["multiprocessors"] = d.multiprocessors, one["uuid"] = d.uuid_text();
            out.append(one);
        }
        return out;
    });
    m.def("execution_mode", [] { return std::string{kiln::name_of(requested_mode())}; });
    m.def("set_execution_mode", [](std::optional<std::string> const& mode) {
        set_execution_mode(mode ? std::optional{parse_execution_mode(*mode).value()} : std::nullopt);
    }, nb::arg("mode").none());
}

}  // namespace kiln::python
