// SPDX-License-Identifier: Apache-2.0
// Primitives: a handle is made once and called with arrays of any library. What keeps handles and makes arrays is Python
// (kiln/_prims.py, kiln/_arrays.py); a call with `out` does not leave this file.
#include "calls.hpp"
#include "checks.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kiln/prims/wants.hpp>

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
    note_gpu_use();
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

// A handle with its types and what it was made of, for pickles.
template <class T>
struct typed {
    T handle;
    element_type type{};
    element_type other{};
    nb::object recipe = nb::none();
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

nb::object python_name(element_type const& type) {
    return type.kind == scalar::record ? nb::none() : nb::object{nb::cast(name_of(type_of(type.kind)))};
}

// What the caller gave to write to, or a new array of the input's library: `n` items, or as many as `like` has.
nb::object room(nb::handle given, nb::handle like, std::optional<std::size_t> n, nb::object const& type) {
    if (!given.is_none()) return nb::borrow(given);
    return nb::module_::import_("kiln._arrays").attr("empty_like")(like, n ? nb::object{nb::cast(*n)} : nb::none(), nb::arg("type") = type);
}

// One item by its bytes: the start of a scan.
struct item_bytes {
    alignas(16) std::array<std::byte, 64> bytes{};
    void const* get() const { return bytes.data(); }
};
item_bytes item_of(nb::handle value, element_type const& type) {
    item_bytes out;
    if (value.is_none()) return out;
    auto const given = nb::cast<nb::bytes>(nb::module_::import_("kiln._arrays").attr("item_bytes")(value, python_name(type)));
    std::memcpy(out.bytes.data(), given.c_str(), std::min(given.size(), out.bytes.size()));
    return out;
}

// ---- Calls: def scan(x, *, out=None, init=None, stream=None) ----

constexpr signature<4> scan_signature{"scan", {"x", "out", "init", "stream"}, 1, 1};
nb::object run_scan(typed<scan> const& by, decltype(scan_signature)::arguments const& given) {
    auto const& [x, given_out, init, stream] = given;
    auto out = room(given_out, x, {}, python_name(by.type));
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to);
    auto const n = count_of(in, by.type);
    want_items(to, in.items()), want_apart(to, {&in}, in_place::allowed);
    auto const start = item_of(init, by.type);
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), to.data(), n, start.get(), {}); });
    return out;
}

constexpr signature<4> reduce_signature{"reduce", {"x", "out", "init", "stream"}, 1, 1};
nb::object run_reduce(typed<reduce> const& by, decltype(reduce_signature)::arguments const& given) {
    auto const& [x, given_out, init, stream] = given;
    auto out = room(given_out, x, 1, python_name(by.type));
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to), want_items(to, 1), want_apart(to, {&in});
    auto const start = item_of(init, by.type);
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), count_of(in, by.type), to.data(), start.get(), {}); });
    return out;
}

constexpr signature<5> segmented_signature{"segmented_reduce", {"x", "offsets", "out", "init", "stream"}, 2, 2};
nb::object run_segmented(typed<segmented_reduce> const& by, decltype(segmented_signature)::arguments const& given) {
    auto const& [x, offsets, given_out, init, stream] = given;
    array const in{x, "x"};
    array const at{offsets, "offsets"};
    if (at.items() == 0) throw error{errc::invalid_argument, "offsets must have one item more than there are segments"};
    auto const segments = at.items() - 1;
    auto out = room(given_out, x, segments, python_name(by.type));
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &at, &to}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to), want_items(to, segments), want_apart(to, {&in, &at});
    auto const kind = scalar_of(at.type(), "offsets");
    if (kind != scalar::i32 && kind != scalar::i64 && kind != scalar::u32 && kind != scalar::u64)
        throw error{errc::invalid_argument, "offsets are " + name_of(at.type()) + "; they must be integers of 32 or 64 bits"};
    auto const width = at.type().bits / 8U;
    auto const start = item_of(init, by.type);
    prims::segment_offsets const where{
        .begins = at.data(), .ends = static_cast<char const*>(at.data()) + width, .count = segments, .width = width};
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), count_of(in, by.type), where, to.data(), start.get(), {}); });
    return out;
}

