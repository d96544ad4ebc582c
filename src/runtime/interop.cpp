// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/interop.hpp>

#include "cuda/context.hpp"

namespace kiln::interop {

namespace {

// DLPack and Arrow number devices alike.
std::int32_t device_type_of(residency where) noexcept {
    switch (where) {
        case residency::host: return ARROW_DEVICE_CPU;
        case residency::pinned: return ARROW_DEVICE_CUDA_HOST;
        case residency::device: return ARROW_DEVICE_CUDA;
        case residency::managed: return ARROW_DEVICE_CUDA_MANAGED;
    }
    return ARROW_DEVICE_CPU;
}

result<residency> residency_of(std::int32_t device_type) {
    switch (device_type) {
        case ARROW_DEVICE_CPU: return residency::host;
        case ARROW_DEVICE_CUDA_HOST: return residency::pinned;
        case ARROW_DEVICE_CUDA: return residency::device;
        case ARROW_DEVICE_CUDA_MANAGED: return residency::managed;
        default:
            return fail(errc::unsupported, "data on a device of type {}: only the host and CUDA are known",
                        device_type);
    }
}

struct format_row {
    scalar kind;
    char const* arrow;
    dlpack::data_type dlpack;
};
constexpr format_row formats[] = {
    {scalar::i8, "c", {0, 8, 1}},   {scalar::u8, "C", {1, 8, 1}},   {scalar::i16, "s", {0, 16, 1}},
    {scalar::u16, "S", {1, 16, 1}}, {scalar::i32, "i", {0, 32, 1}}, {scalar::u32, "I", {1, 32, 1}},
    {scalar::i64, "l", {0, 64, 1}}, {scalar::u64, "L", {1, 64, 1}}, {scalar::f16, "e", {2, 16, 1}},
    {scalar::f32, "f", {2, 32, 1}}, {scalar::f64, "g", {2, 64, 1}}, {scalar::bf16, nullptr, {4, 16, 1}},
};

result<format_row> format_of(scalar type) {
    for (auto const& row : formats)
        if (row.kind == type) return row;
    return fail(errc::unsupported, "elements of type {} cannot be handed to other libraries", name_of(type));
}

// ---- DLPack

struct exported_tensor {
    dlpack::managed_tensor tensor{};
    std::int64_t shape = 0;
    storage memory;
};

bool is_contiguous(dlpack::tensor const& t) noexcept {
    if (t.strides == nullptr) return true;
    std::int64_t expected = 1;
    for (auto i = t.dimensions - 1; i >= 0; --i) {
        if (t.shape[i] > 1 && t.strides[i] != expected) return false;
        expected *= t.shape[i];
    }
    return true;
}

// ---- Arrow

struct exported_schema {
    ArrowSchema child{};
    ArrowSchema* children[1] = {&child};
};

// The event stays until the array is released.
struct exported_array {
    column_parts parts;
    std::optional<device_event> ready;
    CUevent_st* event = nullptr;
    void const* buffers[2] = {};
    void const* child_buffers[2] = {};
    ArrowArray child{};
    ArrowArray* children[1] = {&child};
};

void release_child(ArrowArray* array) { array->release = nullptr; }
void release_child_schema(ArrowSchema* schema) { schema->release = nullptr; }

void release_array(ArrowArray* array) {
    delete static_cast<exported_array*>(array->private_data);
    array->release = nullptr;
}
void release_schema(ArrowSchema* schema) {
    delete static_cast<exported_schema*>(schema->private_data);
    schema->release = nullptr;
}

// Owns what was imported; released with the last buffer that uses it.
struct taken_array {
    explicit taken_array(ArrowDeviceArray* from) : array{from->array} { from->array.release = nullptr; }
    taken_array(taken_array const&) = delete;
    ~taken_array() {
        if (array.release != nullptr) array.release(&array);
    }
    ArrowArray array;
};
struct taken_schema {
    explicit taken_schema(ArrowSchema* from) : schema{*from} { from->release = nullptr; }
    taken_schema(taken_schema const&) = delete;
    ~taken_schema() {
        if (schema.release != nullptr) schema.release(&schema);
    }
    ArrowSchema schema;
};

result<void> check_format(ArrowSchema const& schema, format_row const& expected) {
    if (expected.arrow != nullptr && std::string_view{schema.format} == expected.arrow) return {};
    return fail(errc::invalid_argument, "Arrow array of format '{}' where {} was expected", schema.format,
                name_of(expected.kind));
}

result<void> check_array(ArrowArray const& array, std::int64_t buffers) {
    if (array.offset != 0)
        return fail(errc::unsupported, "Arrow array with offset {}: slice it with a copy first", array.offset);
    if (array.n_buffers != buffers || array.length < 0)
        return fail(errc::invalid_argument, "Arrow array with {} buffers where {} were expected", array.n_buffers,
                    buffers);
    return {};
}

}  // namespace

result<dlpack::managed_tensor*> export_tensor(storage const& memory, scalar type, std::size_t items) {
    KILN_TRY(auto const format, format_of(type));
    auto owner = std::make_unique<exported_tensor>();
    owner->memory = memory;
    owner->shape = static_cast<std::int64_t>(items);
    owner->tensor.tensor = {.data = memory.data(),
                            .where = {device_type_of(memory.where()), memory.device()},
                            .dimensions = 1,
                            .type = format.dlpack,
                            .shape = &owner->shape,
                            .strides = nullptr,
                            .byte_offset = 0};
    owner->tensor.context = owner.get();
    owner->tensor.deleter = [](dlpack::managed_tensor* t) { delete static_cast<exported_tensor*>(t->context); };
    return &owner.release()->tensor;
}

result<imported> import_tensor(dlpack::managed_tensor* from, scalar type, std::size_t size) {
    if (from == nullptr) return fail(errc::invalid_argument, "from_dlpack: no tensor");
    std::shared_ptr<void const> const keep{from, [](dlpack::managed_tensor* t) {
                                               if (t->deleter != nullptr) t->deleter(t);
                                           }};
    auto const& t = from->tensor;
    KILN_TRY(auto const format, format_of(type));
    if (t.type.code != format.dlpack.code || t.type.bits != format.dlpack.bits || t.type.lanes != 1) {
        return fail(errc::invalid_argument, "DLPack tensor of type (code {}, {} bits, {} lanes) where {} was expected",
                    t.type.code, t.type.bits, t.type.lanes, name_of(type));
    }
    if (!is_contiguous(t)) return fail(errc::unsupported, "DLPack tensor with gaps: make it contiguous first");
    KILN_TRY(auto const where, residency_of(t.where.type));
    std::int64_t items = 1;
    for (std::int32_t i = 0; i < t.dimensions; ++i) items *= t.shape[i];
    auto* const data = static_cast<std::byte*>(t.data) + t.byte_offset;
    auto const n = static_cast<std::size_t>(items);
    return imported{storage::borrow(data, n * size, where, t.where.id, keep), n};
}

result<void> export_column(stream_ref on, column_parts parts, ArrowSchema* schema, ArrowDeviceArray* array) {
    KILN_TRY(auto const format, format_of(parts.type));
    if (format.arrow == nullptr) return fail(errc::unsupported, "Arrow has no type for {}", name_of(parts.type));
    auto owner = std::make_unique<exported_array>();
    auto described = std::make_unique<exported_schema>();
    auto const where = parts.values.where();
    if (on_device(where)) {
        KILN_TRY(auto ready, device_event::make(parts.values.device(), event_timing::off));
        KILN_CHECK(ready.record(on));
        owner->event = ready.get();
        owner->ready = std::move(ready);
    }
    bool const is_list = parts.offsets.has_value();
    auto const nulls = parts.validity ? std::int64_t{-1} : std::int64_t{0};
    auto const rows = static_cast<std::int64_t>(parts.rows);
    owner->buffers[0] = parts.validity ? parts.validity->data() : nullptr;
    owner->buffers[1] = is_list ? parts.offsets->data() : parts.values.data();
    owner->child_buffers[1] = parts.values.data();
    owner->child = {.length = static_cast<std::int64_t>(parts.items),
                    .null_count = 0,
                    .offset = 0,
                    .n_buffers = 2,
                    .n_children = 0,
                    .buffers = owner->child_buffers,
                    .children = nullptr,
                    .dictionary = nullptr,
                    .release = release_child,
                    .private_data = nullptr};
    described->child = {.format = format.arrow,
                        .name = "item",
                        .metadata = nullptr,
                        .flags = 0,
                        .n_children = 0,
                        .children = nullptr,
                        .dictionary = nullptr,
                        .release = release_child_schema,
                        .private_data = nullptr};
    *schema = {.format = is_list ? "+l" : format.arrow,
               .name = "",
               .metadata = nullptr,
               .flags = parts.validity ? ARROW_FLAG_NULLABLE : 0,
               .n_children = is_list ? 1 : 0,
               .children = is_list ? described->children : nullptr,
               .dictionary = nullptr,
               .release = release_schema,
               .private_data = described.get()};
    *array = {};
    array->array = {.length = rows,
                    .null_count = nulls,
                    .offset = 0,
                    .n_buffers = 2,
                    .n_children = is_list ? 1 : 0,
                    .buffers = owner->buffers,
                    .children = is_list ? owner->children : nullptr,
                    .dictionary = nullptr,
                    .release = release_array,
                    .private_data = owner.get()};
    array->device_id = where == residency::host ? -1 : parts.values.device();
    array->device_type = device_type_of(where);
    array->sync_event = owner->event != nullptr ? static_cast<void*>(&owner->event) : nullptr;
    owner->parts = std::move(parts);
    owner.release();
    described.release();
    return {};
}

result<column_parts> import_column(stream_ref on, scalar type, ArrowSchema* schema, ArrowDeviceArray* array) {
    taken_schema const described{schema};
    auto* const event = static_cast<CUevent_st**>(array->sync_event);
    auto const device = array->device_id < 0 ? 0 : static_cast<int>(array->device_id);
    auto const device_type = array->device_type;
    auto const taken = std::make_shared<taken_array>(array);
    KILN_TRY(auto const where, residency_of(device_type));
    KILN_TRY(auto const format, format_of(type));
    bool const is_list = std::string_view{described.schema.format} == "+l";
    auto const& top = taken->array;
    KILN_CHECK(check_array(top, 2));
    if (is_list && (top.n_children != 1 || described.schema.n_children != 1))
        return fail(errc::invalid_argument, "Arrow list with {} children", top.n_children);
    KILN_CHECK(check_format(is_list ? *described.schema.children[0] : described.schema, format));
    if (is_list) KILN_CHECK(check_array(*top.children[0], 2));
    if (event != nullptr) {
        KILN_TRY(auto const context, cuda::context::of(device));
        KILN_TRY(auto const scope, cuda::current_context::enter(*context));
        KILN_CHECK(cuda::call<&cuda::driver_api::stream_wait_event>(context->api(), on.get(), *event, 0U));
    }
    column_parts out;
    out.type = type;
    out.rows = static_cast<std::size_t>(top.length);
    auto const& data = is_list ? *top.children[0] : top;
    out.items = static_cast<std::size_t>(data.length);
    auto const borrow = [&](void const* at, std::size_t bytes) {
        return storage::borrow(const_cast<void*>(at), bytes, where, device, taken);
    };
    out.values = borrow(data.buffers[1], out.items * static_cast<std::size_t>(format.dlpack.bits) / 8);
    if (is_list) out.offsets = borrow(top.buffers[1], (out.rows + 1) * sizeof(std::int32_t));
    if (top.buffers[0] != nullptr) out.validity = borrow(top.buffers[0], (out.rows + 7) / 8);
    return out;
}

}  // namespace kiln::interop
