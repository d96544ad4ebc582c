// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::python {

namespace {

std::string strides_text(array const& a) {
    std::string out = "[";
    for (int i = 0; i < a.dimensions(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(a.stride(i));
    return out + "]";
}

}  // namespace

void want_contiguous(array const& a) {
    if (a.contiguous()) return;
    throw error{errc::invalid_argument, std::string{a.argument()} + " is not contiguous: shape " + shape_text(a) + ", strides " +
                                            strides_text(a) + "; pass " + a.argument() + ".contiguous(), or a copy in order"};
}

void want_writable(array const& a) {
    if (a.read_only()) throw error{errc::invalid_argument, std::string{a.argument()} + " cannot be written to: " + a.describe()};
}

std::span<std::byte> whole_of(array const& of) {
    if (of.items() == 0) return {};
    std::int64_t low = 0, high = 1;
    for (int i = 0; i < of.dimensions(); ++i) (of.stride(i) < 0 ? low : high) += (of.extent(i) - 1) * of.stride(i);
    auto const width = static_cast<std::int64_t>(of.type().bits / 8U * of.type().lanes);
    return {static_cast<std::byte*>(of.data()) + low * width, static_cast<std::size_t>((high - low) * width)};
}

namespace {

// How many bytes an array takes of each `apart` of them, where it goes on by multiples of that; nullopt where it takes more than there are.
std::optional<std::int64_t> taken_of_each(std::int64_t apart, array const& a) {
    auto const width = static_cast<std::int64_t>(a.type().bits / 8U * a.type().lanes);
    auto taken = width;
    for (int i = 0; i < a.dimensions(); ++i) {
        auto const step = std::abs(a.stride(i)) * width;
        if (a.extent(i) > 1 && step % apart != 0) taken += (a.extent(i) - 1) * step;
    }
    return taken <= apart ? std::optional{taken} : std::nullopt;
}

// Whether two arrays lie beside each other in every row of one that holds both, as halves of a matrix do.
bool are_columns_apart(array const& a, array const& b) {
    for (auto const* of : {&a, &b}) {
        for (int i = 0; i < of->dimensions(); ++i) {
            auto const apart = std::abs(of->stride(i)) * static_cast<std::int64_t>(of->type().bits / 8U * of->type().lanes);
            if (of->extent(i) < 2 || apart == 0) continue;
            auto const one = taken_of_each(apart, a), other = taken_of_each(apart, b);
            if (!one || !other) continue;
            auto const between = (whole_of(b).data() - whole_of(a).data()) % apart;
            auto const from_a = between < 0 ? between + apart : between;
            if (from_a >= *one && from_a + *other <= apart) return true;
        }
    }
    return false;
}

}  // namespace

void want_no_item_twice(array const& out) {
    std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // step, extent
    for (int i = 0; i < out.dimensions(); ++i)
        if (out.extent(i) > 1) dimensions.emplace_back(std::abs(out.stride(i)), out.extent(i));
    std::ranges::sort(dimensions);
    std::int64_t taken = 1;
    for (auto const& [step, extent] : dimensions) {
        if (step < taken && out.items() != 0) throw error{errc::invalid_argument, std::string{out.argument()} + " overlaps itself: write to another array"};
        taken += (extent - 1) * step;
    }
}

void want_apart(array const& out, std::initializer_list<array const*> inputs, in_place same) {
    auto const to = whole_of(out);
    for (auto const* in : inputs) {
        if (in == nullptr) continue;
        if (same == in_place::allowed && in->data() == out.data()) continue;
        auto const from = whole_of(*in);
        if (from.data() < to.data() + to.size() && to.data() < from.data() + from.size() && !are_columns_apart(out, *in))
            throw error{errc::invalid_argument, std::string{out.argument()} + " and " + in->argument() + " overlap: " + out.describe() +
                                                    (same == in_place::allowed ? "; write to the same array or to another one" : "; write to another array")};
    }
}

}  // namespace kiln::python
