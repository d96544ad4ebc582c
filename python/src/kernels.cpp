// SPDX-License-Identifier: Apache-2.0
// Units, what they become, and launching it.
#include "calls.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/engine.hpp>

#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

namespace kiln::python {

namespace {

dim dim_of(nb::handle given, char const* argument) {
    if (PyLong_Check(given.ptr())) return dim{nb::cast<unsigned>(given)};
    if (PyTuple_Check(given.ptr()) || PyList_Check(given.ptr())) {
        auto const n = nb::len(given);
        if (n >= 1 && n <= 3) {
            unsigned size[3] = {1, 1, 1};
            for (std::size_t i = 0; i < n; ++i) size[i] = nb::cast<unsigned>(given[i]);
            return {size[0], size[1], size[2]};
        }
    }
    throw nb::type_error((std::string{argument} + " must be an int or one to three of them").c_str());
}

std::string place_text(std::size_t index) { return "argument " + std::to_string(index + 1); }

// What is known of a kernel's parameter: its bytes by its image, what they mean where the caller said so.
enum class meaning : std::uint8_t { unknown, integer, natural, floating, bfloat, pointer, record };
struct parameter {
    meaning means = meaning::unknown;
    std::size_t size = 0;  // 0: not known
};

parameter parameter_of(std::pair<std::string, std::size_t> const& said) {
    static std::pair<char const*, meaning> const all[] = {{"int", meaning::integer},   {"uint", meaning::natural},    {"float", meaning::floating},
                                                          {"bfloat", meaning::bfloat}, {"pointer", meaning::pointer}, {"record", meaning::record}};
    for (auto const& [word, means] : all)
        if (said.first == word) return {means, said.second};
    throw error{errc::internal, "parameters are no " + said.first};
}

bool is_number(meaning m) { return m == meaning::floating || m == meaning::bfloat; }
bool is_whole(meaning m) { return m == meaning::integer || m == meaning::natural; }

char const* name_of(meaning m) {
    switch (m) {
        case meaning::integer:
        case meaning::natural: return "an integer";
        case meaning::floating:
        case meaning::bfloat: return "a float";
        case meaning::pointer: return "a pointer";
        case meaning::record: return "a record";
        default: return "of no known type";
    }
}

[[noreturn]] void refuse(std::size_t index, std::string const& what, meaning wanted) {
    throw error{errc::invalid_argument, place_text(index) + " is " + what + ", and the parameter is " + name_of(wanted)};
}

// An argument as the kernel gets it.
struct packed {
    std::array<std::byte, 64> bytes;  // the first `size` of them have a value
    std::size_t size = 0;

