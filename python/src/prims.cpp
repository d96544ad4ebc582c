// SPDX-License-Identifier: Apache-2.0
// Primitives: a handle is made once and called with arrays of any library. What allocates outputs and keeps handles is Python
// (kiln/_prims.py); a call with `out` does not leave this file.
#include "arrays.hpp"
#include "gil.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/prims/untyped.hpp>

#include <cstring>
#include <span>

namespace kiln::python {

namespace {

using prims::bounds;
using prims::gather;
using prims::merge_sort;
using prims::radix_sort;
using prims::reduce;
using prims::scan;
using prims::segmented_reduce;
using prims::select;
using prims::transform;
using prims::unique_by_key;

scalar scalar_by_name(std::string const& name) {
    static std::pair<char const*, scalar> const all[] = {
        {"int8", scalar::i8},     {"uint8", scalar::u8},   {"int16", scalar::i16},    {"uint16", scalar::u16},
        {"int32", scalar::i32},   {"uint32", scalar::u32}, {"int64", scalar::i64},    {"uint64", scalar::u64},
        {"float16", scalar::f16}, {"bfloat16", scalar::bf16}, {"float32", scalar::f32}, {"float64", scalar::f64},
        {"bool", scalar::u8},
    };
    for (auto const& [text, kind] : all)
        if (name == text) return kind;
    throw error{errc::unsupported, "items of type '" + name + "' are not known; there are int8 to int64, uint8 to uint64, float16, "
                                   "bfloat16, float32, float64, bool and kiln.struct"};
}

// A handle is made in steps (find, compile, link, load), each of which may take another way when a deadline passes: so it has
// no deadline of its own, and only the waiting for it does.
template <class Handle, class Make>
Handle make_handle(int device, seconds timeout, Make make) {
    prim_options how;
    how.device = device;
    how.wait.who = "Python";
    return in_background(timeout, [how, make] { return make(how); }).value();
}

// What one call has in common: arrays of the handle's types, in order, on its device; then work without the lock.
class call {
public:
    call(prims::handle const& by, nb::handle stream, std::initializer_list<array const*> arrays) : on_{stream, arrays} {
        for (auto const* a : arrays) {
            if (a == nullptr) continue;
            want_contiguous(*a);
            if (!a->on_device())
                throw error{errc::invalid_argument, std::string{a->argument()} + " is " + a->describe() + "; this handle takes arrays "
                                                                                                          "on cuda:" + std::to_string(by.device())};
            if (a->device() != by.device())
                throw error{errc::invalid_argument, std::string{a->argument()} + " is " + a->describe() + ", the handle is for cuda:" +
                                                        std::to_string(by.device())};
        }
    }
    template <class Work>
    void run(Work work) {
        auto const done = [&] {
            without_gil const unlocked;
            return work(on_.get());
        }();
        done.value();
        on_.done();
    }

private:
    call_stream on_;
};

void want_items(array const& a, std::size_t needed) {
    if (a.items() < needed)
        throw error{errc::invalid_argument, std::string{a.argument()} + " has room for " + std::to_string(a.items()) + " items, " +
                                                std::to_string(needed) + " are needed"};
}

void want_type(array const& a, element_type const& type) {
    if (type.kind == scalar::record ? a.type().bits / 8 * static_cast<std::size_t>(a.type().lanes) != 0 : scalar_of(a.type(), a.argument()) == type.kind)
        return;
    throw error{errc::invalid_argument, std::string{a.argument()} + " is " + a.describe() + ", the handle is for " + name_of(type_of(type.kind))};
}

// One item by its bytes, as NumPy gives it: the start of a scan.
struct item_bytes {
    alignas(16) std::array<std::byte, 64> bytes{};
    void const* get() const { return bytes.data(); }
};
item_bytes item_of(std::optional<nb::bytes> const& given) {
    item_bytes out;
    if (given) std::memcpy(out.bytes.data(), given->c_str(), std::min(given->size(), out.bytes.size()));
    return out;
}

template <class T>
struct typed {
    T handle;
    element_type type{};
    element_type other{};
};

std::size_t count_of(array const& a, element_type const& type) {
    if (type.kind != scalar::record) return a.items();
    auto const bytes = a.items() * (a.type().bits / 8U);
    return bytes / type.size;
}

std::optional<array> maybe(nb::handle object, char const* argument) {
    if (object.is_none()) return std::nullopt;
    return std::make_optional<array>(object, argument);
}
array const* pointer(std::optional<array> const& a) { return a ? &*a : nullptr; }

using scan_object = typed<scan>;
void run_scan(scan_object const& by, nb::handle x, nb::handle out, std::optional<nb::bytes> init, nb::handle stream) {
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to);
    auto const n = count_of(in, by.type);
    want_items(to, in.items());
    auto const start = item_of(init);
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), to.data(), n, start.get(), {}); });
}

