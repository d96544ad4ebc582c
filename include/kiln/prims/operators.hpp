// SPDX-License-Identifier: Apache-2.0
//
// What a primitive is specialised with: element types and operators. An operator is built in (kiln::plus), an expression
// (kiln::op{"a * b % 7"}), a function with a captured value, or LTO-IR made elsewhere. All are plain values; text is
// compiled when a handle is made, and what the compiler says about it is in that error. Reductions need an associative
// and commutative operator, scans an associative one.
#pragma once

#include <kiln/result.hpp>
#include <kiln/scalar.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace KILN_PUBLIC kiln {

struct element_type {
    scalar kind = scalar::record;
    std::string name;        // in device text: "int", "point"
    std::string definition;  // device text that defines it; empty for built-in types
    std::size_t size = 0;
    std::size_t align = 0;

    // "i32", or "record" and a part of the definition's digest: stable, for names and keys.
    [[nodiscard]] std::string label() const;
    bool operator==(element_type const&) const = default;
};

// Specialise this for a struct of your own, trivially copyable and at most 32 bytes, laid out as in the device text:
//     template <> struct kiln::device_type<point> {
//         static constexpr std::string_view name = "point", definition = "struct point { float x, y; };";
//     };
template <class T>
struct device_type;

template <class T>
[[nodiscard]] element_type type_of();

// A compiler's complaint about a captured value or a return type names the operator's own text.
class op {
public:
    enum class form : std::uint8_t { builtin, expression, function, ltoir };

    // Of `a` and `b` (predicates and transforms: of `a`), and of `s` where a value is captured.
    explicit op(std::string expression) : op{form::expression, {}, std::move(expression), {}} {}

    // Device text that defines the function `name`; called with the same arguments: cap(a, b), or cap(a, b, s).
    [[nodiscard]] static op function(std::string name, std::string text) {
        return {form::function, std::move(name), std::move(text), {}};
    }
    // LTO-IR with an extern "C" __device__ function `symbol`, called alike; the captured value comes as void const*.
    [[nodiscard]] static op ltoir(std::string symbol, std::vector<std::byte> image) {
        return {form::ltoir, std::move(symbol), {}, std::move(image)};
    }
    [[nodiscard]] static op builtin(std::string_view name) { return {form::builtin, std::string{name}, {}, {}}; }

    // The same operator with a value that travels with each launch; its type is part of the text, its bytes are not.
    template <class State>
    [[nodiscard]] op with(State const& state) const {
        static_assert(std::is_trivially_copyable_v<State>, "kiln::op: a captured value must be trivially copyable");
        static_assert(sizeof(State) <= most_state,
                      "kiln::op: capture at most 64 bytes; put a device pointer there for more");
        static_assert(alignof(State) <= 16);
        op out{*this};
        out.state_type_ = type_of<State>();
        std::memcpy(out.state_.data(), &state, sizeof(State));
        return out;
    }

    // The same where the type is known at run time alone. `state` has the bytes of one.
    [[nodiscard]] op with_bytes(element_type const& type, std::span<std::byte const> state) const {
        op out{with_type(type)};
        std::memcpy(out.state_.data(), state.data(), state.size() < most_state ? state.size() : most_state);
        return out;
    }

    // The same where only the type's description is known, as in a recording: enough to compile, not to launch.
    [[nodiscard]] op with_type(element_type const& state) const {
        op out{*this};
        out.state_type_ = state;
        return out;
    }

    [[nodiscard]] form kind() const noexcept { return form_; }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }  // of a builtin, function or symbol
    [[nodiscard]] std::string const& text() const noexcept { return text_; }  // of an expression or function
    [[nodiscard]] std::vector<std::byte> const& image() const noexcept { return image_; }
    [[nodiscard]] element_type const& state_type() const noexcept { return state_type_; }  // size 0: nothing captured
    static constexpr std::size_t most_state = 64;
    using state_bytes = std::array<std::byte, most_state>;
    [[nodiscard]] state_bytes const& state() const noexcept { return state_; }

private:
    op(form f, std::string name, std::string text, std::vector<std::byte> image)
        : form_{f}, name_{std::move(name)}, text_{std::move(text)}, image_{std::move(image)} {}

    form form_;
    std::string name_;
    std::string text_;
    std::vector<std::byte> image_;
    element_type state_type_{};
    state_bytes state_{};
};

// A built-in operator: costs nothing to name.
class builtin_op {
public:
    explicit constexpr builtin_op(std::string_view name) noexcept : name_{name} {}
    operator op() const { return op::builtin(name_); }

private:
    std::string_view name_;
};

inline constexpr builtin_op plus{"plus"};
inline constexpr builtin_op multiply{"multiply"};
// Of floats: a NaN loses against a number, and -0 is less than +0, so the order of evaluation does not show.
inline constexpr builtin_op min{"min"};
inline constexpr builtin_op max{"max"};
inline constexpr builtin_op bit_and{"bit_and"};  // integers
inline constexpr builtin_op bit_or{"bit_or"};
inline constexpr builtin_op bit_xor{"bit_xor"};
inline constexpr builtin_op less{"less"};  // a < b: with NaNs it is no order
inline constexpr builtin_op greater{"greater"};
inline constexpr builtin_op equal{"equal"};  // a == b: NaN differs from NaN, -0 equals +0

namespace prims {
[[nodiscard]] element_type type_of(scalar kind);
}  // namespace prims

template <class T>
element_type type_of() {
    static_assert(std::is_trivially_copyable_v<T>,
                  "kiln: elements are copied by their bytes, so they must be trivially copyable");
    if constexpr (scalar_of<T>() != scalar::record) {
        return prims::type_of(scalar_of<T>());
    } else if constexpr (std::is_pointer_v<T>) {
        return {scalar::record, "void*", {}, sizeof(T), alignof(T)};
    } else {
        static_assert(sizeof(T) <= op::most_state,
                      "kiln: a struct may have 32 bytes as an element, 64 as a captured value");
        return {scalar::record, std::string{device_type<T>::name}, std::string{device_type<T>::definition}, sizeof(T),
                alignof(T)};
    }
}

}  // namespace kiln
