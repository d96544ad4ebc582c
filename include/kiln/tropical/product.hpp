// SPDX-License-Identifier: Apache-2.0
//
// Matrix products over other semirings: C = A (x) B with max, min, or and plus as the sum; with the k that won, gradients,
// batches, every layout. docs/tropical.md says what they mean for ties, NaN, infinities and integers. Making a handle finds
// what ships with the library and compiles nothing; where something must be compiled, a generic kernel serves until the tuned
// one is there, with the same bits. Calling one queues work on the stream: no synchronisation, no allocation, no lookup; it
// may be captured in a graph. Handles are cheap to copy and may be used by several threads. The functions in cpu:: do the
// same on host memory.
//
//     auto const shorter = kiln::tropical::product<float>(kiln::tropical::semiring::min_plus).value();
//     shorter(stream, {.m = n, .n = n, .k = n}, {a}, {b}, {c}).value();                 // c[i, j] = min over k of a[i, k] + b[k, j]
#pragma once

#include <kiln/engine.hpp>
#include <kiln/scalar.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {
namespace tropical {

enum class semiring : std::uint8_t { max_plus = 1, min_plus, max_mul, and_or, plus_times };
[[nodiscard]] std::string_view name_of(semiring s) noexcept;  // "maxplus"

enum class order : std::uint8_t { row_major, column_major };
enum class transposed : std::uint8_t { no, yes };
enum class accumulation : std::uint8_t { replace, into_c };  // into_c: C = C (+) A (x) B
enum class index_width : std::uint8_t { i32, i64 };
enum class batch_form : std::uint8_t { strided, by_pointer };  // by_pointer: arrays of pointers, on the device too

struct shape {
    std::int64_t m = 0, n = 0, k = 0;  // C is m x n; each below 2^31 - 256
    std::int64_t batch = 1;
    order layout = order::row_major;  // of all matrices
};

// Leading dimensions and strides are in elements; 0 means dense, one member of the batch after the other.
template <class T>
struct input {
    T const* data = nullptr;
    std::int64_t ld = 0;
    std::int64_t stride = 0;
    transposed as = transposed::no;  // yes: stored as its transpose
};
template <class T>
struct output {
    T* data = nullptr;
    std::int64_t ld = 0;
    std::int64_t stride = 0;
};
// The first k that reaches the result; `none` where nothing beats the semiring's zero, -1 where C was kept.
struct winners {
    void* data = nullptr;  // std::int32_t or std::int64_t
    index_width width = index_width::i32;
    std::int64_t ld = 0;
    std::int64_t stride = 0;
    std::int32_t none = -1;
};
struct winners_in {
    void const* data = nullptr;
    index_width width = index_width::i32;
    std::int64_t ld = 0;
    std::int64_t stride = 0;
};

// The neutral element of the sum: "no path". Integers have no infinity; see docs/tropical.md for what counts as one.
template <class T>
[[nodiscard]] constexpr T zero_of(semiring s) noexcept {
    constexpr bool has_infinity = std::numeric_limits<T>::has_infinity;
    if (s == semiring::max_plus) {
        if constexpr (has_infinity) return -std::numeric_limits<T>::infinity();
        else return static_cast<T>(-(T{1} << (sizeof(T) * 8 - 2)));
    }
    if (s == semiring::min_plus) {
        if constexpr (has_infinity) return std::numeric_limits<T>::infinity();
        else return static_cast<T>((T{1} << (sizeof(T) * 8 - 2)) - 1);
    }
    return T{0};
}

// ---- Type-erased ---------------------------------------------------------------------------------------------------

// One call, by the element type of the handle.
struct product_call {
    tropical::shape shape;
    void const* a = nullptr;
    void const* b = nullptr;
    void* c = nullptr;
    void* arg = nullptr;
    std::int64_t lda = 0, ldb = 0, ldc = 0, ldarg = 0;
    std::int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_arg = 0;
    transposed a_as = transposed::no, b_as = transposed::no;
    accumulation into = accumulation::replace;
    index_width width = index_width::i32;
    std::int32_t none = -1;
    batch_form batch = batch_form::strided;
};

enum class gradient_rule : std::uint8_t { plus = 1, mul };  // mul: of max_mul
struct backward_call {
    tropical::shape shape;
    void const* g = nullptr;  // of C
    void const* arg = nullptr;
    void const* a = nullptr;  // of the forward product; for mul alone
    void const* b = nullptr;
    void* da = nullptr;
    void* db = nullptr;
    std::int64_t ldg = 0, ldarg = 0, lda = 0, ldb = 0, ldda = 0, lddb = 0;
    std::int64_t stride_g = 0, stride_arg = 0, stride_a = 0, stride_b = 0, stride_da = 0, stride_db = 0;
    transposed a_as = transposed::no, b_as = transposed::no;  // of da and db too
    accumulation into = accumulation::replace;
    index_width width = index_width::i32;
};

enum class with_winners : std::uint8_t { no, yes };
enum class with_gradients : std::uint8_t { no, yes };
enum class kernel_choice : std::uint8_t {
    automatic,  // tuned; generic while that is being compiled
    generic,    // one thread per element: for comparison
    large,
    small,
    split,
};

struct product_options {
    with_winners arg = with_winners::no;
    int device = 0;
    kernel_choice choice = kernel_choice::automatic;
    kiln::engine* engine = nullptr;  // default: engine::process()
    wait_options wait = {};
};

class untyped_product {
public:
    struct state;
    [[nodiscard]] static result<untyped_product> make(semiring s, scalar type, product_options const& how = {});