using reduce_object = typed<reduce>;
void run_reduce(reduce_object const& by, nb::handle x, nb::handle out, std::optional<nb::bytes> init, nb::handle stream) {
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to), want_items(to, 1);
    auto const start = item_of(init);
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), count_of(in, by.type), to.data(), start.get(), {}); });
}

using segmented_object = typed<segmented_reduce>;
void run_segmented(segmented_object const& by, nb::handle x, nb::handle offsets, nb::handle out, std::optional<nb::bytes> init,
                   nb::handle stream) {
    array const in{x, "x"};
    array const at{offsets, "offsets"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &at, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to);
    auto const kind = scalar_of(at.type(), "offsets");
    if (kind != scalar::i32 && kind != scalar::i64 && kind != scalar::u32 && kind != scalar::u64)
        throw error{errc::invalid_argument, "offsets are " + name_of(at.type()) + "; they must be integers of 32 or 64 bits"};
    if (at.items() == 0) throw error{errc::invalid_argument, "offsets must have one item more than there are segments"};
    auto const width = at.type().bits / 8U;
    auto const segments = at.items() - 1;
    want_items(to, segments);
    auto const start = item_of(init);
    prims::segment_offsets const where{
        .begins = at.data(), .ends = static_cast<char const*>(at.data()) + width, .count = segments, .width = width};
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), count_of(in, by.type), where, to.data(), start.get(), {}); });
}

using select_object = typed<select>;
void run_select(select_object const& by, nb::handle x, nb::handle mask, nb::handle out, nb::handle count, nb::handle stream) {
    auto const in = maybe(x, "x");
    auto const keep = maybe(mask, "mask");
    array const to{out, "out"};
    array const kept{count, "count"};
    call with{by.handle, stream, {pointer(in), pointer(keep), &to, &kept}};
    want_writable(to), want_writable(kept);
    if (in) want_type(*in, by.type);
    if (keep && keep->type().bits != 8)
        throw error{errc::invalid_argument, "mask is " + keep->describe() + "; it must be of bool or 8-bit integers"};
    if (kept.type().bits != 64 || kept.items() < 1)
        throw error{errc::invalid_argument, "count is " + kept.describe() + "; it must be one 64-bit integer"};
    auto const n = in ? count_of(*in, by.type) : keep->items();
    if (keep && keep->items() != n)
        throw error{errc::invalid_argument, "mask has " + std::to_string(keep->items()) + " items, x " + std::to_string(n)};
    want_items(to, in ? in->items() : n);
    with.run([&](stream_ref on) {
        return by.handle.run(on, {.in = in ? in->data() : nullptr,
                                  .mask = keep ? static_cast<std::uint8_t const*>(keep->data()) : nullptr,
                                  .n = n,
                                  .out = to.data(),
                                  .count = static_cast<std::uint64_t*>(kept.data())});
    });
}

using bounds_object = typed<bounds>;
void run_bounds(bounds_object const& by, nb::handle sorted, nb::handle queries, nb::handle out, nb::handle stream) {
    array const in{sorted, "sorted"};
    array const asked{queries, "queries"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &asked, &to}};
    want_type(in, by.type), want_type(asked, by.type), want_writable(to), want_items(to, asked.items());
    auto const width = to.type().bits / 8U;
    if (width != 4 && width != 8) throw error{errc::invalid_argument, "out is " + to.describe() + "; it must be of 32 or 64-bit integers"};
    with.run([&](stream_ref on) {
        return by.handle.run(on, {.sorted = in.data(),
                                  .n = count_of(in, by.type),
                                  .queries = asked.data(),
                                  .count = count_of(asked, by.type),
                                  .out = to.data(),
                                  .index_width = width});
    });
}

