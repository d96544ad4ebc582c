// SPDX-License-Identifier: Apache-2.0
//
// Names of what a template is made of, for unit::kernels and for lookups, written by the compiler instead of by hand:
//
//     kiln::instance("scale", kiln::type<float>, 4)                     // "scale<float, 4>"
//     kiln::instance("ns::fold", kiln::type<unsigned long>, true)       // "ns::fold<long unsigned int, true>" with g++
//
// Types are spelled as this compiler spells them; those of your own must be declared under the same name in the unit's text. One
// program gives a type one name, so the name it asks for is the name it declared; another compiler may give another, which is another
// entry of the cache. Local types and lambdas have no name that a unit could use.
#pragma once

#include <kiln/language.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace KILN_PUBLIC kiln {

template <class T>
struct type_tag {
    using type = T;
};
template <class T>
inline constexpr type_tag<T> type{};

namespace detail {

// "... pretty() [with T = float; ...]" of g++, "... pretty() [T = float]" of clang++.
template <class T>
[[nodiscard]] constexpr std::string_view pretty() noexcept {
    return __PRETTY_FUNCTION__;
}
template <class T>
[[nodiscard]] constexpr std::string_view type_text() noexcept {
    // The frame is the same for every type: what it is around `int` tells where it ends.
    constexpr auto sample = pretty<int>();
    constexpr auto before = sample.find("T = int") + 4;
    constexpr auto after = sample.size() - before - 3;
    auto const whole = pretty<T>();
    return whole.substr(before, whole.size() - before - after);
}

template <class T>
[[nodiscard]] std::string template_argument(type_tag<T>) {
    return std::string{type_text<T>()};
}
template <class T>
    requires std::is_integral_v<T>
[[nodiscard]] std::string template_argument(T value) {
    if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
    else return std::to_string(value);
}
template <class T>
    requires std::is_enum_v<T>
[[nodiscard]] std::string template_argument(T value) {
    return "(" + std::string{type_text<T>()} + ")" + std::to_string(static_cast<std::underlying_type_t<T>>(value));
}

}  // namespace detail

// Types as kiln::type<T>, values as they are: integers, bool, enumerations.
template <class First, class... Rest>
[[nodiscard]] std::string instance(std::string_view name, First first, Rest... rest) {
    std::string out{name};
    out += '<' + detail::template_argument(first);
    ((out += ", " + detail::template_argument(rest)), ...);
    return out + '>';
}

}  // namespace kiln