    // Queued on `on`. errc::invalid_argument for shapes that cannot be, with the number that is wrong.
    result<void> run(stream_ref on, product_call const& call) const;
    // True once launches take the tuned kernels.
    [[nodiscard]] bool tuned() const noexcept;
    // Blocks until they do; false if the deadline came first or they could not be made.
    bool wait_tuned_sync(std::chrono::milliseconds deadline = std::chrono::minutes{1}) const;

private:
    explicit untyped_product(std::shared_ptr<state> s) noexcept : state_{std::move(s)} {}
    std::shared_ptr<state> state_;
};

class untyped_backward {
public:
    struct state;
    [[nodiscard]] static result<untyped_backward> make(gradient_rule rule, scalar type,
                                                       product_options const& how = {});
    result<void> run(stream_ref on, backward_call const& call) const;

private:
    explicit untyped_backward(std::shared_ptr<state const> s) noexcept : state_{std::move(s)} {}
    std::shared_ptr<state const> state_;
};

// What a call needs, by the names of `kiln list --pack tropical`: for demands and plans.
struct need {
    tropical::semiring semiring = tropical::semiring::max_plus;
    scalar type = scalar::f32;
    with_winners arg = with_winners::no;
    with_gradients gradients = with_gradients::no;
};
[[nodiscard]] std::vector<std::string> units_of(need const& what);

namespace cpu {
// On host memory, one thread; blocked and vectorised. The same results as the device, bit for bit, but for plus_times on
// floats.
result<void> run(semiring s, scalar type, product_call const& call);
result<void> run(gradient_rule rule, scalar type, backward_call const& call);
}  // namespace cpu

// ---- Typed ---------------------------------------------------------------------------------------------------------

namespace detail {
// In and Out: of elements, or of pointers to them.
template <class In, class Out>
product_call call_of(tropical::shape const& s, input<In> const& a, input<In> const& b, output<Out> const& c,
                     winners const& arg, accumulation into) {
    return {.shape = s,
            .a = a.data,
            .b = b.data,
            .c = c.data,
            .arg = arg.data,
            .lda = a.ld,
            .ldb = b.ld,
            .ldc = c.ld,
            .ldarg = arg.ld,
            .stride_a = a.stride,
            .stride_b = b.stride,
            .stride_c = c.stride,
            .stride_arg = arg.stride,
            .a_as = a.as,
            .b_as = b.as,
            .into = into,
            .width = arg.width,
            .none = arg.none};
}
}  // namespace detail

// T: float, double, std::int32_t or std::int64_t.
template <class T>
class product_handle : public untyped_product {
public:
    explicit product_handle(untyped_product untyped) : untyped_product{std::move(untyped)} {}

    struct extras {
        winners arg = {};  // of a handle with winners
        accumulation into = accumulation::replace;
    };
    result<void> operator()(stream_ref on, tropical::shape const& s, input<T> const& a, input<T> const& b,
                            output<T> const& c, extras const& more = {}) const {
        return run(on, detail::call_of(s, a, b, c, more.arg, more.into));
    }
    // `data` of each is an array of s.batch pointers, all on the device; strides do not count.
    result<void> by_pointer(stream_ref on, tropical::shape const& s, input<T const*> const& a, input<T const*> const& b,
                            output<T*> const& c, extras const& more = {}) const {
        auto call = detail::call_of(s, a, b, c, more.arg, more.into);
        call.batch = batch_form::by_pointer;
        return run(on, call);
    }
};
template <class T>
[[nodiscard]] result<product_handle<T>> product(semiring s, product_options const& how = {}) {
    return untyped_product::make(s, scalar_of<T>(), how).transform([](untyped_product&& made) {
        return product_handle<T>(std::move(made));
    });
}

// T: float or double. Sums in a fixed order: the same bits every time, on the CPU too.
template <class T>
class backward_handle : public untyped_backward {
public:
    explicit backward_handle(untyped_backward untyped) : untyped_backward{std::move(untyped)} {}

    struct factors {
        input<T> a, b;  // of the forward product, for gradient_rule::mul
    };
    result<void> operator()(stream_ref on, tropical::shape const& s, input<T> const& g, winners_in const& arg,
                            output<T> const& da, output<T> const& db, factors const& more = {}) const {
        backward_call call;
        call.shape = s;
        call.g = g.data, call.arg = arg.data, call.width = arg.width;
        call.a = more.a.data, call.b = more.b.data, call.da = da.data, call.db = db.data;
        call.ldg = g.ld, call.ldarg = arg.ld, call.lda = more.a.ld, call.ldb = more.b.ld, call.ldda = da.ld,
        call.lddb = db.ld;
        call.stride_g = g.stride, call.stride_arg = arg.stride, call.stride_a = more.a.stride,
        call.stride_b = more.b.stride;
        call.stride_da = da.stride, call.stride_db = db.stride;
        call.a_as = more.a.as, call.b_as = more.b.as;
        return run(on, call);
    }
};
template <class T>
[[nodiscard]] result<backward_handle<T>> backward(gradient_rule rule, product_options const& how = {}) {
    return untyped_backward::make(rule, scalar_of<T>(), how).transform([](untyped_backward&& made) {
        return backward_handle<T>(std::move(made));
    });
}

namespace cpu {
template <class T>
result<void> product(semiring s, tropical::shape const& size, input<T> const& a, input<T> const& b, output<T> const& c,
                     winners const& arg = {}, accumulation into = accumulation::replace) {
    return run(s, scalar_of<T>(), detail::call_of(size, a, b, c, arg, into));
}
}  // namespace cpu

}  // namespace tropical
}  // namespace kiln