template <class Sort>
void run_sort(typed<Sort> const& by, nb::handle keys, nb::handle values, nb::handle keys_out, nb::handle values_out,
              nb::handle count, nb::handle stream) {
    array const in{keys, "keys"};
    array const to{keys_out, "keys_out"};
    auto const with_values = maybe(values, "values");
    auto const values_to = maybe(values_out, "values_out");
    auto const kept = maybe(count, "count");
    call with{by.handle, stream, {&in, &to, pointer(with_values), pointer(values_to), pointer(kept)}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to), want_items(to, in.items());
    if ((by.other.size != 0) != with_values.has_value() || with_values.has_value() != values_to.has_value())
        throw error{errc::invalid_argument, by.other.size != 0 ? "this handle sorts keys with values: pass values and values_out"
                                                               : "this handle takes keys alone: make one with a value type"};
    if (with_values) {
        if (with_values->items() != in.items())
            throw error{errc::invalid_argument, "values has " + std::to_string(with_values->items()) + " items, keys " + std::to_string(in.items())};
        want_writable(*values_to), want_items(*values_to, in.items());
    }
    prims::sort_call const what{.keys_in = in.data(),
                                .keys_out = to.data(),
                                .values_in = with_values ? with_values->data() : nullptr,
                                .values_out = values_to ? values_to->data() : nullptr,
                                .n = count_of(in, by.type)};
    with.run([&](stream_ref on) {
        if constexpr (std::is_same_v<Sort, unique_by_key>)
            return by.handle.run(on, what, static_cast<std::uint64_t*>(kept->data()));
        else return by.handle.run(on, what);
    });
}

using transform_object = typed<transform>;
void run_transform(transform_object const& by, nb::handle x, nb::handle out, nb::handle stream) {
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.other), want_writable(to), want_items(to, in.items());
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), to.data(), count_of(in, by.type)); });
}

using gather_object = typed<gather>;
void run_gather(gather_object const& by, nb::handle x, nb::handle index, nb::handle out, nb::handle stream) {
    array const in{x, "x"};
    array const at{index, "index"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &at, &to}};
    want_type(in, by.type), want_type(at, by.other), want_type(to, by.type), want_writable(to), want_items(to, at.items());
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), at.data(), to.data(), at.items()); });
}

template <class T>
nb::class_<typed<T>> bind_handle(nb::module_& m, char const* name) {
    return nb::class_<typed<T>>(m, name)
        .def_prop_ro("name", [](typed<T> const& h) { return h.handle.name(); })
        .def_prop_ro("device", [](typed<T> const& h) { return h.handle.device(); })
        .def_prop_ro("origin", [](typed<T> const& h) { return std::string{kiln::name_of(h.handle.from())}; })
        .def("__repr__", [](typed<T> const& h) {
            return "<kiln handle '" + h.handle.name() + "' on cuda:" + std::to_string(h.handle.device()) + ">";
        });
}

}  // namespace

