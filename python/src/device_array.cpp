// SPDX-License-Identifier: Apache-2.0
// kiln.Array: device memory of Kiln's own, for callers whose arrays are on the host and for libraries whose arrays cannot be
// written to. Other libraries take it by DLPack or __cuda_array_interface__, without a copy.
#include "arrays.hpp"
#include "gil.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>

namespace kiln::python {

namespace {

struct device_array {
    std::shared_ptr<device_memory> memory;
    std::vector<std::int64_t> shape;
    dlpack::data_type type;

    [[nodiscard]] std::size_t bytes() const {
        std::size_t n = type.bits / 8U;
        for (auto const extent : shape) n *= static_cast<std::size_t>(extent);
        return n;
    }
};

dlpack::data_type type_by_name(std::string const& name) {
    for (auto const kind : {scalar::i8, scalar::u8, scalar::i16, scalar::u16, scalar::i32, scalar::u32, scalar::i64, scalar::u64,
                            scalar::f16, scalar::bf16, scalar::f32, scalar::f64}) {
        if (name == name_of(type_of(kind))) return type_of(kind);
    }
    if (name == "bool") return {dlpack::boolean, 8, 1};
    throw error{errc::unsupported, "items of type '" + name + "' are not known"};
}

device_array make(std::vector<std::int64_t> shape, std::string const& type, int device) {
    device_array out{nullptr, std::move(shape), type_by_name(type)};
    for (auto const extent : out.shape)
        if (extent < 0) throw error{errc::invalid_argument, "an array cannot have " + std::to_string(extent) + " items"};
    without_gil const unlocked;
    out.memory = std::make_shared<device_memory>(device_memory::make(std::max<std::size_t>(out.bytes(), 1), device).value());
    return out;
}

device_array from_host(nb::handle object, int device) {
    array const host{object, "x"};
    want_contiguous(host);
    if (host.on_device()) throw error{errc::invalid_argument, "x is " + host.describe() + ": it is on a device already"};
    device_array out{nullptr, {}, host.type()};
    for (int i = 0; i < host.dimensions(); ++i) out.shape.push_back(host.extent(i));
    without_gil const unlocked;
    out.memory = std::make_shared<device_memory>(device_memory::make(std::max<std::size_t>(out.bytes(), 1), device).value());
    auto const on = stream::make(device).value();
    out.memory->upload_sync(on, std::span{static_cast<std::byte const*>(host.data()), out.bytes()}).value();
    return out;
}

void to_host(device_array const& from, nb::handle object, nb::handle stream) {
    array const host{object, "out"};
    want_contiguous(host), want_writable(host);
    if (host.on_device() || host.items() * (host.type().bits / 8U) < from.bytes())
        throw error{errc::invalid_argument, "out is " + host.describe() + ": " + std::to_string(from.bytes()) + " bytes of host memory are needed"};
    stream_ref const on = stream.is_none() ? stream_ref{reinterpret_cast<CUstream_st*>(1)} : stream_ref{stream_of(stream)};
    without_gil const unlocked;
    from.memory->download_sync(on, std::span{static_cast<std::byte*>(host.data()), from.bytes()}).value();
}

// What another library holds of it.
struct shared_tensor {
    dlpack::managed_versioned versioned{};
    dlpack::managed legacy{};
    device_array keep;
};

template <class Managed>
Managed* tensor_of(shared_tensor* all, Managed* managed) {
    managed->tensor = {.data = all->keep.memory->get(),
                       .device = {dlpack::cuda, all->keep.memory->device()},
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

nb::object capsule_of(device_array const& from, nb::handle stream, nb::handle max_version) {
    // -1: the consumer orders the work itself. Else what was queued on the default stream comes before the consumer's.
    if (!stream.is_none() && !(PyLong_Check(stream.ptr()) && nb::cast<std::int64_t>(stream) == -1)) {
        auto* const consumer = stream_of(stream);
        if (consumer != nullptr && consumer != reinterpret_cast<CUstream_st*>(1)) {
            auto mark = device_event::make(from.memory->device(), event_timing::off).value();
            mark.record(stream_ref{reinterpret_cast<CUstream_st*>(1)}).value();
            mark.hold(consumer).value();
        }
    }
    auto* const all = new shared_tensor{.keep = from};
    bool const newer = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
    if (newer) {
        auto* const managed = tensor_of(all, &all->versioned);
        managed->version = {1, 0};
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

}  // namespace

void bind_device_array(nb::module_& m) {
    nb::class_<device_array>(m, "Array", "Device memory of Kiln's own. Other libraries take it by DLPack or __cuda_array_interface__.")
        .def_static("empty", &make, nb::arg("shape"), nb::arg("dtype"), nb::arg("device") = 0)
        .def_static("from_host_sync", &from_host, nb::arg("x"), nb::arg("device") = 0)
        .def_prop_ro("shape", &shape_of)
        .def_prop_ro("dtype", [](device_array const& a) { return name_of(a.type); })
        .def_prop_ro("nbytes", &device_array::bytes)
        .def_prop_ro("ordinal", [](device_array const& a) { return a.memory->device(); })
        .def("to_host_sync", &to_host, nb::arg("out"), nb::arg("stream") = nb::none())
        .def("__len__", [](device_array const& a) { return a.shape.empty() ? 0 : a.shape[0]; })
        .def("__dlpack_device__", [](device_array const& a) { return nb::make_tuple(static_cast<int>(dlpack::cuda), a.memory->device()); })
        .def("__dlpack__", [](device_array const& a, nb::handle stream, nb::handle max_version, nb::handle, nb::handle) { return capsule_of(a, stream, max_version); },
             nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
        .def_prop_ro("__cuda_array_interface__", [](device_array const& a) {
            nb::dict out;
            out["shape"] = shape_of(a);
            out["typestr"] = interface_type(a.type);
            out["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(a.memory->get()), false);
            out["strides"] = nb::none();
            out["version"] = 3;
            out["stream"] = 1;
            return out;
        })
        .def("__repr__", [](device_array const& a) {
            std::string shape;
            for (auto const extent : a.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
            return "<kiln.Array " + name_of(a.type) + "[" + shape + "] on cuda:" + std::to_string(a.memory->device()) + ">";
        });
}

}  // namespace kiln::python