    template <class T>
    void put(T value) {
        std::memcpy(bytes.data(), &value, sizeof value);
        size = sizeof value;
    }
};

[[noreturn]] void refuse_size(nb::handle value, std::size_t size, std::size_t index) {
    throw error{errc::invalid_argument, place_text(index) + " is " + nb::cast<std::string>(nb::str(value)) +
                                            ", which does not fit into the parameter's " + std::to_string(size) + " bytes"};
}

void pack_int(packed& out, nb::handle value, parameter to, std::size_t index) {
    auto const size = to.size;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        throw error{errc::invalid_argument, place_text(index) + " is an int, which does not fit into the parameter's " + std::to_string(size) +
                                                " bytes: pass a NumPy scalar or record of that size"};
    int overflow = 0;
    auto const number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    std::uint64_t bits = static_cast<std::uint64_t>(number);
    bool fits = overflow == 0;
    if (overflow > 0) {
        bits = PyLong_AsUnsignedLongLong(value.ptr());
        fits = PyErr_Occurred() == nullptr && size == 8 && to.means != meaning::integer;
        PyErr_Clear();
    } else if (fits && size < 8) {
        auto const half = std::int64_t{1} << (size * 8 - 1);
        auto const end = to.means == meaning::integer ? half : 2 * half;
        fits = number >= -half && number < end;
    }
    if (to.means == meaning::natural && overflow == 0 && number < 0) fits = false;
    if (!fits) refuse_size(value, size, index);
    std::memcpy(out.bytes.data(), &bits, size);  // little-endian, as every GPU's host is
    out.size = size;
}

void pack_float(packed& out, nb::handle value, parameter to, std::size_t index) {
    auto const number = PyFloat_AsDouble(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    auto const narrow = static_cast<float>(number);
    constexpr double f16_end = 65520;  // what rounds to infinity
    bool const fits = !std::isfinite(number) || to.size == 8 || (to.size == 2 && to.means != meaning::bfloat ? std::abs(number) < f16_end : std::isfinite(narrow));
    if (to.size != 2 && to.size != 4 && to.size != 8)
        throw error{errc::invalid_argument, place_text(index) + " is a float, the parameter has " + std::to_string(to.size) + " bytes"};
    if (!fits) refuse_size(value, to.size, index);
    if (to.size == 8) out.put(number);
    else if (to.size == 4) out.put(narrow);
    else if (to.means == meaning::bfloat) out.put(to_bf16(narrow));
    else out.put(to_f16(narrow));
}

// NumPy's scalars and structs, ctypes' values: their bytes.
bool pack_buffer(packed& out, nb::handle value, parameter to, std::size_t index) {
    Py_buffer buffer{};
    if (PyObject_CheckBuffer(value.ptr()) == 0) return false;
    if (PyObject_GetBuffer(value.ptr(), &buffer, PyBUF_FULL_RO) != 0) {
        PyErr_Clear();
        return false;
    }
    bool const small = buffer.ndim == 0 && buffer.len > 0 && static_cast<std::size_t>(buffer.len) <= out.bytes.size();
    std::string_view const format = buffer.format != nullptr ? buffer.format : "";
    auto const letter = format.empty() || format.size() > 2 ? '\0' : format.back();  // of one number, with or without its byte order
    if (small) {
        std::memcpy(out.bytes.data(), buffer.buf, static_cast<std::size_t>(buffer.len));
        out.size = static_cast<std::size_t>(buffer.len);
    }
    PyBuffer_Release(&buffer);
    bool const floats = letter == 'e' || letter == 'f' || letter == 'd';
    bool const whole = letter != '\0' && std::string_view{"?bBhHiIlLqQnN"}.find(letter) != std::string_view::npos;
    if (small && ((floats && (is_whole(to.means) || to.means == meaning::pointer)) || (whole && is_number(to.means)) || ((floats || whole) && to.means == meaning::record)))
        refuse(index, floats ? "a float" : "an integer", to.means);
    return small;
}

class kernel_object {
public:
    // `said`: the parameters' types, where the caller knows them. errc::invalid_argument where the image has others.
    kernel_object(untyped_kernel kernel, std::string name, std::optional<std::vector<std::pair<std::string, std::size_t>>> const& said)
        : kernel_{std::move(kernel)}, name_{std::move(name)} {
        auto const sizes = kernel_.parameters().value();
        if (sizes || said) parameters_.emplace();
        if (said)
            for (auto const& one : *said) parameters_->push_back(parameter_of(one));
        else if (sizes)
            for (auto const size : *sizes) parameters_->push_back({meaning::unknown, size});
        if (said && sizes) want_sizes(*sizes);
        note_gpu_use();
    }

    // def kernel(grid, block, args=(), *, stream=None, shared=0, cluster=None, cooperative=False)
    static constexpr signature<7> how_called{"kernel", {"grid", "block", "args", "stream", "shared", "cluster", "cooperative"}, 2, 3};
    nb::object launch(decltype(how_called)::arguments const& given) const;

    [[nodiscard]] std::string const& name() const { return name_; }
    [[nodiscard]] untyped_kernel const& kernel() const { return kernel_; }
    [[nodiscard]] std::optional<std::vector<std::size_t>> sizes() const {
        if (!parameters_) return std::nullopt;
        std::vector<std::size_t> out;
        for (auto const& p : *parameters_) out.push_back(p.size);
        return out;
    }

    nb::object recipe = nb::none();  // a function and its arguments that make it again

private:
    void want_sizes(std::vector<std::size_t> const& sizes) const {
        if (sizes.size() != parameters_->size())
            throw error{errc::invalid_argument, "types: kernel '" + name_ + "' has " + std::to_string(sizes.size()) + " parameters, and " +
                                                    std::to_string(parameters_->size()) + " types came"};
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (sizes[i] != (*parameters_)[i].size)
                throw error{errc::invalid_argument, "types: parameter " + std::to_string(i + 1) + " of kernel '" + name_ + "' has " + std::to_string(sizes[i]) +
                                                        " bytes, and its type " + std::to_string((*parameters_)[i].size)};
    }
    void pack(packed& out, nb::handle given, parameter to, std::size_t index, std::vector<array>& held) const;

    untyped_kernel kernel_;
    std::string name_;
    std::optional<std::vector<parameter>> parameters_;  // nullopt: nobody tells
};

void kernel_object::pack(packed& out, nb::handle given, parameter to, std::size_t index, std::vector<array>& held) const {
    auto* const object = given.ptr();
    bool const is_bool = PyBool_Check(object);
    if (is_bool && (to.means == meaning::pointer || to.means == meaning::record)) refuse(index, "a bool", to.means);
    if (is_bool && (to.means == meaning::unknown || (is_whole(to.means) && to.size == 1))) {
        out.put(object == Py_True), out.size = 1;
    } else if (is_bool || PyLong_CheckExact(object)) {
        if (to.means == meaning::record) refuse(index, "an int", to.means);
        if (is_number(to.means)) pack_float(out, given, to, index);
        else pack_int(out, given, parameters_ ? to : parameter{to.means, 4}, index);
    } else if (PyFloat_CheckExact(object)) {
        if (to.means != meaning::unknown && !is_number(to.means)) refuse(index, "a float", to.means);
        pack_float(out, given, parameters_ ? to : parameter{to.means, 8}, index);
    } else if (given.is_none()) {
        if (to.means != meaning::unknown && to.means != meaning::pointer) refuse(index, "None", to.means);
        out.put(static_cast<void*>(nullptr));
    } else if (!pack_buffer(out, given, to, index)) {
        auto const& view = held.emplace_back(given, "an argument");
        if (to.means != meaning::unknown && to.means != meaning::pointer) refuse(index, view.describe(), to.means);
        if (!view.on_device())
            throw error{errc::invalid_argument, place_text(index) + " is " + view.describe() + ": a kernel reads device memory"};
        out.put(view.data());
        if (view.device() != kernel_.device())
            throw error{errc::invalid_argument, place_text(index) + " is " + view.describe() + ", the kernel is loaded on cuda:" +
                                                    std::to_string(kernel_.device())};
    }
    if (parameters_ && out.size != to.size)
        throw error{errc::invalid_argument, place_text(index) + " has " + std::to_string(out.size) + " bytes, parameter " +
                                                std::to_string(index + 1) + " of kernel '" + name_ + "' " + std::to_string(to.size) +
                                                ": pass a NumPy scalar of the right type"};
}

nb::object kernel_object::launch(decltype(how_called)::arguments const& how) const {
    auto const& [grid, block, arguments, stream, shared, cluster, cooperative] = how;
    constexpr std::size_t most = 128;
    if (!PyTuple_Check(arguments.ptr()) && !arguments.is_none()) throw nb::type_error("the kernel's arguments must be a tuple");
    auto const given = arguments.is_none() ? std::size_t{0} : static_cast<std::size_t>(PyTuple_Size(arguments.ptr()));
    if (given > most) throw error{errc::unsupported, "more than 128 arguments"};
    if (parameters_ && parameters_->size() != given)
        throw error{errc::invalid_argument, "kernel '" + name_ + "' has " + std::to_string(parameters_->size()) + " parameters, " +
                                                std::to_string(given) + " arguments came"};
    packed values[most];
    void* pointers[most + 1];
    std::vector<array> held;
    held.reserve(given);
    for (std::size_t i = 0; i < given; ++i) {
        pack(values[i], PyTuple_GetItem(arguments.ptr(), static_cast<Py_ssize_t>(i)), parameters_ ? (*parameters_)[i] : parameter{}, i, held);
        pointers[i] = values[i].bytes.data();
    }
    pointers[given] = nullptr;
    std::array<array const*, most> arrays;  // the first of them
    for (std::size_t i = 0; i < held.size(); ++i) arrays[i] = &held[i];
    call_stream on{stream, std::span<array const* const>{arrays.data(), held.size()}};
    launch_shape shape{.grid = dim_of(grid, "grid"), .block = dim_of(block, "block")};
    if (!shared.is_none()) shape.shared_bytes = nb::cast<unsigned>(shared);
    if (!cluster.is_none()) shape.cluster = dim_of(cluster, "cluster");
    if (cooperative.ptr() == Py_True) shape.kind = grid_kind::cooperative;
    auto const done = [&] {
        without_gil const unlocked;
        return kernel_.launch(on.get(), shape, pointers);
    }();
    done.value();
    on.done();
    return nb::none();
}

nb::object launch_kernel(kernel_object const& k, decltype(kernel_object::how_called)::arguments const& given) { return k.launch(given); }
PyType_Slot kernel_slots[] = {{Py_tp_call, reinterpret_cast<void*>(&called<kernel_object, kernel_object::how_called, &launch_kernel>)}, {0, nullptr}};

nb::bytes bytes_of(std::vector<std::byte> const& from) { return nb::bytes(from.data(), from.size()); }

ready_unit get(unit const& u, int device, seconds timeout) {
    auto const answer = [&] {
        without_gil const unlocked;
        return engine::process().get(u, device);
    }();
    return answer_of(answer, timeout);
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::class_<unit>(m, "UnitText")
        .def(
            "__init__",
            [](unit* at, std::string name, std::string source, std::vector<std::string> kernels, std::vector<std::string> options,
               std::vector<std::pair<std::string, std::string>> headers, std::vector<std::string> include_dirs,
               std::string directory, std::vector<std::string> exports) {
                unit u{.name = std::move(name),
                       .source = std::move(source),
                       .kernels = std::move(kernels),
                       .options = std::move(options),
                       .include_dirs = std::move(include_dirs),
                       .directory = std::move(directory),
                       .exports = std::move(exports)};
                for (auto& [header_name, text] : headers) u.headers.push_back({std::move(header_name), std::move(text)});
                new (at) unit{std::move(u)};
            });

    nb::class_<artifact>(m, "Artifact", "What a unit became for one target: an image and what is known about it.")
        .def_ro("unit", &artifact::unit)
        .def_prop_ro("target", [](artifact const& a) { return a.target.arch.name(); })
        .def_prop_ro("kind", [](artifact const& a) { return std::string{kiln::name_of(a.target.kind)}; })
        .def_ro("key", &artifact::key)
        .def_ro("compiler", &artifact::compiler)
        .def_ro("log", &artifact::log)
        .def_prop_ro("image", [](artifact const& a) { return bytes_of(a.image); }, "The bytes the driver loads.")
        .def_prop_ro("kernels",
                     [](artifact const& a) {
                         std::vector<std::string> out;
                         for (auto const& k : a.kernels) out.push_back(k.name);
                         return out;
                     })
        .def("to_bytes", [](artifact const& a) { return bytes_of(a.to_bytes()); }, "All of it, to be kept or sent; Artifact.from_bytes() reads it.")
        .def_static("from_bytes", [](nb::bytes const& from) { return artifact::from_bytes(std::as_bytes(std::span{from.c_str(), from.size()})).value(); }, nb::arg("bytes"))
        .def("__reduce__", [](artifact const& a) { return nb::make_tuple(nb::module_::import_("kiln._units").attr("_artifact_again"), nb::make_tuple(bytes_of(a.to_bytes()))); })
        .def_prop_ro("compile_seconds", [](artifact const& a) { return a.compile_ms * 1e-3; })
        .def("__repr__", [](artifact const& a) {
            return "<kiln.Artifact '" + a.unit + "' for " + a.target.arch.name() + ", " + std::to_string(a.image.size()) + " bytes>";
        });

    nb::class_<kernel_object>(m, "Kernel", nb::type_slots(kernel_slots),
                              "A kernel on one device: kernel(grid, block, args=(), *, stream=None, shared=0, cluster=None, cooperative=False) queues it\n"
                              "and returns. Arrays are passed by their address; an int or float takes the parameter's size.")
        .def_prop_ro("name", &kernel_object::name)
        .def_prop_ro("device", [](kernel_object const& k) { return k.kernel().device(); })
        .def_prop_ro("registers", [](kernel_object const& k) { return k.kernel().resources().registers; })
        .def_prop_ro("max_threads", [](kernel_object const& k) { return k.kernel().resources().max_threads; })
        .def_prop_ro("parameter_sizes", [](kernel_object const& k) { return k.sizes(); }, "Bytes of each; None if nobody tells.")
        .def_prop_rw("recipe", [](kernel_object const& k) { return k.recipe; }, [](kernel_object& k, nb::object what) { k.recipe = std::move(what); }, nb::arg().none(),
                     "A function and its arguments that make this kernel again: pickles hold it.")
        .def("__reduce__", [](kernel_object const& k) -> nb::tuple {
            if (k.recipe.is_none()) throw nb::type_error("a kernel of a unit that is loaded is not pickled: one that Unit.kernel() gave can be");
            return nb::cast<nb::tuple>(k.recipe);
        })
        .def("allow_shared", [](kernel_object const& k, std::size_t bytes) { k.kernel().allow_shared(bytes).value(); }, nb::arg("bytes"))
        .def("__repr__", [](kernel_object const& k) {
            return "<kiln.Kernel '" + k.name() + "' on cuda:" + std::to_string(k.kernel().device()) + ">";
        });

    nb::class_<ready_unit>(m, "ReadyUnit", "A unit loaded on one device.")
        .def("kernel", [](ready_unit const& u, std::string const& name, std::optional<std::vector<std::pair<std::string, std::size_t>>> const& types) {
            return kernel_object{u.kernel(name).value(), name, types};
        }, nb::arg("name"), nb::arg("types") = nb::none())
        .def_prop_ro("device", &ready_unit::device)
        .def_prop_ro("origin", [](ready_unit const& u) { return std::string{kiln::name_of(u.from())}; })
        .def_prop_ro("kernels", [](ready_unit const& u) {
            std::vector<std::string> out;
            for (auto const& k : u.kernels()) out.push_back(k.name);
            return out;
        });

    using answer = pending<ready_unit>;
    nb::class_<answer>(m, "PendingUnit")
        .def("done", &answer::ready)
        .def("result", [](answer const& a, seconds timeout) {
                return answer_of(a, timeout);
            }, nb::arg("timeout") = nb::none());

    m.def("get", &get, nb::arg("unit"), nb::arg("device"), nb::arg("timeout"));
    m.def("get_async", [](unit const& u, int device) {
        without_gil const unlocked;
        return engine::process().get(u, device);
    }, nb::arg("unit"), nb::arg("device"));
    m.def("artifact", [](unit const& u, std::string const& arch, std::string const& kind, seconds timeout) {
        auto const t = target::parse(arch, parse_kind(kind).value()).value();
        auto const answer = [&] {
            without_gil const unlocked;
            return engine::process().artifact(u, t);
        }();
        auto const got = answer_of(answer, timeout);
        return std::pair{*got.what, std::string{kiln::name_of(got.from)}};
    }, nb::arg("unit"), nb::arg("arch"), nb::arg("kind"), nb::arg("timeout").none());
}

}  // namespace kiln::python
