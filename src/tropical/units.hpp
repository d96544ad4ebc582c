// SPDX-License-Identifier: Apache-2.0
//
// The pack's units: which there are, what they are called, and what they are compiled from. Names follow the library whose
// start-up this pack was made to cure, so that a user of it finds each of its 31 kernels.
#pragma once

#include "engine/pack.hpp"
#include "tropical/tuning.hpp"

namespace kiln::tropical {

// "tropical_maxplus_f32_nn", "..._with_argmax".
[[nodiscard]] std::string product_name(semiring s, scalar type, with_winners arg);
[[nodiscard]] unit product_unit(semiring s, scalar type, with_winners arg);
[[nodiscard]] unit generic_unit(semiring s, scalar type, with_winners arg);
// "tropical_backward_f32", "tropical_maxmul_backward_f32".
[[nodiscard]] unit backward_unit(gradient_rule rule, scalar type);
// "tropical_counting_maxplus_f32".
[[nodiscard]] unit counting_unit(semiring s, scalar type);

// The catalogue's rows, and the unit behind each name: several names may share one. Generic ones have no name: they are for
// where nothing was shipped.
using engine_detail::named_unit;
[[nodiscard]] std::vector<named_unit> named_units();

[[nodiscard]] bool is_supported(scalar type) noexcept;

}  // namespace kiln::tropical
