// SPDX-License-Identifier: Apache-2.0
// A pack as small as one can be: two units, one operation, one declaration by what is present.
#include "toy/pack.hpp"

#include "engine/pack.hpp"

#include "embedded/toy_kernels.hpp"
#include "embedded/toy_products.hpp"

#include <kiln/demand.hpp>

namespace kiln::toy {

namespace {

std::vector<engine_detail::named_unit> units() {
    std::vector<engine_detail::named_unit> out;
    for (auto const* const type : {"float", "int"}) {
        auto const name = std::string{"toy_double_"} + (type[0] == 'f' ? "f32" : "i32");
        unit u{.name = name, .source = std::string{embedded::toy_kernels()[0].data}, .kernels = {"toy_double"}};
        u.options = {std::string{"-DTYPE="} + type};
        u.licence = "Apache-2.0";
        out.push_back({{.name = name, .kind = "double", .types = {name.substr(11)}, .kernels = u.kernels}, u});
    }
    return out;
}

constexpr std::array variants{
    variant{.name = "gpu", .types = types(scalar::f32, scalar::i32), .needs = "toy_double_{type}"},
    variant{.name = "cpu", .where = place::cpu}};

}  // namespace

constinit operation const double_operation{"toy_double", "toy", {.pairwise = 1 << 12}, variants};

namespace {

requirement const by_family{"toy_doubles", {"toy_double_f32"}, {.when = {"float"}, .pack = "toy"}};

constexpr operation const* operations[] = {&double_operation};
requirement const* const requirements[] = {&by_family};

engine_detail::unit_pack const the_pack{
    {.name = "toy", .ships = embedded::toy_products(), .operations = operations, .requirements = requirements}, units};

}  // namespace

}  // namespace kiln::toy

KILN_PACK(toy);
