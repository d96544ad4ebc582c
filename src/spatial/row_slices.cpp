// SPDX-License-Identifier: Apache-2.0
#include "spatial/row_slices.hpp"

#include "spatial/choose.hpp"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

result<row_slices> row_slices::make(queue& on, geometries const& of) {
    row_slices out{on};
    KILN_TRY(out.memory_, memory_of(of));
    if (of.chosen()) {
        out.numbers_ = *of.chosen();
        return out;
    }
    KILN_TRY(out.numbers_, on.room<std::int32_t>(of.rows()));
    KILN_CHECK(on.launch(number_words{out.numbers_.data()}, of.rows()));
    return out;
}

result<geometries> row_slices::slice(std::size_t first, std::size_t last) const {
    return memory_.view(numbers_.part(first, last - first));
}
result<void> row_slices::shift(pair_list const& pairs, std::size_t first) const {
    return on_->launch(shift_words{pairs.left.data(), static_cast<i32>(first)}, pairs.size());
}

result<void> for_slices(std::size_t rows, list_rows const& list, take_pairs const& take) {
    std::size_t step = std::max<std::size_t>(rows / 16, 1), too_many = ~std::size_t{0};
    for (std::size_t first = 0; first < rows;) {
        auto const last = std::min(rows, first + step);
        auto const got = list(first, last);
        if (!got && got.error().code() == errc::out_of_memory && last - first > 1) {
            too_many = last - first;
            step = too_many / 2;
            continue;
        }
        if (!got) return got.error();
        KILN_CHECK(take(*got));
        first = last;
        // Towards what was too much a quarter at a time; it may have been a crowded place.
        if (step < too_many / 2) step *= 2;
        else step += step / 4, too_many += too_many / 4;
        step = std::max<std::size_t>(step, 1);
    }
    return {};
}

}  // namespace kiln::spatial
