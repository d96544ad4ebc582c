// SPDX-License-Identifier: Apache-2.0
#include "tropical/units.hpp"

#include "embedded/tropical_kernels.hpp"

#include <algorithm>
#include <array>

namespace kiln::tropical {

namespace {

constexpr std::array types{scalar::f32, scalar::f64, scalar::i32, scalar::i64};
constexpr std::array semirings{semiring::max_plus, semiring::min_plus, semiring::max_mul, semiring::and_or,
                               semiring::plus_times};
constexpr std::array float_types{scalar::f32, scalar::f64};

int number_of(scalar type) { return static_cast<int>(std::ranges::find(types, type) - types.begin()) + 1; }

std::string text_of(std::string_view name) {
    for (auto const& f : embedded::tropical_kernels()) {
        if (f.name == name) return std::string{f.data};
    }
    KILN_ASSERT(false);
    return {};
}

unit base_unit(std::string name, std::string_view file, std::initializer_list<char const*> headers) {
    unit out{.name = std::move(name), .source = text_of(file)};
    for (auto const* const header : headers) out.headers.push_back({header, text_of(header)});
    out.options = {"-std=c++17", "-default-device"};
    out.licence = "Apache-2.0";
    return out;
}

void add_semiring(unit& u, semiring s, scalar type, with_winners arg) {
    u.options.push_back(fmt::format("-DKILN_TROPICAL_TYPE={}", number_of(type)));
    u.options.push_back(fmt::format("-DKILN_TROPICAL_SEMIRING={}", static_cast<int>(s)));
    u.options.push_back(fmt::format("-DKILN_TROPICAL_ARG={}", arg == with_winners::yes ? 1 : 0));
}

// The best-known use of every unit comes first: their order is the catalogue's.
template <class Visit>
void for_each_product(Visit visit) {
    for (auto const arg : {with_winners::no, with_winners::yes}) {
        for (auto const type : types) {
            for (auto const s : semirings) {
                if (s == semiring::plus_times && arg == with_winners::yes) continue;
                visit(s, type, arg);
            }
        }
    }
}

spec spec_of(std::string name, std::string_view kind, scalar type, std::string_view by, unit const& u) {
    return {.name = std::move(name),
            .kind = std::string{kind},
            .types = {std::string{kiln::name_of(type)}},
            .by = std::string{by},
            .kernels = u.kernels.empty() ? std::vector<std::string>{"product_large", "product_small"} : u.kernels,
            .pack = "tropical"};
}

}  // namespace

std::vector<named_unit> named_units() {
    std::vector<named_unit> out;
    auto const add = [&](std::string name, std::string_view kind, scalar type, std::string_view by, unit const& u) {
        out.push_back({spec_of(std::move(name), kind, type, by, u), u});
    };
    for_each_product([&](semiring s, scalar type, with_winners arg) {
        add(product_name(s, type, arg), arg == with_winners::yes ? "product_with_argmax" : "product", type, name_of(s),
            product_unit(s, type, arg));
    });
    // One kernel makes both gradients.
    for (auto const type : float_types) {
        for (auto const* const side : {"a", "b"}) {
            add(fmt::format("tropical_backward_{}_{}", side, kiln::name_of(type)), "backward", type, "plus",
                backward_unit(gradient_rule::plus, type));
        }
        add(fmt::format("tropical_maxmul_backward_{}", kiln::name_of(type)), "backward", type, "mul",
            backward_unit(gradient_rule::mul, type));
    }
    for (auto const type : float_types) {
        for (auto const s : {semiring::max_plus, semiring::min_plus}) {
            auto const u = counting_unit(s, type);
            add(u.name, "product_counting", type, name_of(s), u);
        }
    }
    // Every product is batched.
    for (auto const s : {semiring::max_plus, semiring::min_plus, semiring::max_mul}) {
        add(fmt::format("tropical_{}_f32_nn_batched_with_argmax", name_of(s)), "product_with_argmax", scalar::f32,
            name_of(s), product_unit(s, scalar::f32, with_winners::yes));
    }
    return out;
}

std::string_view name_of(semiring s) noexcept {
    switch (s) {
        case semiring::max_plus: return "maxplus";
        case semiring::min_plus: return "minplus";
        case semiring::max_mul: return "maxmul";
        case semiring::and_or: return "andor";
        case semiring::plus_times: return "plustimes";
    }
    return "?";
}

bool is_supported(scalar type) noexcept { return std::ranges::find(types, type) != types.end(); }

std::string product_name(semiring s, scalar type, with_winners arg) {
    return fmt::format("tropical_{}_{}_nn{}", name_of(s), kiln::name_of(type),
                       arg == with_winners::yes ? "_with_argmax" : "");
}

unit product_unit(semiring s, scalar type, with_winners arg) {
    auto out = base_unit(product_name(s, type, arg), "product.cu",
                         {"semiring.cuh", "tile.cuh", "machine.cuh", "staging.cuh", "arithmetic.cuh", "multiplying.cuh",
                          "winners.cuh", "storing.cuh", "schedule.cuh"});
    add_semiring(out, s, type, arg);
    auto const& by = tuning_of(s, type, arg);
    // In the text and not among the options, which would have to be split at commas.
    std::string head = fmt::format("#define KILN_TROPICAL_SMALL {}\n", by.small.text());
    if (by.large) {
        head += fmt::format("#define KILN_TROPICAL_LARGE {}\n", by.large->text());
        out.options.push_back("--split-compile=2");  // the two kernels side by side
    }
    out.source.insert(0, head);
    return out;
}

unit generic_unit(semiring s, scalar type, with_winners arg) {
    auto out = base_unit(product_name(s, type, arg) + "_generic", "generic.cu", {"semiring.cuh"});
    add_semiring(out, s, type, arg);
    out.kernels = {"product_generic"};
    return out;
}

unit backward_unit(gradient_rule rule, scalar type) {
    auto out = base_unit(
        fmt::format("tropical_{}backward_{}", rule == gradient_rule::mul ? "maxmul_" : "", kiln::name_of(type)),
        "backward.cu", {});
    out.options.push_back(fmt::format("-DKILN_TROPICAL_TYPE={}", number_of(type)));
    out.options.push_back(fmt::format("-DKILN_TROPICAL_RULE={}", static_cast<int>(rule)));
    out.kernels = {"backward"};
    return out;
}

unit counting_unit(semiring s, scalar type) {
    auto out = base_unit(fmt::format("tropical_counting_{}_{}", name_of(s), kiln::name_of(type)), "counting.cu",
                         {"semiring.cuh"});
    add_semiring(out, s, type, with_winners::no);
    out.kernels = {"product_counting", "product_counting_weighted"};
    return out;
}

std::vector<std::string> units_of(need const& what) {
    bool const with_gradient = what.gradients == with_gradients::yes;
    std::vector<std::string> out{product_name(what.semiring, what.type, with_gradient ? with_winners::yes : what.arg)};
    if (with_gradient) {
        auto const type = kiln::name_of(what.type);
        out.push_back(what.semiring == semiring::max_mul ? fmt::format("tropical_maxmul_backward_{}", type)
                                                         : fmt::format("tropical_backward_a_{}", type));
    }
    return out;
}

}  // namespace kiln::tropical