constexpr signature<5> select_signature{"select", {"x", "mask", "out", "count", "stream"}, 1, 2};
nb::object run_select(typed<select> const& by, decltype(select_signature)::arguments const& given) {
    auto const& [x, mask, given_out, given_count, stream] = given;
    auto const in = maybe(x, "x");
    auto const keep = maybe(mask, "mask");
    if (!in && !keep) throw error{errc::invalid_argument, "select: neither x nor a mask came"};
    auto const first = in ? x : mask;
    auto out = room(given_out, first, {}, in ? python_name(by.type) : nb::object{nb::str("int32")});
    auto const count = room(given_count, first, 1, nb::str("int64"));
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
    want_items(to, in ? in->items() : n), want_apart(to, {pointer(in), pointer(keep), &kept}), want_apart(kept, {pointer(in), pointer(keep)});
    with.run([&](stream_ref on) {
        return by.handle.run(on, {.in = in ? in->data() : nullptr,
                                  .mask = keep ? static_cast<std::uint8_t const*>(keep->data()) : nullptr,
                                  .n = n,
                                  .out = to.data(),
                                  .count = static_cast<std::uint64_t*>(kept.data())});
    });
    return nb::make_tuple(out, count);
}

constexpr signature<4> bounds_signature{"bounds", {"sorted", "queries", "out", "stream"}, 2, 2};
nb::object run_bounds(typed<bounds> const& by, decltype(bounds_signature)::arguments const& given) {
    auto const& [sorted, queries, given_out, stream] = given;
    auto out = room(given_out, queries, {}, nb::str("int64"));
    array const in{sorted, "sorted"};
    array const asked{queries, "queries"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &asked, &to}};
    want_type(in, by.type), want_type(asked, by.type), want_writable(to), want_items(to, asked.items()), want_apart(to, {&in, &asked});
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
    return out;
}

// Sorts and unique: keys with values, or keys alone.
template <class Sort>
nb::object run_pairs(typed<Sort> const& by, nb::handle keys, nb::handle values, nb::handle given_out, nb::handle given_values_out,
                     std::optional<nb::object> const& count, nb::handle stream) {
    if ((by.other.size != 0) == values.is_none())
        throw error{errc::invalid_argument, by.other.size != 0 ? "this handle takes keys with values: pass values"
                                                               : "this handle takes keys alone: make one with a value type"};
    auto out = room(given_out, keys, {}, python_name(by.type));
    auto values_out = values.is_none() ? nb::none() : room(given_values_out, values, {}, python_name(by.other));
    array const in{keys, "keys"};
    array const to{out, "out"};
    auto const with_values = maybe(values, "values");
    // There is no unique of keys alone: they are their own values, which nobody sees.
    if constexpr (std::is_same_v<Sort, unique_by_key>)
        if (!with_values) values_out = room(nb::none(), keys, {}, python_name(by.type));
    auto const values_to = maybe(values_out, "values_out");
    auto const kept = count ? maybe(*count, "count") : std::nullopt;
    call with{by.handle, stream, {&in, &to, pointer(with_values), pointer(values_to), pointer(kept)}};
    want_type(in, by.type), want_type(to, by.type), want_writable(to), want_items(to, in.items()), want_apart(to, {&in, pointer(with_values), pointer(values_to), pointer(kept)});
    if (kept) want_apart(*kept, {&in, pointer(with_values), pointer(values_to)});
    if (with_values) {
        if (with_values->items() != in.items())
            throw error{errc::invalid_argument, "values has " + std::to_string(with_values->items()) + " items, keys " + std::to_string(in.items())};
        want_writable(*values_to), want_items(*values_to, in.items()), want_apart(*values_to, {&in, pointer(with_values)});
    }
    prims::sort_call const what{.keys_in = in.data(),
                                .keys_out = to.data(),
                                .values_in = with_values ? with_values->data() : values_to ? in.data() : nullptr,
                                .values_out = values_to ? values_to->data() : nullptr,
                                .n = count_of(in, by.type)};
    with.run([&](stream_ref on) {
        if constexpr (std::is_same_v<Sort, unique_by_key>) return by.handle.run(on, what, static_cast<std::uint64_t*>(kept->data()));
        else return by.handle.run(on, what);
    });
    if (!count) return with_values ? nb::object{nb::make_tuple(out, values_out)} : out;
    return with_values ? nb::object{nb::make_tuple(out, values_out, *count)} : nb::object{nb::make_tuple(out, *count)};
}

constexpr signature<5> sort_signature{"sort", {"keys", "values", "out", "values_out", "stream"}, 1, 2};
template <class Sort>
nb::object run_sort(typed<Sort> const& by, decltype(sort_signature)::arguments const& given) {
    auto const& [keys, values, out, values_out, stream] = given;
    return run_pairs(by, keys, values, out, values_out, {}, stream);
}

constexpr signature<6> unique_signature{"unique_by_key", {"keys", "values", "out", "values_out", "count", "stream"}, 1, 2};
nb::object run_unique(typed<unique_by_key> const& by, decltype(unique_signature)::arguments const& given) {
    auto const& [keys, values, out, values_out, count, stream] = given;
    return run_pairs(by, keys, values, out, values_out, room(count, keys, 1, nb::str("int64")), stream);
}

