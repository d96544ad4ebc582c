// SPDX-License-Identifier: Apache-2.0
#include "tropical/problem.hpp"

namespace kiln::tropical {

namespace {

constexpr std::int64_t largest = (std::int64_t{1} << 31) - 257;

// One matrix of the call: `rows` x `columns` as the user sees it stored.
struct stored {
    char const* name;
    std::int64_t rows, columns, ld, stride;
};

// Fills in ld and stride. errc::invalid_argument where rows would overlap.
result<void> settle(stored& s, order layout, std::int64_t batch, batch_form form) {
    auto const inner = layout == order::row_major ? s.columns : s.rows;
    auto const outer = layout == order::row_major ? s.rows : s.columns;
    if (s.ld == 0) s.ld = inner;
    if (s.ld < inner)
        return fail(errc::invalid_argument,
                    "tropical: leading dimension {} of {} is less than its {} elements side by side", s.ld, s.name,
                    inner);
    if (s.stride == 0) s.stride = s.ld * outer;
    if (s.stride < 0 && batch > 1 && form == batch_form::strided)
        return fail(errc::invalid_argument, "tropical: stride {} of {} is negative", s.stride, s.name);
    return {};
}

result<void> check(shape const& s) {
    for (auto const& [name, size] : {std::pair{"m", s.m}, {"n", s.n}, {"k", s.k}}) {
        if (size < 0 || size > largest)
            return fail(errc::invalid_argument, "tropical: {} = {} is not between 0 and {}", name, size, largest);
    }
    if (s.batch < 0) return fail(errc::invalid_argument, "tropical: a batch of {}", s.batch);
    return {};
}

result<void> present(char const* name, void const* data, bool used) {
    if (data == nullptr && used) return fail(errc::invalid_argument, "tropical: {} is null", name);
    return {};
}

bool is_transposed(transposed t) { return t == transposed::yes; }

stored matrix(char const* name, std::int64_t rows, std::int64_t columns, transposed as, std::int64_t ld,
              std::int64_t stride) {
    if (is_transposed(as)) std::swap(rows, columns);
    return {name, rows, columns, ld, stride};
}

// Whether neighbours of a stored matrix go along k.
bool a_goes_along_k(order layout, transposed as) { return (layout == order::row_major) != is_transposed(as); }
bool b_goes_along_k(order layout, transposed as) { return (layout == order::column_major) != is_transposed(as); }

}  // namespace

result<problem> problem_of(product_call const& c, with_winners arg) {
    auto const& s = c.shape;
    KILN_CHECK(check(s));
    auto a = matrix("A", s.m, s.k, c.a_as, c.lda, c.stride_a);
    auto b = matrix("B", s.k, s.n, c.b_as, c.ldb, c.stride_b);
    auto out = matrix("C", s.m, s.n, transposed::no, c.ldc, c.stride_c);
    auto k = matrix("the winners", s.m, s.n, transposed::no, c.ldarg, c.stride_arg);
    for (auto* const each : {&a, &b, &out, &k}) KILN_CHECK(settle(*each, s.layout, s.batch, c.batch));
    bool const results = s.m > 0 && s.n > 0 && s.batch > 0;
    KILN_CHECK(present("C", c.c, results));
    KILN_CHECK(present("A", c.a, results && s.k > 0));
    KILN_CHECK(present("B", c.b, results && s.k > 0));
    if (arg == with_winners::yes) KILN_CHECK(present("the output for winners", c.arg, results));
    else if (c.arg != nullptr)
        return fail(errc::invalid_argument,
                    "tropical: this handle does not say which k won; make it with {{.arg = with_winners::yes}}");

    problem p{.a = c.a,
              .b = c.b,
              .c = c.c,
              .arg = c.arg,
              .lda = a.ld,
              .ldb = b.ld,
              .ldc = out.ld,
              .ldarg = k.ld,
              .stride_a = a.stride,
              .stride_b = b.stride,
              .stride_c = out.stride,
              .stride_arg = k.stride,
              .batch = s.batch,
              .m = static_cast<std::int32_t>(s.m),
              .n = static_cast<std::int32_t>(s.n),
              .k = static_cast<std::int32_t>(s.k),
              .flags = 0,
              .no_path = c.none,
              .one = 1,
              .signals = nullptr};
    if (a_goes_along_k(s.layout, c.a_as)) p.flags |= flag::a_along_k;
    if (b_goes_along_k(s.layout, c.b_as)) p.flags |= flag::b_along_k;
    if (s.layout == order::row_major) {
        std::swap(p.a, p.b);
        std::swap(p.lda, p.ldb);
        std::swap(p.stride_a, p.stride_b);
        std::swap(p.m, p.n);
        p.flags = (p.flags & flag::a_along_k) * 2 | (p.flags & flag::b_along_k) / 2;
    }
    if (c.into == accumulation::into_c) p.flags |= flag::accumulate;
    if (c.width == index_width::i64) p.flags |= flag::arg_is_64;
    if (c.batch == batch_form::by_pointer) p.flags |= flag::by_pointer;
    return p;
}

result<gradient> gradient_of(backward_call const& c, gradient_rule rule) {
    auto const& s = c.shape;
    KILN_CHECK(check(s));
    auto g = matrix("the gradient of C", s.m, s.n, transposed::no, c.ldg, c.stride_g);
    auto k = matrix("the winners", s.m, s.n, transposed::no, c.ldarg, c.stride_arg);
    auto a = matrix("A", s.m, s.k, c.a_as, c.lda, c.stride_a);
    auto b = matrix("B", s.k, s.n, c.b_as, c.ldb, c.stride_b);
    auto da = matrix("the gradient of A", s.m, s.k, c.a_as, c.ldda, c.stride_da);
    auto db = matrix("the gradient of B", s.k, s.n, c.b_as, c.lddb, c.stride_db);
    for (auto* const each : {&g, &k, &a, &b, &da, &db})
        KILN_CHECK(settle(*each, s.layout, s.batch, batch_form::strided));
    bool const inputs = s.m > 0 && s.n > 0 && s.batch > 0;
    KILN_CHECK(present("the gradient of C", c.g, inputs));
    KILN_CHECK(present("the winners", c.arg, inputs));
    KILN_CHECK(present("the gradient of A", c.da, s.m > 0 && s.k > 0 && s.batch > 0));
    KILN_CHECK(present("the gradient of B", c.db, s.n > 0 && s.k > 0 && s.batch > 0));
    if (rule == gradient_rule::mul) {
        KILN_CHECK(present("A, whose values the rule of max_mul needs,", c.a, inputs && s.k > 0));
        KILN_CHECK(present("B, whose values the rule of max_mul needs,", c.b, inputs && s.k > 0));
    }
    gradient p{.g = c.g,
               .arg = c.arg,
               .a = c.a,
               .b = c.b,
               .da = c.da,
               .db = c.db,
               .ldg = g.ld,
               .ldarg = k.ld,
               .lda = a.ld,
               .ldb = b.ld,
               .ldda = da.ld,
               .lddb = db.ld,
               .stride_g = g.stride,
               .stride_arg = k.stride,
               .stride_a = a.stride,
               .stride_b = b.stride,
               .stride_da = da.stride,
               .stride_db = db.stride,
               .batch = s.batch,
               .m = static_cast<std::int32_t>(s.m),
               .n = static_cast<std::int32_t>(s.n),
               .k = static_cast<std::int32_t>(s.k),
               .flags = 0,
               .part = 0,
               .unused = 0};
    bool a_k = a_goes_along_k(s.layout, c.a_as), b_k = b_goes_along_k(s.layout, c.b_as);
    if (s.layout == order::row_major) {
        std::swap(p.a, p.b);
        std::swap(p.da, p.db);
        std::swap(p.lda, p.ldb);
        std::swap(p.ldda, p.lddb);
        std::swap(p.stride_a, p.stride_b);
        std::swap(p.stride_da, p.stride_db);
        std::swap(p.m, p.n);
        std::swap(a_k, b_k);
    }
    if (a_k) p.flags |= flag::a_along_k | flag::da_along_k;
    if (b_k) p.flags |= flag::b_along_k | flag::db_along_k;
    if (c.into == accumulation::into_c) p.flags |= flag::accumulate;
    if (c.width == index_width::i64) p.flags |= flag::arg_is_64;
    return p;
}

}  // namespace kiln::tropical
