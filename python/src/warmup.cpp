// SPDX-License-Identifier: Apache-2.0
// Saying what will be needed, waiting for it, learning it from a run.
#include "gil.hpp"
#include "module.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/catalogue.hpp>
#include <kiln/plan.hpp>
#include <kiln/profile.hpp>

namespace kiln::python {

namespace nb = nanobind;

namespace {

std::vector<want> wants_of(nb::handle what) {
    std::vector<want> out;
    for (nb::handle const one : what) {
        if (nb::isinstance<nb::str>(one)) out.emplace_back(nb::cast<std::string>(one));
        else if (nb::isinstance<want>(one)) out.push_back(nb::cast<want const&>(one));
        else out.emplace_back(nb::cast<unit const&>(one));
    }
    return out;
}

std::vector<target> targets_of(std::vector<std::string> const& archs) {
    std::vector<target> out;
    for (auto const& a : archs) out.push_back(target::parse(a).value());
    return out;
}

warm_report wait_for(plan const& p, seconds timeout) {
    auto const begun = std::chrono::steady_clock::now();
    warm_report last;
    (void)in_slices(timeout, [&](std::chrono::milliseconds slice) -> result<void> {
        last = p.ensure_warm(slice);
        bool waiting = false;
        for (auto const& c : last.cold)
            waiting = waiting || c.state == work_state::queued || c.state == work_state::compiling || c.state == work_state::loading;
        if (!waiting) return {};
        return error{errc::timeout, "not all is warm"};
    });
    last.waited_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return last;
}

}  // namespace

void bind_warmup(nb::module_& m) {
    nb::class_<cold_item>(m, "ColdItem")
        .def_ro("name", &cold_item::name)
        .def_ro("target", &cold_item::target)
        .def_prop_ro("state", [](cold_item const& c) { return std::string{kiln::name_of(c.state)}; })
        .def_ro("why", &cold_item::why)
        .def_ro("log", &cold_item::log)
        .def_prop_ro("code", [](cold_item const& c) { return c.code ? std::optional{std::string{kiln::name_of(*c.code)}} : std::nullopt; })
        .def("__repr__", [](cold_item const& c) { return "<" + c.name + ": " + std::string{kiln::name_of(c.state)} + ">"; });
    nb::class_<warm_report>(m, "WarmReport", "What is warm, what is not, and why.")
        .def("__bool__", &warm_report::warm)
        .def_ro("cold", &warm_report::cold)
        .def_ro("total", &warm_report::total)
        .def_prop_ro("waited", [](warm_report const& r) { return r.waited_ms * 1e-3; }, "Seconds.")
        .def("__str__", &warm_report::text)
        .def("_repr_html_", [](nb::handle self) { return nb::cast<std::string>(nb::module_::import_("kiln._views").attr("report_html")(self)); })
        .def("__repr__", [](warm_report const& r) { return "<kiln.WarmReport: " + r.text() + ">"; });
    nb::class_<plan>(m, "PlanOf")
        .def("__init__", [](plan* at, std::string name, nb::handle what, std::vector<std::string> const& archs, int device) {
            demand_options how{.targets = targets_of(archs), .device = device, .consumer = name};
            new (at) plan{std::move(name), wants_of(what), std::move(how)};
        }, nb::arg("name"), nb::arg("what"), nb::arg("archs"), nb::arg("device"))
        .def("prepare", [](plan const& p) { without_gil const unlocked; p.prepare(); })
        .def("ensure_warm", &wait_for, nb::arg("timeout").none())
        .def("cold", [](plan const& p) { without_gil const unlocked; return p.cold(); });

    m.def("demand", [](nb::handle what, std::vector<std::string> const& archs, int device, std::string consumer) {
        auto wants = wants_of(what);
        demand_options how{.targets = targets_of(archs), .device = device, .consumer = std::move(consumer)};
        without_gil const unlocked;
        (void)demand(std::move(wants), std::move(how));
    }, nb::arg("what"), nb::arg("archs"), nb::arg("device"), nb::arg("consumer"));
    nb::class_<recording>(m, "Recording").def("stop", &recording::stop).def("check", [](recording const& r) { r.written().value(); });
    m.def("record", [](std::filesystem::path const& file) { without_gil const unlocked; return record_profile(file.native()); });
    m.def("write_profile", [](std::string const& file, nb::handle what) {
        auto const wants = wants_of(what);
        auto const done = [&] { without_gil const unlocked; return write_profile(file, wants); }();
        done.value();
    });
    m.def("replay", [](std::filesystem::path const& file, std::vector<std::string> const& archs) {
        demand_options how{.targets = targets_of(archs)};
        auto const done = [&] { without_gil const unlocked; return replay_profile(file.native(), std::move(how)); }().value();
        return nb::make_tuple(done.demanded, done.stale);
    }, nb::arg("file"), nb::arg("archs"));
    m.def("catalogue", [] {
        nb::list out;
        for (auto const& s : catalogue()) {
            nb::dict one;
            one["name"] = s.name, one["pack"] = s.pack, one["kind"] = s.kind, one["types"] = s.types, one["operator"] = s.by;
            out.append(one);
        }
        return out;
    });
}

}  // namespace kiln::python