constexpr signature<3> transform_signature{"transform", {"x", "out", "stream"}, 1, 1};
nb::object run_transform(typed<transform> const& by, decltype(transform_signature)::arguments const& given) {
    auto const& [x, given_out, stream] = given;
    auto out = room(given_out, x, {}, python_name(by.other));
    array const in{x, "x"};
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &to}};
    want_type(in, by.type), want_type(to, by.other), want_writable(to), want_items(to, in.items()), want_apart(to, {&in}, by.type.size == by.other.size ? in_place::allowed : in_place::refused);
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), to.data(), count_of(in, by.type)); });
    return out;
}

constexpr signature<4> gather_signature{"gather", {"x", "index", "out", "stream"}, 2, 2};
nb::object run_gather(typed<gather> const& by, decltype(gather_signature)::arguments const& given) {
    auto const& [x, index, given_out, stream] = given;
    array const in{x, "x"};
    array const at{index, "index"};
    auto out = room(given_out, x, at.items(), python_name(by.type));
    array const to{out, "out"};
    call with{by.handle, stream, {&in, &at, &to}};
    want_type(in, by.type), want_type(at, by.other), want_type(to, by.type), want_writable(to), want_items(to, at.items()), want_apart(to, {&in, &at});
    with.run([&](stream_ref on) { return by.handle.run(on, in.data(), at.data(), to.data(), at.items()); });
    return out;
}

