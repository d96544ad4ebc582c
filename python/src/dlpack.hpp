// SPDX-License-Identifier: Apache-2.0
// The DLPack structures as they are in memory, version 1.3: what tensors of other libraries look like, and how a library lets
// others read them without a Python call.
#pragma once

#include <cstdint>

namespace kiln::python::dlpack {

enum device_type : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
enum type_code : std::uint8_t { signed_int = 0, unsigned_int = 1, floating = 2, bfloat = 4, complex_number = 5, boolean = 6 };

struct device {
    std::int32_t type;
    std::int32_t id;
};
struct data_type {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
    bool operator==(data_type const&) const = default;
};
struct tensor {
    void* data;
    dlpack::device device;
    std::int32_t ndim;
    data_type dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in items; null: contiguous
    std::uint64_t byte_offset;
};
struct managed {
    dlpack::tensor tensor;
    void* context;
    void (*deleter)(managed*);
};
struct version {
    std::uint32_t major;
    std::uint32_t minor;
};
inline constexpr std::uint64_t flag_read_only = 1;
struct managed_versioned {
    dlpack::version version;
    void* context;
    void (*deleter)(managed_versioned*);
    std::uint64_t flags;
    dlpack::tensor tensor;
};

// What `type(x).__dlpack_c_exchange_api__` leads to.
struct exchange_header {
    dlpack::version version;
    exchange_header* previous;
};
struct exchange_api {
    exchange_header header;
    int (*allocate)(tensor* like, managed_versioned** out, void* error_context,
                    void (*set_error)(void*, char const*, char const*));
    int (*to_managed)(void* object, managed_versioned** out);
    int (*to_object)(managed_versioned* from, void** out_object);
    int (*to_tensor)(void* object, tensor* out);  // borrows; null where the library does not do it
    int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

}  // namespace kiln::python::dlpack
