// SPDX-License-Identifier: Apache-2.0
//
// The primitives without types: what kiln/prims/handles.hpp is made of, for code that learns its types at run time. Pointers are
// to device memory and are not checked. The same promises hold: calls queue work on the stream and return.
#pragma once

#include <kiln/device.hpp>
#include <kiln/engine.hpp>
#include <kiln/prims/operators.hpp>
#include <kiln/runtime/residency.hpp>

#include <memory>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

enum class item_range {
    ordinary,  // sorts and unique take up to 2^32 - 1 items; the others are not bounded
    wide,      // 64-bit offsets in sorts and unique: a little slower
};

// How to get there; `automatic` steps down this list until one works, and each step down is an event. The others are for
// tests and measurements.
enum class prim_route { automatic, shipped, linked, full, plain };

struct prim_options {
    int device = 0;
    item_range items = item_range::ordinary;
    prim_route route = prim_route::automatic;
    kiln::engine* engine = nullptr;  // default: engine::process()
    wait_options wait = {};
};

namespace prims {

class specialisation;

// What all handles share: kernels on a device, launch constants, the captured value.
class handle {
public:
    [[nodiscard]] std::string const& name() const noexcept;  // "exclusive_scan_i32"
    [[nodiscard]] int device() const noexcept;
    [[nodiscard]] provenance from() const noexcept;
    // Items one block takes at a time: sizes around its multiples are where an algorithm changes its ways.
    [[nodiscard]] std::size_t tile_items() const noexcept;
    [[nodiscard]] std::vector<kernel_info> const& kernels() const noexcept;

protected:
    handle(std::shared_ptr<specialisation const> what, op const* by);
    ~handle() = default;
    handle(handle const&) = default;
    handle& operator=(handle const&) = default;
    // Scratch for the calls of the next capture on this stream; allocates.
    [[nodiscard]] result<void> reserve_bytes(stream_ref on, std::size_t bytes) const;

    std::shared_ptr<specialisation const> what_;
    op::state_bytes state_{};
};

enum class scan_form { exclusive, inclusive };
enum class bound_side { lower, upper };
enum class select_form { items, indices };

class scan : public handle {
public:
    [[nodiscard]] static result<scan> make(scan_form form, element_type type, op const& by, prim_options const& how);
    result<void> run(stream_ref on, void const* in, void* out, std::size_t n, void const* init,
                     scratch_span scratch) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
    scan_form form_ = scan_form::exclusive;
};

class reduce : public handle {
public:
    [[nodiscard]] static result<reduce> make(element_type type, op const& by, prim_options const& how);
    result<void> run(stream_ref on, void const* in, std::size_t n, void* out, void const* init,
                     scratch_span scratch) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
};

struct segment_offsets {
    void const* begins = nullptr;
    void const* ends = nullptr;
    std::size_t count = 0;
    std::size_t width = 4;  // bytes of an offset
};

class segmented_reduce : public handle {
public:
    [[nodiscard]] static result<segmented_reduce> make(element_type type, op const& by, prim_options const& how);
    result<void> run(stream_ref on, void const* in, std::size_t n, segment_offsets const& where, void* out,
                     void const* init, scratch_span scratch) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n, std::size_t segments) const noexcept;

private:
    using handle::handle;
};

struct select_call {
    void const* in = nullptr;  // null for indices
    std::uint8_t const* mask = nullptr;
    std::size_t n = 0;
    void* out = nullptr;
    std::uint64_t* count = nullptr;
    scratch_span scratch = {};
};

class select : public handle {
public:
    // Without an operator a mask decides.
    [[nodiscard]] static result<select> make(select_form form, element_type type, op const* by,
                                             prim_options const& how);
    result<void> run(stream_ref on, select_call const& what) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
};

struct bounds_call {
    void const* sorted = nullptr;
    std::size_t n = 0;
    void const* queries = nullptr;
    std::size_t count = 0;
    void* out = nullptr;
    std::size_t index_width = 4;
};

class bounds : public handle {
public:
    [[nodiscard]] static result<bounds> make(bound_side side, element_type type, op const& by, prim_options const& how);
    result<void> run(stream_ref on, bounds_call const& what) const;

private:
    using handle::handle;
};

struct sort_call {
    void const* keys_in = nullptr;
    void* keys_out = nullptr;
    void const* values_in = nullptr;
    void* values_out = nullptr;
    std::size_t n = 0;
    int first_bit = 0;
    int last_bit = -1;  // -1: all of them
    scratch_span scratch = {};
};

enum class sort_order { ascending, descending };

class radix_sort : public handle {
public:
    // A value type of size 0: keys alone.
    [[nodiscard]] static result<radix_sort> make(element_type key, element_type value, sort_order order,
                                                 prim_options const& how);
    result<void> run(stream_ref on, sort_call const& what) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
};

class merge_sort : public handle {
public:
    [[nodiscard]] static result<merge_sort> make(element_type key, element_type value, op const& by,
                                                 prim_options const& how);
    result<void> run(stream_ref on, sort_call const& what) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
};

class unique_by_key : public handle {
public:
    [[nodiscard]] static result<unique_by_key> make(element_type key, element_type value, op const& by,
                                                    prim_options const& how);
    result<void> run(stream_ref on, sort_call const& what, std::uint64_t* count) const;
    [[nodiscard]] std::size_t scratch_bytes(std::size_t n) const noexcept;

private:
    using handle::handle;
};

class transform : public handle {
public:
    [[nodiscard]] static result<transform> make(element_type from, element_type to, op const& by,
                                                prim_options const& how);
    result<void> run(stream_ref on, void const* in, void* out, std::size_t n) const;

private:
    using handle::handle;
};

class gather : public handle {
public:
    [[nodiscard]] static result<gather> make(element_type type, element_type index, prim_options const& how);
    result<void> run(stream_ref on, void const* in, void const* index, void* out, std::size_t n) const;

private:
    using handle::handle;
};

// errc::invalid_argument that names the two sizes.
[[nodiscard]] error too_small(char const* what, std::size_t is, std::size_t needed);

template <class V>
element_type value_type_of() {
    if constexpr (std::is_void_v<V>) {
        return {};
    } else {
        return {scalar_of<V>(), {}, {}, sizeof(V), alignof(V)};
    }
}

}  // namespace prims

// Gives back pooled scratch. Nothing that uses it may be running, and no captured graph that does may run again.
result<void> trim_scratch_sync();

}  // namespace kiln