template <class T, auto const& Signature, auto Run>
void bind_handle(nb::module_& m, char const* name, char const* doc) {
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&called<typed<T>, Signature, Run>)}, {0, nullptr}};
    nb::class_<typed<T>>(m, name, nb::type_slots(slots), doc)
        .def_prop_ro("name", [](typed<T> const& h) { return h.handle.name(); })
        .def_prop_ro("device", [](typed<T> const& h) { return h.handle.device(); })
        .def_prop_ro("origin", [](typed<T> const& h) { return std::string{kiln::name_of(h.handle.from())}; })
        .def_prop_rw("recipe", [](typed<T> const& h) { return h.recipe; }, [](typed<T>& h, nb::object what) { h.recipe = std::move(what); }, nb::arg().none(),
                     "A function and its arguments that make this handle again: pickles hold it.")
        .def("__reduce__", [](typed<T> const& h) { return nb::cast<nb::tuple>(h.recipe); })
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

    bind_handle<scan, scan_signature, &run_scan>(m, "Scan", "scan(x, *, out=None, init=None, stream=None)");
    bind_handle<reduce, reduce_signature, &run_reduce>(m, "Reduce", "reduce(x, *, out=None, init=None, stream=None)");
    bind_handle<segmented_reduce, segmented_signature, &run_segmented>(m, "SegmentedReduce", "reduce(x, offsets, *, out=None, init=None, stream=None)");
    bind_handle<select, select_signature, &run_select>(m, "Select", "select(x, mask=None, *, out=None, count=None, stream=None)");
    bind_handle<bounds, bounds_signature, &run_bounds>(m, "Bounds", "bounds(sorted, queries, *, out=None, stream=None)");
    bind_handle<radix_sort, sort_signature, &run_sort<radix_sort>>(m, "RadixSort", "sort(keys, values=None, *, out=None, values_out=None, stream=None)");
    bind_handle<merge_sort, sort_signature, &run_sort<merge_sort>>(m, "MergeSort", "sort(keys, values=None, *, out=None, values_out=None, stream=None)");
    bind_handle<unique_by_key, unique_signature, &run_unique>(m, "UniqueByKey", "unique(keys, values=None, *, out=None, values_out=None, count=None, stream=None)");
    bind_handle<transform, transform_signature, &run_transform>(m, "Transform", "transform(x, *, out=None, stream=None)");
    bind_handle<gather, gather_signature, &run_gather>(m, "Gather", "gather(x, index, *, out=None, stream=None)");

    m.def("make_scan", [](bool inclusive, element_type const& type, op const& by, int device, seconds timeout) {
        auto const form = inclusive ? prims::scan_form::inclusive : prims::scan_form::exclusive;
        return typed<scan>{make_handle<scan>(device, timeout, [=](prim_options const& how) { return scan::make(form, type, by, how); }), type};
    }, nb::arg("inclusive"), nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_reduce", [](element_type const& type, op const& by, int device, seconds timeout) {
        return typed<reduce>{make_handle<reduce>(device, timeout, [=](prim_options const& how) { return reduce::make(type, by, how); }), type};
    }, nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_segmented_reduce", [](element_type const& type, op const& by, int device, seconds timeout) {
        return typed<segmented_reduce>{make_handle<segmented_reduce>(device, timeout, [=](prim_options const& how) { return segmented_reduce::make(type, by, how); }), type};
    }, nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_select", [](bool indices, element_type const& type, std::optional<op> const& by, int device, seconds timeout) {
        auto const form = indices ? prims::select_form::indices : prims::select_form::items;
        return typed<select>{make_handle<select>(device, timeout, [=](prim_options const& how) { return select::make(form, type, by ? &*by : nullptr, how); }), type};
    }, nb::arg("indices"), nb::arg("type"), nb::arg("by").none(), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_bounds", [](bool upper, element_type const& type, op const& by, int device, seconds timeout) {
        auto const side = upper ? prims::bound_side::upper : prims::bound_side::lower;
        return typed<bounds>{make_handle<bounds>(device, timeout, [=](prim_options const& how) { return bounds::make(side, type, by, how); }), type};
    }, nb::arg("indices"), nb::arg("type"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_radix_sort", [](element_type const& key, element_type const& value, bool descending, int device, seconds timeout) {
        auto const order = descending ? prims::sort_order::descending : prims::sort_order::ascending;
        return typed<radix_sort>{make_handle<radix_sort>(device, timeout, [=](prim_options const& how) { return radix_sort::make(key, value, order, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("descending"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_merge_sort", [](element_type const& key, element_type const& value, op const& by, int device, seconds timeout) {
        return typed<merge_sort>{make_handle<merge_sort>(device, timeout, [=](prim_options const& how) { return merge_sort::make(key, value, by, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_unique_by_key", [](element_type const& key, element_type const& value, op const& by, int device, seconds timeout) {
        auto const beside = value.size != 0 ? value : key;
        return typed<unique_by_key>{make_handle<unique_by_key>(device, timeout, [=](prim_options const& how) { return unique_by_key::make(key, beside, by, how); }), key, value};
    }, nb::arg("key"), nb::arg("value"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_transform", [](element_type const& from, element_type const& to, op const& by, int device, seconds timeout) {
        return typed<transform>{make_handle<transform>(device, timeout, [=](prim_options const& how) { return transform::make(from, to, by, how); }), from, to};
    }, nb::arg("source"), nb::arg("to"), nb::arg("by"), nb::arg("device"), nb::arg("timeout").none());
    m.def("make_gather", [](element_type const& type, element_type const& index, int device, seconds timeout) {
        return typed<gather>{make_handle<gather>(device, timeout, [=](prim_options const& how) { return gather::make(type, index, how); }), type, index};
    }, nb::arg("type"), nb::arg("index"), nb::arg("device"), nb::arg("timeout").none());

    // What the makers above would make, to be demanded.
    nb::class_<want>(m, "Want").def_prop_ro("name", [](want const& w) { return w.name(); });
    m.def("want_scan", [](bool inclusive, element_type const& type, op const& by) {
        return prims::wanted_scan(inclusive ? prims::scan_form::inclusive : prims::scan_form::exclusive, type, by);
    });
    m.def("want_reduce", &prims::wanted_reduce);
    m.def("want_segmented_reduce", &prims::wanted_segmented_reduce);
    m.def("want_select", [](bool indices, element_type const& type, std::optional<op> const& by) {
        return prims::wanted_select(indices ? prims::select_form::indices : prims::select_form::items, type, by ? &*by : nullptr);
    }, nb::arg("indices"), nb::arg("type"), nb::arg("by").none());
    m.def("want_bounds", [](bool upper, element_type const& type, op const& by) {
        return prims::wanted_bounds(upper ? prims::bound_side::upper : prims::bound_side::lower, type, by);
    });
    m.def("want_radix_sort", [](element_type const& key, element_type const& value, bool descending) {
        return prims::wanted_radix_sort(key, value, descending ? prims::sort_order::descending : prims::sort_order::ascending);
    });
    m.def("want_merge_sort", &prims::wanted_merge_sort);
    m.def("want_unique_by_key", [](element_type const& key, element_type const& value, op const& by) {
        return prims::wanted_unique_by_key(key, value.size != 0 ? value : key, by);
    });
    m.def("want_transform", &prims::wanted_transform);
    m.def("want_gather", &prims::wanted_gather);
    // What a device would refuse is refused where the CPU does the work.
    m.def("want_stream", [](nb::handle stream) {
        if (!stream.is_none()) (void)stream_of(stream);
    }, nb::arg("stream").none());
}

}  // namespace kiln::python
