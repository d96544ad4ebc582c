// SPDX-License-Identifier: Apache-2.0
#include "prims/operator_text.hpp"

#include <algorithm>
#include <bit>
#include <cctype>

namespace kiln::prims {

namespace {

constexpr std::size_t most_text = 64 << 10;

struct signature {
    std::string_view result;
    int arguments;
};

signature signature_of(request const& r) {
    switch (r.what) {
        case algorithm::scan:
        case algorithm::reduce:
        case algorithm::segmented_reduce: return {"kiln_value", 2};
        case algorithm::select: return {"bool", 1};
        case algorithm::transform: return {"kiln_mapped", 1};
        default: return {"bool", 2};
    }
}

bool is_identifier(std::string_view text) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
    return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Types an operator may name: kiln_value, kiln_mapped, and kiln/prims/names.cuh.
bool is_type_name(std::string_view name) {
    if (name == "kiln_value" || name == "kiln_mapped") return true;
    name.remove_prefix(std::string_view{"kiln_"}.size());
    return name.size() > 1 && std::string_view{"iuf"}.find(name.front()) != name.npos &&
           std::ranges::all_of(name.substr(1), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The first identifier that begins with kiln_ and is no type; empty: none.
std::string_view own_name_in(std::string_view text) {
    for (auto at = text.find("kiln_"); at != text.npos; at = text.find("kiln_", at + 1)) {
        if (at > 0 && is_name_character(text[at - 1])) continue;
        auto end = at;
        while (end < text.size() && is_name_character(text[end])) ++end;
        auto const name = text.substr(at, end - at);
        if (!is_type_name(name)) return name;
    }
    return {};
}

bool is_integer(scalar kind) { return kind <= scalar::u64; }

// The call or expression that computes the result.
std::string body_of(request const& r, op const& by, signature const& s) {
    std::string const arguments = s.arguments == 2 ? "a, b" : "a";
    bool const captured = by.state_type().size != 0;
    switch (by.kind()) {
        case op::form::builtin: return builtin_expression(by.name(), r.value).value_or("kiln_no_such_operator");
        case op::form::expression:
            return fmt::format("\n#line 1 \"operator\"\n{}\n#line 1 \"operator call\"\n", by.text());
        case op::form::function: return fmt::format("{}({}{})", by.name(), arguments, captured ? ", s" : "");
        case op::form::ltoir: return fmt::format("{}({}{})", by.name(), arguments, captured ? ", kiln_captured" : "");
    }
    return {};
}

result<void> check_type(element_type const& type, std::string_view what, std::string const& name) {
    if (type.size == 0 || type.size > 32 || type.align > 16) {
        return fail(errc::invalid_argument,
                    "{}: the {} has {} bytes aligned to {}; 1 to 32 bytes aligned to at most 16 can be used", name,
                    what, type.size, type.align);
    }
    if (!std::has_single_bit(type.align) || type.size % type.align != 0) {
        return fail(errc::invalid_argument,
                    "{}: the {} has {} bytes aligned to {}: an alignment is 1, 2, 4, 8 or 16 and divides the size",
                    name, what, type.size, type.align);
    }
    return {};
}

result<void> check_operator(request const& r, op const& by) {
    auto const bad = [&](std::string_view why) { return fail(errc::invalid_argument, "{}: {}", r.name, why); };
    if (by.text().size() > most_text || by.image().size() > (std::size_t{64} << 20)) {
        return bad(fmt::format("an operator's text may have {} bytes, this one has {}", most_text, by.text().size()));
    }
    if (by.text().find('\0') != std::string::npos) return bad("the operator's text has a zero byte");
    // Its symbols meet those of the algorithm when they are linked: a clash is told before, by name.
    if (auto const taken = own_name_in(by.text()); !taken.empty())
        return bad(fmt::format("the operator's text says '{}': names that begin with kiln_ are Kiln's own", taken));
    switch (by.kind()) {
        case op::form::builtin:
            if (!builtin_expression(by.name(), r.value)) {
                return bad(fmt::format("there is no built-in operator '{}' for {}; write it as kiln::op{{\"...\"}}",
                                       by.name(), r.value.label()));
            }
            return {};
        case op::form::expression:
            if (std::ranges::all_of(by.text(), [](unsigned char c) { return std::isspace(c) != 0; }))
                return bad("the operator is empty");
            return {};
        case op::form::function:
        case op::form::ltoir:
            if (!is_identifier(by.name())) return bad(fmt::format("'{}' is no name of a function", by.name()));
            if (by.name().starts_with("kiln_"))
                return bad(fmt::format("'{}': names that begin with kiln_ are Kiln's own", by.name()));
            if (by.kind() == op::form::ltoir && by.image().empty()) return bad("the operator's LTO-IR is empty");
            return {};
    }
    return {};
}

}  // namespace

result<void> check(request const& r) {
    KILN_CHECK(check_type(r.value, "element type", r.name));
    if (r.mapped.size != 0) KILN_CHECK(check_type(r.mapped, "value type", r.name));
    if (r.what == algorithm::radix_sort && r.value.kind == scalar::record) {
        return fail(errc::invalid_argument, "{}: radix sort takes numbers; use merge_sort for structs", r.name);
    }
    return r.by ? check_operator(r, *r.by) : result<void>{};
}

std::optional<std::string> builtin_expression(std::string_view name, element_type const& type) {
    auto const kind = type.kind;
    if (kind == scalar::record) return std::nullopt;
    if (name == "plus") return "a + b";
    if (name == "multiply") return "a * b";
    if (name == "less") return "a < b";
    if (name == "greater") return "b < a";
    if (name == "equal") return "a == b";
    if (name == "min" || name == "max") {
        bool const least = name == "min";
        if (is_integer(kind)) return least ? "b < a ? b : a" : "a < b ? b : a";
        if (kind == scalar::f32) return least ? "fminf(a, b)" : "fmaxf(a, b)";
        if (kind == scalar::f64) return least ? "fmin(a, b)" : "fmax(a, b)";
        return least ? "__hmin(a, b)" : "__hmax(a, b)";
    }
    if (is_integer(kind)) {
        if (name == "bit_and") return "a & b";
        if (name == "bit_or") return "a | b";
        if (name == "bit_xor") return "a ^ b";
    }
    return std::nullopt;
}

namespace {

// What a template calls: the operator, of words that are the user's struct.
std::string operator_of_shapes(request const& shape, signature const& s) {
    bool const two = s.arguments == 2;
    auto const taken = [](std::string_view name) {
        return fmt::format("reinterpret_cast<kiln_value const&>({})", name);
    };
    auto const call = fmt::format("kiln_written({}{}, kiln_captured)", taken("a"), two ? ", " + taken("b") : "");
    auto out = fmt::format(
        "{}\nextern \"C\" __device__ {} kiln_operator(kiln_shape a{}, void const* kiln_captured) {{\n",
        shape.value.definition, s.result == "kiln_value" ? "kiln_shape" : s.result, two ? ", kiln_shape b" : "");
    if (s.result == "kiln_value") {
        out += fmt::format("    kiln_value const kiln_made = {};\n", call);
        return out + "    return reinterpret_cast<kiln_shape const&>(kiln_made);\n}\n";
    }
    return out + fmt::format("    return {};\n}}\n", call);
}

}  // namespace

std::string operator_text(request const& r, linkage how) {
    auto const& by = *r.by;
    auto const shape = shape_of(r);
    bool const of_shapes = how == linkage::external && shape.value != r.value;
    auto const s = signature_of(r);
    std::string out;
    if (by.state_type().size != 0 && by.state_type() != r.value && by.state_type() != r.mapped)
        out += by.state_type().definition + "\n";
    if (by.kind() == op::form::function) out += fmt::format("#line 1 \"operator\"\n{}\n", by.text());
    if (by.kind() == op::form::ltoir) {
        out += fmt::format("extern \"C\" __device__ {} {}(kiln_value{}{});\n", s.result, by.name(),
                           s.arguments == 2 ? ", kiln_value" : "", by.state_type().size != 0 ? ", void const*" : "");
    }
    bool const is_exported = how == linkage::external && !of_shapes;
    out += fmt::format("#line 1 \"operator call\"\n{} {} {}(kiln_value a{}, void const* kiln_captured) {{\n",
                       is_exported ? "extern \"C\" __device__" : "static __device__ __forceinline__", s.result,
                       of_shapes ? "kiln_written" : "kiln_operator", s.arguments == 2 ? ", kiln_value b" : "");
    if (by.state_type().size != 0)
        out += fmt::format("    auto const& s = *static_cast<{} const*>(kiln_captured);\n", by.state_type().name);
    out += fmt::format("    return {};\n}}\n", body_of(r, by, s));
    if (of_shapes) out += operator_of_shapes(shape, s);
    return out;
}

base::digest operator_digest(op const& by) {
    base::key_builder key{"kiln.prims.operator.v1"};
    key.add("form", static_cast<std::uint64_t>(by.kind()))
        .add("name", by.name())
        .add("text", by.text())
        .add("image", by.image());
    key.add("state", by.state_type().name)
        .add("definition", by.state_type().definition)
        .add("size", by.state_type().size);
    return key.finish();
}

bool needs_half(request const& r) {
    auto const half = [](element_type const& t) {
        return t.kind == scalar::f16 || t.kind == scalar::bf16 || t.definition.find("half") != std::string::npos ||
               t.definition.find("bfloat16") != std::string::npos;
    };
    if (half(r.value) || half(r.mapped)) return true;
    return r.by && (half(r.by->state_type()) || r.by->text().find("half") != std::string::npos ||
                    r.by->text().find("bfloat16") != std::string::npos);
}

std::string excerpt(op const& by) {
    if (by.kind() == op::form::ltoir) return fmt::format("LTO-IR function '{}'", by.name());
    if (by.kind() == op::form::builtin) return by.name();
    auto text = by.text().substr(0, 160);
    std::ranges::replace(text, '\n', ' ');
    return text.size() < by.text().size() ? text + " ..." : text;
}

}  // namespace kiln::prims
