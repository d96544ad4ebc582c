// SPDX-License-Identifier: Apache-2.0
// Every template of the public headers made real. A compiler that reads a template may still get it wrong where it is used:
// nvcc writes it out again for the host's compiler, and loses types that are not named on the way.
#include <kiln/kernel.hpp>
#include <kiln/prims/once.hpp>
#include <kiln/prims/sum.hpp>
#include <kiln/runtime/interop.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/tropical/run.hpp>

namespace {

using namespace kiln;

struct point {
    float x, y;
};

}  // namespace

template <>
struct kiln::device_type<point> {
    static constexpr std::string_view name = "point", definition = "struct point { float x, y; };";
};

// Members of a class are all made with it; what a base class declares is made here too.
template class kiln::run::scan<int>;
template class kiln::run::exclusive_scan<int>;
template class kiln::run::inclusive_scan<float>;
template class kiln::run::reduce<double>;
template class kiln::run::segmented_reduce<float>;
template class kiln::run::select<int>;
template class kiln::run::bound<int>;
template class kiln::run::lower_bound<int>;
template class kiln::run::upper_bound<float>;
template class kiln::run::radix_sort<std::uint32_t>;
template class kiln::run::merge_sort<double>;
template class kiln::run::unique_by_key<int, float>;
template class kiln::run::sum<float>;
template class kiln::run::sum<double>;
template class kiln::run::tropical_product<float>;
template class kiln::run::tropical_product<std::int64_t>;
template class kiln::tropical::product_handle<float>;
template class kiln::tropical::backward_handle<double>;
template class kiln::buffer<float>;
template class kiln::buffer<std::uint8_t>;
template class kiln::column<float>;

namespace {

[[maybe_unused]] result<void> handles(stream_ref on, device_span<int> ints, device_span<float> floats,
                                      device_span<std::uint8_t> mask, std::uint64_t* count) {
    auto const by = op{"a * s + b"}.with(3);
    auto const points = merge_sort<point, int>(op{"a.x < b.x"}).value();
    sort_arguments<point, int> pairs;
    pairs.values_in = ints.data;
    points(on, pairs).value();
    exclusive_scan<int>(by).value()(on, ints, ints, {.init = 1}).value();
    inclusive_scan<int>(plus).value()(on, {ints.data, ints.size}, {ints.data, ints.size}).value();
    reduce<float>(kiln::max).value()(on, floats, floats.data, {.init = 1.0F}).value();
    segmented_reduce<float>(plus).value()(on, floats, ints, floats).value();
    select_if<int>(op{"a > 0"}).value()(on, ints, ints.data, count).value();
    select_indices_if<std::uint32_t>(op{"a > 0"}).value()(on, 7, nullptr, count).value();
    select_indices<int>().value()(on, mask, ints.data, count).value();
    lower_bound<float>().value()(on, floats, floats, ints).value();
    radix_sort<int>().value()(on, {.keys_in = ints, .keys_out = ints.data}).value();
    transform<int, float>(op{"a * 0.5f"}).value()(on, ints, floats).value();
    return gather<float, int>().value()(on, floats.data, ints, floats);
}

[[maybe_unused]] result<void> at_once(stream_ref on, device_span<int> ints, device_span<float> floats,
                                      device_span<std::uint8_t> mask, std::uint64_t* count) {
    once::exclusive_scan<int>(on, ints, ints).value();
    once::inclusive_scan<int>(on, ints, ints).value();
    once::reduce<float>(on, floats, floats.data, kiln::min, 3.0F).value();
    once::segmented_reduce<float>(on, floats, ints, floats).value();
    once::select<int>(on, ints, mask.data, ints.data, count).value();
    once::select_if<int>(on, ints, ints.data, count, op{"a > 0"}).value();
    once::select_indices<int>(on, mask, ints.data, count).value();
    once::lower_bound<float>(on, floats, floats, ints).value();
    once::upper_bound<float>(on, floats, floats, ints).value();
    once::radix_sort<int>(on, {.keys_in = ints, .keys_out = ints.data}).value();
    once::merge_sort<int>(on, {.keys_in = ints, .keys_out = ints.data}).value();
    once::transform<int, float>(on, ints, floats, op{"a * 2"}).value();
    once::gather<float, int>(on, floats.data, ints, floats).value();
    return once::unique_by_key<int, float>(on, {.keys_in = ints, .keys_out = ints.data}, count);
}

[[maybe_unused]] result<void> products(stream_ref on, float const* a, float const* b, float* c) {
    tropical::shape const size{.m = 3, .n = 4, .k = 5};
    auto const shorter = tropical::product<float>(tropical::semiring::min_plus);
    auto const back = tropical::backward<float>(tropical::gradient_rule::plus);
    tropical::cpu::product<float>(tropical::semiring::max_mul, size, {a}, {b}, {c}).value();
    (*back)(on, size, {a}, {}, {c}, {c}).value();
    return shorter.and_then([&](auto const& handle) {
        return handle(on, size, {a}, {b}, {c}, {.into = tropical::accumulation::into_c});
    });
}

[[maybe_unused]] result<std::string> results(result<int> const& some, result<void> const& done) {
    return done.and_then([&] { return some; })
        .transform([](int value) { return std::to_string(value); })
        .or_else([](error const& why) -> result<std::string> { return error{why.code(), "no number"}; });
}

}  // namespace
