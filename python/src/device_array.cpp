// SPDX-License-Identifier: Apache-2.0
#include "device_array.hpp"

#include "arrays.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <memory>
#include <span>

namespace kiln::python {

namespace {

dlpack::data_type type_by_name(std::string const& name) {
    for (auto const kind : {scalar::i8, scalar::u8, scalar::i16, scalar::u16, scalar::i32, scalar::u32, scalar::i64, scalar::u64,
                            scalar::f16, scalar::bf16, scalar::f32, scalar::f64}) {
        if (name == name_of(type_of(kind))) return type_of(kind);
    }
    if (name == "bool") return {dlpack::boolean, 8, 1};
    throw error{errc::unsupported, "items of type '" + name + "' are not known"};
}

storage storage_of(device_memory owned, std::size_t bytes) {
    auto const keep = std::make_shared<device_memory>(std::move(owned));
    return storage::borrow(keep->get(), bytes, residency::device, keep->device(), keep);
}

device_array make(std::vector<std::int64_t> shape, std::string const& type, int device) {
    device_array out{{}, std::move(shape), type_by_name(type)};
    auto room = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(1, out.type.bits / 8);
    for (auto const extent : out.shape) {
        if (extent < 0 || extent > room) throw error{errc::invalid_argument, "an array cannot have " + std::to_string(extent) + " items" + (extent < 0 ? "" : " in one of its dimensions")};
        if (extent > 0) room /= extent;
    }
    without_gil const unlocked;
    out.memory = storage_of(device_memory::make(std::max<std::size_t>(out.bytes(), 1), device).value(), out.bytes());
    return out;
}

device_array from_host(nb::handle object, int device) {
    array const host{object, "x"};
    want_contiguous(host);
    if (host.on_device()) throw error{errc::invalid_argument, "x is " + host.describe() + ": it is on a device already"};
    if (host.type().lanes != 1 || host.type().bits == 0 || host.type().bits % 8 != 0)
        throw error{errc::unsupported, "x has items of " + std::to_string(host.type().bits) + " bits, " + std::to_string(host.type().lanes) + " together: they must be of whole bytes, one by one"};
    device_array out{{}, {}, host.type()};
    for (int i = 0; i < host.dimensions(); ++i) out.shape.push_back(host.extent(i));
    without_gil const unlocked;
    auto memory = device_memory::make(std::max<std::size_t>(out.bytes(), 1), device).value();
    auto const on = stream::make(device).value();
    wait_sync(device, on);  // for what the default stream has to do first
    memory.upload_sync(on, std::span{static_cast<std::byte const*>(host.data()), out.bytes()}).value();
    out.memory = storage_of(std::move(memory), out.bytes());
    return out;
}

void to_host(device_array const& from, nb::handle object, nb::handle stream) {
    array const host{object, "out"};
    want_contiguous(host), want_writable(host);
    if (host.on_device() || host.items() * (host.type().bits / 8U) < from.bytes())
        throw error{errc::invalid_argument, "out is " + host.describe() + ": " + std::to_string(from.bytes()) + " bytes of host memory are needed"};
    if (from.bytes() == 0) return;
    stream_ref const on = stream.is_none() ? default_stream : stream_ref{stream_of(stream)};
    without_gil const unlocked;
    if (from.on_device()) wait_sync(from.memory.device(), on);
    auto const there = from.memory.to_host_sync(on).value();
    std::memcpy(host.data(), there.data(), from.bytes());
}

// What another library holds of it.
struct shared_tensor {
    dlpack::managed_versioned versioned{};
    dlpack::managed legacy{};
    device_array keep;
    std::optional<CUstream_st*> consumer;

