// SPDX-License-Identifier: Apache-2.0
#include "item_types.hpp"

#include <kiln/result.hpp>

#include <cstdlib>
#include <optional>

namespace kiln::python {

namespace {

struct type_name {
    dlpack::data_type type;
    char const* name;
    std::optional<scalar> kind;
};
constexpr type_name names[] = {
    {{0, 8, 1}, "int8", scalar::i8},       {{1, 8, 1}, "uint8", scalar::u8},    {{0, 16, 1}, "int16", scalar::i16},
    {{1, 16, 1}, "uint16", scalar::u16},   {{0, 32, 1}, "int32", scalar::i32},  {{1, 32, 1}, "uint32", scalar::u32},
    {{0, 64, 1}, "int64", scalar::i64},    {{1, 64, 1}, "uint64", scalar::u64}, {{2, 16, 1}, "float16", scalar::f16},
    {{4, 16, 1}, "bfloat16", scalar::bf16}, {{2, 32, 1}, "float32", scalar::f32}, {{2, 64, 1}, "float64", scalar::f64},
    {{6, 8, 1}, "bool", scalar::u8},       {{5, 64, 1}, "complex64", {}},       {{5, 128, 1}, "complex128", {}},
};

// "<i4", "|u1", "=f8" and the letters of the buffer protocol.
dlpack::data_type parse_type(char kind, int bytes, char const* argument, char const* whole) {
    constexpr int most_bytes = 16;
    bool const is_size = bytes > 0 && bytes <= most_bytes && (bytes & (bytes - 1)) == 0;
    auto const bits = static_cast<std::uint8_t>(is_size ? bytes * 8 : 0);
    switch (is_size ? kind : '?') {
        case 'i': return {dlpack::signed_int, bits, 1};
        case 'u': return {dlpack::unsigned_int, bits, 1};
        case 'f': return {dlpack::floating, bits, 1};
        case 'b': return {dlpack::boolean, 8, 1};
        case 'c': return {dlpack::complex_number, bits, 1};
        default: break;
    }
    throw error{errc::unsupported, std::string{argument} + ": items of type '" + whole + "' are not known here"};
}

}  // namespace

dlpack::data_type of_interface(std::string const& text, char const* argument) {
    if (text.size() < 3 || text[0] == '>')
        throw error{errc::unsupported, std::string{argument} + ": items of type '" + text + "' are in another byte order"};
    return parse_type(text[1], std::atoi(text.c_str() + 2), argument, text.c_str());
}

dlpack::data_type of_buffer(char const* format, std::size_t size, char const* argument) {
    if (format == nullptr) return {dlpack::unsigned_int, 8, 1};
    auto const* letter = format;
    if (*letter == '>' || *letter == '!')
        throw error{errc::unsupported, std::string{argument} + ": items of type '" + format + "' are in another byte order"};
    if (*letter == '@' || *letter == '=' || *letter == '<') ++letter;
    auto const bytes = static_cast<int>(size);
    if (letter[0] == 'Z') return parse_type('c', bytes, argument, format);
    if (letter[1] != '\0') return parse_type('?', bytes, argument, format);
    switch (*letter) {
        case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': return parse_type('i', bytes, argument, format);
        case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': case 'c': return parse_type('u', bytes, argument, format);
        case 'e': case 'f': case 'd': return parse_type('f', bytes, argument, format);
        case '?': return parse_type('b', bytes, argument, format);
        default: return parse_type('x', bytes, argument, format);
    }
}

std::string name_of(dlpack::data_type type) {
    for (auto const& row : names)
        if (row.type == type) return row.name;
    return "type " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits";
}

scalar scalar_of(dlpack::data_type type, char const* argument) {
    for (auto const& row : names)
        if (row.type == type && row.kind) return *row.kind;
    throw error{errc::unsupported, std::string{argument} + " holds " + name_of(type) +
                                       "; integers of 8 to 64 bits, float16, bfloat16, float32, float64 and bool can be used"};
}

dlpack::data_type type_of(scalar kind) {
    for (auto const& row : names)
        if (row.kind == kind) return row.type;
    return {dlpack::unsigned_int, 8, 1};
}

}  // namespace kiln::python