void bind_prims(nb::module_& m) {
    nb::class_<element_type>(m, "ElementType")
        .def_static("scalar", [](std::string const& name) { return prims::type_of(scalar_by_name(name)); })
        .def_static("record",
                    [](std::string name, std::string definition, std::size_t size, std::size_t align) {
                        return element_type{scalar::record, std::move(name), std::move(definition), size, align};
                    })
        .def_static("none", [] { return element_type{}; })
        .def_ro("size", &element_type::size);
    nb::class_<op>(m, "Operator")
        .def_static("expression", [](std::string text) { return op{std::move(text)}; })
        .def_static("builtin", [](std::string const& name) { return op::builtin(name); })
        .def_static("function", &op::function)
        .def_static("ltoir",
                    [](std::string symbol, nb::bytes image) {
                        auto const* const at = reinterpret_cast<std::byte const*>(image.c_str());
                        return op::ltoir(std::move(symbol), {at, at + image.size()});
                    })
        .def("with_bytes", [](op const& by, element_type const& type, nb::bytes state) {
            return by.with_bytes(type, std::as_bytes(std::span{state.c_str(), state.size()}));
        });

    auto const none = [] { return nb::none(); };
    bind_handle<scan>(m, "Scan").def("__call__", &run_scan, nb::arg("x"), nb::arg("out"), nb::arg("init") = none(), nb::arg("stream") = none());
    bind_handle<reduce>(m, "Reduce").def("__call__", &run_reduce, nb::arg("x"), nb::arg("out"), nb::arg("init") = none(), nb::arg("stream") = none());
    bind_handle<segmented_reduce>(m, "SegmentedReduce")
        .def("__call__", &run_segmented, nb::arg("x"), nb::arg("offsets"), nb::arg("out"), nb::arg("init") = none(), nb::arg("stream") = none());
    bind_handle<select>(m, "Select").def("__call__", &run_select, nb::arg("x").none(), nb::arg("mask").none(), nb::arg("out"), nb::arg("count"), nb::arg("stream") = none());
    bind_handle<bounds>(m, "Bounds").def("__call__", &run_bounds, nb::arg("sorted"), nb::arg("queries"), nb::arg("out"), nb::arg("stream") = none());
    bind_handle<radix_sort>(m, "RadixSort")
        .def("__call__", &run_sort<radix_sort>, nb::arg("keys"), nb::arg("values").none(), nb::arg("keys_out"), nb::arg("values_out").none(), nb::arg("count") = none(), nb::arg("stream") = none());
    bind_handle<merge_sort>(m, "MergeSort")
        .def("__call__", &run_sort<merge_sort>, nb::arg("keys"), nb::arg("values").none(), nb::arg("keys_out"), nb::arg("values_out").none(), nb::arg("count") = none(), nb::arg("stream") = none());
    bind_handle<unique_by_key>(m, "UniqueByKey")
        .def("__call__", &run_sort<unique_by_key>, nb::arg("keys"), nb::arg("values").none(), nb::arg("keys_out"), nb::arg("values_out").none(), nb::arg("count"), nb::arg("stream") = none());
    bind_handle<transform>(m, "Transform").def("__call__", &run_transform, nb::arg("x"), nb::arg("out"), nb::arg("stream") = none());
    bind_handle<gather>(m, "Gather").def("__call__", &run_gather, nb::arg("x"), nb::arg("index"), nb::arg("out"), nb::arg("stream") = none());

    m.def("make_scan", [](bool inclusive, element_type const& type, op const& by, int device, seconds timeout) {
        auto const form = inclusive ? prims::scan_form::inclusive : prims::scan_form::exclusive;
        return scan_object{make_handle<scan>(device, timeout, [=](prim_options const& how) { return scan::make(form, type, by, how); }), type};
    }, nb::arg("inclusive"), nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_reduce", [](element_type const& type, op const& by, int device, seconds timeout) {
        return reduce_object{make_handle<reduce>(device, timeout, [=](prim_options const& how) { return reduce::make(type, by, how); }), type};
    }, nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_segmented_reduce", [](element_type const& type, op const& by, int device, seconds timeout) {
        return segmented_object{make_handle<segmented_reduce>(device, timeout, [=](prim_options const& how) { return segmented_reduce::make(type, by, how); }), type};
    }, nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_select", [](bool indices, element_type const& type, std::optional<op> const& by, int device, seconds timeout) {
        auto const form = indices ? prims::select_form::indices : prims::select_form::items;
        return select_object{make_handle<select>(device, timeout, [=](prim_options const& how) { return select::make(form, type, by ? &*by : nullptr, how); }), type};
    }, nb::arg("indices"), nb::arg("type"), nb::arg("by").none(), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_bounds", [](bool upper, element_type const& type, op const& by, int device, seconds timeout) {
        auto const side = upper ? prims::bound_side::upper : prims::bound_side::lower;
        return bounds_object{make_handle<bounds>(device, timeout, [=](prim_options const& how) { return bounds::make(side, type, by, how); }), type};
    }, nb::arg("indices"), nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_radix_sort", [](element_type const& key, element_type const& value, bool descending, int device, seconds timeout) {
        auto const order = descending ? prims::sort_order::descending : prims::sort_order::ascending;
        return typed<radix_sort>{make_handle<radix_sort>(device, timeout, [=](prim_options const& how) { return radix_sort::make(key, value, order, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("descending"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_merge_sort", [](element_type const& key, element_type const& value, op const& by, int device, seconds timeout) {
        return typed<merge_sort>{make_handle<merge_sort>(device, timeout, [=](prim_options const& how) { return merge_sort::make(key, value, by, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_unique_by_key", [](element_type const& key, element_type const& value, op const& by, int device, seconds timeout) {
        return typed<unique_by_key>{make_handle<unique_by_key>(device, timeout, [=](prim_options const& how) { return unique_by_key::make(key, value, by, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_transform", [](element_type const& from, element_type const& to, op const& by, int device, seconds timeout) {
        return transform_object{make_handle<transform>(device, timeout, [=](prim_options const& how) { return transform::make(from, to, by, how); }), from, to};
    }, nb::arg("from"), nb::arg("to"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_gather", [](element_type const& type, element_type const& index, int device, seconds timeout) {
        return gather_object{make_handle<gather>(device, timeout, [=](prim_options const& how) { return gather::make(type, index, how); }), type, index};
    }, nb::arg("type"), nb::arg("index"), nb::arg("device"), nb::arg("timeout").none());
}

}  // namespace kiln::python