    // What the consumer has queued comes before the memory is used again.
    ~shared_tensor() {
        if (!consumer || ending.load(std::memory_order_relaxed)) return;
        auto mark = device_event::make(keep.memory.device(), event_timing::off);
        if (mark && mark->record(*consumer)) (void)mark->hold(default_stream);
    }
};

template <class Managed>
Managed* tensor_of(shared_tensor* all, Managed* managed) {
    bool const there = all->keep.on_device();
    managed->tensor = {.data = all->keep.memory.data(),
                       .device = {there ? dlpack::cuda : dlpack::cpu, there ? all->keep.memory.device() : 0},
                       .ndim = static_cast<std::int32_t>(all->keep.shape.size()),
                       .dtype = all->keep.type,
                       .shape = all->keep.shape.data(),
                       .strides = nullptr,
                       .byte_offset = 0};
    managed->context = all;
    managed->deleter = [](Managed* m) { delete static_cast<shared_tensor*>(m->context); };
    return managed;
}

// The consumer has not taken it.
template <class Managed>
void drop(PyObject* capsule, char const* name) {
    if (PyCapsule_IsValid(capsule, name) == 0) return;
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
}

// (kind, ordinal), as DLPack has it.
nb::tuple device_of(device_array const& a) {
    return a.on_device() ? nb::make_tuple(static_cast<int>(dlpack::cuda), a.memory.device()) : nb::make_tuple(static_cast<int>(dlpack::cpu), 0);
}

bool is_newer(nb::handle max_version) {
    if (!PyTuple_Check(max_version.ptr()) || PyTuple_Size(max_version.ptr()) != 2 || !PyLong_Check(PyTuple_GetItem(max_version.ptr(), 0)))
        throw nb::type_error("max_version is a pair of numbers, (1, 0)");
    auto const major = PyLong_AsLong(PyTuple_GetItem(max_version.ptr(), 0));
    if (major == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return major >= 1;
}

nb::object capsule_of(device_array const& from, nb::handle stream, nb::handle max_version, nb::handle device, nb::handle copy) {
    if (!device.is_none() && !device.equal(device_of(from))) throw nb::buffer_error("this array is on another device: to_host_sync() or from_host_sync() bring it there");
    if (copy.ptr() == Py_True) throw nb::buffer_error("this array is shared, not copied: copy what comes of it");
    bool const newer = !max_version.is_none() && is_newer(max_version);
    std::optional<CUstream_st*> consumer;
    // -1: the consumer orders the work itself. Else what was queued on the default stream comes before the consumer's.
    if (from.on_device() && !stream.is_none() && !(PyLong_Check(stream.ptr()) && nb::cast<std::int64_t>(stream) == -1)) {
        auto* const other = stream_of(stream);
        if (other != nullptr && other != default_stream.get()) {
            order(from.memory.device(), default_stream, other);
            consumer = other;
        }
    }
    // Before DLPack 1.0 nobody can be told. Of a device's memory most libraries still speak that, and others must be able to read it.
    if (from.read_only && !newer && !from.on_device()) throw nb::buffer_error("this array is read-only, which DLPack tells from version 1.0 on: pass max_version=(1, 0)");
    auto* const all = new shared_tensor{.keep = from, .consumer = consumer};
    if (newer) {
        auto* const managed = tensor_of(all, &all->versioned);
        managed->version = {1, 0};
        managed->flags = from.read_only ? dlpack::flag_read_only : 0;
        return nb::steal(PyCapsule_New(managed, "dltensor_versioned", [](PyObject* c) { drop<dlpack::managed_versioned>(c, "dltensor_versioned"); }));
    }
    return nb::steal(PyCapsule_New(tensor_of(all, &all->legacy), "dltensor", [](PyObject* c) { drop<dlpack::managed>(c, "dltensor"); }));
}

std::string interface_type(dlpack::data_type type) {
    if (type.code == dlpack::bfloat) throw nb::attribute_error("__cuda_array_interface__ has no word for bfloat16; use __dlpack__");
    char const letter = type.code == dlpack::signed_int ? 'i' : type.code == dlpack::floating ? 'f' : type.code == dlpack::boolean ? 'b' : 'u';
    return (type.bits == 8 ? "|" : "<") + std::string{letter} + std::to_string(type.bits / 8);
}

nb::tuple shape_of(device_array const& a) { return nb::tuple(nb::cast(a.shape)); }

nb::dict interface_of(device_array const& a) {
    nb::dict out;
    out["shape"] = shape_of(a);
    out["typestr"] = interface_type(a.type);
    out["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(a.memory.data()), a.read_only);
    out["strides"] = nb::none();
    out["version"] = 3;
    return out;
}

nb::object numpy_of(nb::handle self) {
    auto const numpy = nb::module_::import_("numpy");
    auto const& a = nb::cast<device_array const&>(self);
    if (!a.on_device()) return numpy.attr("asarray")(self);
    nb::object const out = numpy.attr("empty")(shape_of(a), name_of(a.type));
    to_host(a, out, nb::none());
    return out;
}

device_array first_of(device_array const& a, std::int64_t n) {
    if (a.shape.size() != 1 || n < 0 || n > a.shape[0])
        throw error{errc::invalid_argument, "first: there are " + std::to_string(a.shape.empty() ? 0 : a.shape[0]) + " items in " + std::to_string(a.shape.size()) + " dimensions; " +
                                                std::to_string(n) + " of one were asked for"};
    device_array out{{}, {n}, a.type, a.read_only};
    out.memory = storage::borrow(a.memory.data(), out.bytes(), a.memory.where(), a.memory.device(), std::make_shared<storage>(a.memory));
    return out;
}

}  // namespace

void bind_device_array(nb::module_& m) {
    nb::class_<device_array>(m, "Array", nb::is_weak_referenceable(), "Memory of Kiln's own. Other libraries take it by DLPack or by their array interface, without a copy.")
        .def_static("empty", &make, nb::arg("shape"), nb::arg("dtype"), nb::arg("device") = 0)
        .def_static("from_host_sync", &from_host, nb::arg("x"), nb::arg("device") = 0)
        .def_prop_ro("shape", &shape_of)
        .def_prop_ro("dtype", [](device_array const& a) { return name_of(a.type); })
        .def_prop_ro("nbytes", &device_array::bytes)
        .def_prop_ro("ordinal", [](device_array const& a) { return a.on_device() ? a.memory.device() : -1; }, "Of its device; -1 for the host.")
        .def("to_host_sync", &to_host, nb::arg("out"), nb::arg("stream") = nb::none())
        .def("numpy_sync", &numpy_of, nb::sig("def numpy_sync(self) -> typing.Any"), "A NumPy array: the same memory where it is on the host, else a copy that is waited for.")
        .def("first", &first_of, nb::arg("n"), "The first n items of one dimension: the same memory.")
        .def("__len__", [](device_array const& a) { return a.shape.empty() ? 0 : a.shape[0]; })
        .def("__reduce__", [](device_array const&) -> nb::tuple { throw nb::type_error("a kiln.Array is not copied or pickled by itself: numpy_sync() gives an array that can be"); })
        .def("__dlpack_device__", &device_of)
        .def("__dlpack__", &capsule_of,
             nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
        .def_prop_ro("__cuda_array_interface__", [](device_array const& a) {
            if (!a.on_device()) throw nb::attribute_error("this array is on the host");
            auto out = interface_of(a);
            out["stream"] = 1;
            return out;
        })
        .def_prop_ro("__array_interface__", [](device_array const& a) {
            if (a.on_device()) throw nb::attribute_error("this array is on a device: numpy_sync() brings it to the host");
            return interface_of(a);
        })
        .def("__repr__", [](device_array const& a) {
            std::string shape;
            for (auto const extent : a.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
            return "<kiln.Array " + name_of(a.type) + "[" + shape + "]" + (a.on_device() ? " on cuda:" + std::to_string(a.memory.device()) : " on the host") + ">";
        });
}

}  // namespace kiln::python
