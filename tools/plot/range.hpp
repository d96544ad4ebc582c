// SPDX-License-Identifier: Apache-2.0
// An axis with its range decided: from values to a place between 0 and 1, and the ticks in between.
#pragma once

#include "plot/plot.hpp"

namespace kiln::plot {

struct tick {
    double value = 0;
    std::string label;     // empty: a line without a number
    std::string exponent;  // "20" of 2^20: set above the line where that can be done
};

class range {
public:
    // `values` decide what the axis leaves open; bars stand on zero, or on half the least where there is no zero.
    enum class baseline { free, zero };
    range(axis const& about, std::vector<double> const& values, baseline from);

    [[nodiscard]] bool drawable(double value) const noexcept;
    // Clamped to the range.
    [[nodiscard]] double place(double value) const noexcept;
    [[nodiscard]] std::vector<tick> ticks() const;
    [[nodiscard]] double least() const noexcept { return least_; }
    [[nodiscard]] double most() const noexcept { return most_; }

private:
    [[nodiscard]] double position(double value) const noexcept;
    plot::scale scale_;
    double least_ = 0;
    double most_ = 1;
};

// Both axes of a plot, wide enough for everything in it.
struct axes {
    range x, y;
};
[[nodiscard]] axes axes_of(line_plot const& p);

// "0.95", "1200", "1.2e+07".
[[nodiscard]] std::string number_text(double value);

}  // namespace kiln::plot
