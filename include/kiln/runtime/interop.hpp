// SPDX-License-Identifier: Apache-2.0
//
// Buffers and columns to and from other libraries, without copying: DLPack tensors and the Arrow C device interface. What is
// exported keeps the memory alive until the other side releases it; what is imported is released with the last copy of the
// buffer. Work is handed over in stream order: exports of device data carry an event recorded on the stream, imports
// make the stream wait for theirs.
#pragma once

#include <kiln/runtime/buffer.hpp>
#include <kiln/scalar.hpp>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
extern "C" {
struct ArrowSchema {
    char const* format;
    char const* name;
    char const* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    void const** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};
}
#endif

#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE
typedef std::int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_CUDA_MANAGED 13
extern "C" {
struct ArrowDeviceArray {
    ArrowArray array;
    std::int64_t device_id;
    ArrowDeviceType device_type;
    void* sync_event;  // a CUevent*, or null
    std::int64_t reserved[3];
};
}
#endif

namespace KILN_PUBLIC kiln {

// The layout of dlpack.h's DLManagedTensor: reinterpret_cast between the two.
namespace dlpack {
struct device {
    std::int32_t type;  // as Arrow's: 1 host, 2 device, 3 pinned, 13 managed
    std::int32_t id;
};
struct data_type {
    std::uint8_t code;  // 0 signed, 1 unsigned, 2 float, 4 bfloat16
    std::uint8_t bits;
    std::uint16_t lanes;
};
struct tensor {
    void* data;
    dlpack::device where;
    std::int32_t dimensions;
    data_type type;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};
struct managed_tensor {
    dlpack::tensor tensor;
    void* context;
    void (*deleter)(managed_tensor*);
};
}  // namespace dlpack

namespace interop {
struct imported {
    storage memory;
    std::size_t items = 0;
};
[[nodiscard]] result<dlpack::managed_tensor*> export_tensor(storage const& memory, scalar type, std::size_t items);
// `from` is the importer's from here on, also when this fails.
[[nodiscard]] result<imported> import_tensor(dlpack::managed_tensor* from, scalar type, std::size_t size);

struct column_parts {
    scalar type = scalar::record;
    storage values;
    std::size_t items = 0, rows = 0;
    std::optional<storage> offsets, validity;
};
[[nodiscard]] result<void> export_column(stream_ref on, column_parts parts, ArrowSchema* schema,
                                         ArrowDeviceArray* array);
[[nodiscard]] result<column_parts> import_column(stream_ref on, scalar type, ArrowSchema* schema,
                                                 ArrowDeviceArray* array);
}  // namespace interop

// One dimension; the receiver calls its deleter.
template <class T>
[[nodiscard]] result<dlpack::managed_tensor*> to_dlpack(buffer<T> const& what) {
    return interop::export_tensor(what.raw(), scalar_of<T>(), what.size());
}
// A contiguous tensor of T of any shape, as one run of elements.
template <class T>
[[nodiscard]] result<buffer<T>> from_dlpack(dlpack::managed_tensor* from) {
    auto got = interop::import_tensor(from, scalar_of<T>(), sizeof(T));
    if (!got) return std::move(got).error();
    return buffer<T>{std::move(got->memory), got->items};
}

// Fills both structs; the receiver calls their release functions.
template <class T>
[[nodiscard]] result<void> to_arrow(stream_ref on, column<T> const& what, ArrowSchema* schema,
                                    ArrowDeviceArray* array) {
    interop::column_parts parts{.type = scalar_of<T>(),
                                .values = what.values().raw(),
                                .items = what.values().size(),
                                .rows = what.rows(),
                                .offsets = {},
                                .validity = {}};
    if (what.offsets()) parts.offsets = what.offsets()->raw();
    if (what.validity()) parts.validity = what.validity()->raw();
    return interop::export_column(on, std::move(parts), schema, array);
}
// Takes both over (their release becomes null), also when this fails. Offsets of the array must be 0.
template <class T>
[[nodiscard]] result<column<T>> from_arrow(stream_ref on, ArrowSchema* schema, ArrowDeviceArray* array) {
    auto got = interop::import_column(on, scalar_of<T>(), schema, array);
    if (!got) return std::move(got).error();
    buffer<T> values{std::move(got->values), got->items};
    std::optional<buffer<std::uint8_t>> validity;
    if (got->validity) validity = buffer<std::uint8_t>{*got->validity, (got->rows + 7) / 8};
    if (got->offsets) {
        return column<T>::lists(std::move(values), buffer<std::int32_t>{*got->offsets, got->rows + 1},
                                std::move(validity));
    }
    if (validity) return column<T>{std::move(values), *std::move(validity)};
    return column<T>{std::move(values)};
}

}  // namespace kiln
