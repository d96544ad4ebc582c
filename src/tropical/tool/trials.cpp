// SPDX-License-Identifier: Apache-2.0
// The tropical pack for Kiln's own programs.
#include "workshop/pack_tool.hpp"
#include "workshop/settled.hpp"

#include <kiln/tropical/run.hpp>

#include <bit>
#include <cmath>

namespace kiln::tropical {

namespace {

// So many steps, near a cube.
shape shape_of(std::size_t steps) {
    auto const near = [](double side) { return std::bit_floor(static_cast<std::size_t>(side)); };
    auto const k = near(std::cbrt(static_cast<double>(steps)) + 0.5);
    auto const m = near(std::sqrt(static_cast<double>(steps / k)) + 0.5);
    auto const signed_of = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    return {.m = signed_of(m), .n = signed_of(steps / k / m), .k = signed_of(k)};
}

buffer<float> some_numbers(std::int64_t count) {
    auto out = buffer<float>::on_host(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = static_cast<float>(i * 7 % 1000);
    return out;
}

class tropical_tool final : public workshop::pack_tool {
public:
    tropical_tool() : pack_tool{"tropical"} {}
    [[nodiscard]] std::vector<workshop::trial> trials() const override {
        auto const product = std::make_shared<run::tropical_product<float>>(semiring::max_plus);
        return {{&product_operation, [=](stream_ref on, std::size_t n) -> result<void> {
                     auto const s = shape_of(n);
                     KILN_TRY(auto const out, (*product)(on, s, some_numbers(s.m * s.k), some_numbers(s.k * s.n)));
                     return workshop::settled(result<buffer<float>>{out.c}, on);
                 }}};
    }
};

tropical_tool const the_tool;

}  // namespace

}  // namespace kiln::tropical
