// SPDX-License-Identifier: Apache-2.0
#include "plot/range.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace kiln::plot {

namespace {

// 1, 2 or 5 times a power of ten, so that about `count` of them fit.
double linear_step(double width, int count) {
    double const raw = width / count;
    double const power = std::pow(10.0, std::floor(std::log10(raw)));
    for (double const factor : {1.0, 2.0, 5.0}) {
        if (raw <= factor * power) return factor * power;
    }
    return 10 * power;
}

void add_decade(std::vector<tick>& out, int power, double least, double most, int step) {
    double const base = std::pow(10.0, power);
    bool const few = most / least < 200;
    for (int const factor : {1, 2, 5}) {
        double const value = factor * base;
        if (value < least * 0.999999 || value > most * 1.000001) continue;
        if (factor == 1 && power % step == 0) out.push_back({value, number_text(value), {}});
        else if (few) out.push_back({value, number_text(value), {}});
    }
}

}  // namespace

std::string number_text(double value) {
    if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-4)) return fmt::format("{:.2g}", value);
    auto out = fmt::format("{:.4g}", value);
    // 1e+04 and 1e+05 read better in full.
    return out.find('e') == out.npos ? out : fmt::format("{:.0f}", value);
}

range::range(axis const& about, std::vector<double> const& values, baseline from) : scale_{about.scale} {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (double const v : values) {
        if (!drawable(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
    }
    if (low > high) low = high = 1;
    if (scale_ == scale::linear) {
        if (from == baseline::zero) {
            low = std::min(low, 0.0);
            high = std::max(high, 0.0);
        }
        if (low == high) high = low + (low == 0 ? 1 : std::abs(low));
        double const step = linear_step(high - low, 5);
        low = std::floor(low / step + 1e-9) * step;
        high = std::ceil(high / step - 1e-9) * step;
    } else if (from == baseline::zero || low == high) {
        low /= 2;  // the smallest bar is still a bar
    }
    least_ = about.least.value_or(low);
    most_ = about.most.value_or(high);
    if (scale_ != scale::linear && least_ <= 0) least_ = low;
    if (!(least_ < most_)) most_ = scale_ == scale::linear ? least_ + 1 : least_ * 2;
}

bool range::drawable(double value) const noexcept {
    return std::isfinite(value) && (scale_ == scale::linear || value > 0);
}

double range::position(double value) const noexcept { return scale_ == scale::linear ? value : std::log2(value); }

double range::place(double value) const noexcept {
    double const low = position(least_);
    return std::clamp((position(value) - low) / (position(most_) - low), 0.0, 1.0);
}

std::vector<tick> range::ticks() const {
    std::vector<tick> out;
    if (scale_ == scale::linear) {
        double const step = linear_step(most_ - least_, 6);
        for (double at = std::ceil(least_ / step - 1e-9); at * step <= most_ + step * 1e-9; ++at)
            out.push_back({at * step, number_text(at == 0 ? 0 : at * step), {}});
        return out;
    }
    if (scale_ == scale::log2) {
        int const first = static_cast<int>(std::ceil(std::log2(least_) - 1e-9));
        int const last = static_cast<int>(std::floor(std::log2(most_) + 1e-9));
        int const step = std::max(1, (last - first + 9) / 10);
        for (int power = first; power <= last; ++power) {
            bool const named = (power - first) % step == 0;
            out.push_back({std::exp2(power), named ? "2" : "", named ? std::to_string(power) : ""});
        }
        return out;
    }
    int const first = static_cast<int>(std::floor(std::log10(least_)));
    int const last = static_cast<int>(std::ceil(std::log10(most_)));
    for (int power = first; power <= last; ++power)
        add_decade(out, power, least_, most_, std::max(1, (last - first) / 8));
    return out;
}

axes axes_of(line_plot const& p) {
    std::vector<double> xs;
    std::vector<double> ys;
    for (auto const& l : p.lines) {
        for (auto const& at : l.points) {
            xs.push_back(at.x);
            ys.push_back(at.y);
        }
    }
    for (auto const& m : p.marks) ys.push_back(m.y);
    return {{p.x, xs, range::baseline::free}, {p.y, ys, range::baseline::free}};
}

}  // namespace kiln::plot
