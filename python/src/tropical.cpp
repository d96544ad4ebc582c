// SPDX-License-Identifier: Apache-2.0
// Tropical products of arrays as they are: batched, transposed, on the host or on a device. Shapes are compared here, by what describes the
// memory; Python (kiln/tropical.py) makes room for results.
#include "arrays.hpp"
#include "device_array.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "streams.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <kiln/tropical/run.hpp>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

namespace kiln::python {

namespace {

using namespace tropical;

semiring semiring_by_name(std::string const& name) {
    auto plain = name;
    std::erase(plain, '_');
    for (auto const s : {semiring::max_plus, semiring::min_plus, semiring::max_mul, semiring::and_or, semiring::plus_times})
        if (plain == tropical::name_of(s)) return s;
    throw error{errc::invalid_argument, "there is no semiring '" + name + "'; there are max_plus, min_plus, max_mul, and_or, plus_times"};
}

struct matrix {
    std::int64_t ld = 0;
    transposed as = transposed::no;
    std::vector<std::int64_t> extents, strides;  // of the batch, outermost first; in items

    // From one member to the next; nullopt where there is no one step, or one that a call cannot be told: 0 means "one after the other" there.
    [[nodiscard]] std::optional<std::int64_t> step() const {
        std::int64_t step = 0, inner = 1;
        for (auto i = extents.size(); i-- > 0;) {
            if (extents[i] == 1) continue;
            if (step == 0) step = strides[i];
            if (strides[i] <= 0 || strides[i] != step * inner) return std::nullopt;
            inner *= extents[i];
        }
        return step;
    }
    [[nodiscard]] std::int64_t begin_of(std::int64_t member) const {
        std::int64_t at = 0;
        for (auto i = extents.size(); i-- > 0; member /= extents[i]) at += member % extents[i] * strides[i];
        return at;
    }
};

// The last two dimensions as rows and columns, what is before them as a batch. errc::invalid_argument where no leading dimension can say it.
matrix matrix_of(array const& a) {
    auto const d = a.dimensions();
    matrix out;
    auto const rows = a.extent(d - 2), columns = a.extent(d - 1);
    auto const by_row = a.stride(d - 2), by_column = a.stride(d - 1);
    if (by_column == 1 || columns == 1) out.ld = rows == 1 ? std::max<std::int64_t>(columns, 1) : by_row;
    else if (by_row == 1 || rows == 1) out.as = transposed::yes, out.ld = columns == 1 ? std::max<std::int64_t>(rows, 1) : by_column;
    else throw error{errc::invalid_argument, std::string{a.argument()} + " has neither its rows nor its columns in order: pass a contiguous copy"};
    if (out.ld < (out.as == transposed::yes ? rows : columns))
        throw error{errc::invalid_argument, std::string{a.argument()} + (out.ld < 0 ? " runs backwards" : " overlaps itself") + ": pass a contiguous copy"};
    for (int i = 0; i < d - 2; ++i) out.extents.push_back(a.extent(i)), out.strides.push_back(a.stride(i));
    return out;
}

scalar type_for(array const& a) { return scalar_of(a.type(), a.argument()); }

void want_same(array const& a, array const& b) {
    if (a.type() == b.type()) return;
    throw error{errc::invalid_argument, std::string{a.argument()} + " is " + a.describe() + ", " + b.argument() + " is " + b.describe() + ": they must be of one type"};
}

std::vector<std::int64_t> shape_of(array const& a) {
    std::vector<std::int64_t> out;
    for (int i = 0; i < a.dimensions(); ++i) out.push_back(a.extent(i));
    return out;
}

// errc::invalid_argument unless this is a product of two matrices or batches of them. An object may say another shape than its memory has.
void want_product(array const& a, array const& b, std::initializer_list<array const*> results) {
    auto const left = shape_of(a), right = shape_of(b);
    auto const wrong = [&](array const& of, std::string const& why) {
        return error{errc::invalid_argument, "product: a is " + a.describe() + ", b is " + b.describe() + (&of != &a ? ", " + std::string{of.argument()} + " is " + of.describe() : "") + ": " + why};
    };
    if (left.size() < 2 || right.size() < 2 || left.back() != right[right.size() - 2]) throw wrong(a, "they must be matrices, and a's columns as many as b's rows");
    std::vector<std::int64_t> const many_left{left.begin(), left.end() - 2}, many_right{right.begin(), right.end() - 2};
    if (!many_left.empty() && !many_right.empty() && many_left != many_right) throw wrong(a, "their batches must be the same, or one of them a matrix");
    auto made = many_left.empty() ? many_right : many_left;
    made.push_back(left[left.size() - 2]), made.push_back(right.back());
    for (auto const* of : results)
        if (of != nullptr && shape_of(*of) != made) throw wrong(*of, "that is another shape than the product's");
}

untyped_product product_for(semiring s, scalar type, bool winners, int device, seconds timeout) {
    using key = std::tuple<semiring, scalar, bool, int>;
    static std::mutex mutex;
    static auto& kept = *new std::map<key, untyped_product>;
    key const at{s, type, winners, device};
    {
        std::lock_guard const lock{mutex};
        if (auto const found = kept.find(at); found != kept.end()) return found->second;
    }
    product_options how{.arg = winners ? with_winners::yes : with_winners::no, .device = device};
    how.wait.who = "Python";
    auto made = in_background(timeout, [=] { return untyped_product::make(s, type, how); }).value();
    std::lock_guard const lock{mutex};
    return kept.emplace(at, std::move(made)).first->second;
}

untyped_backward backward_for(gradient_rule rule, scalar type, int device, seconds timeout) {
    using key = std::tuple<gradient_rule, scalar, int>;
    static std::mutex mutex;
    static auto& kept = *new std::map<key, untyped_backward>;
    key const at{rule, type, device};
    {
        std::lock_guard const lock{mutex};
        if (auto const found = kept.find(at); found != kept.end()) return found->second;
    }
    product_options how{.device = device};
    how.wait.who = "Python";
    auto made = in_background(timeout, [=] { return untyped_backward::make(rule, type, how); }).value();
    std::lock_guard const lock{mutex};
    return kept.emplace(at, std::move(made)).first->second;
}

index_width width_of(array const& winners) {
    if (winners.type() == dlpack::data_type{dlpack::signed_int, 32, 1}) return index_width::i32;
    if (winners.type() == dlpack::data_type{dlpack::signed_int, 64, 1}) return index_width::i64;
    throw error{errc::invalid_argument, "winners are " + name_of(winners.type()) + "; they must be int32 or int64"};
}

using arrays = std::initializer_list<array const*>;  // null: none

constexpr auto all_steps = ~std::uint64_t{0};

// Asking a device for its room starts CUDA: only for what would go there.
bool may_go_to_a_device(std::uint64_t steps) {
    if (requested_mode() != execution_mode::automatic) return requested_mode() == execution_mode::gpu;
    auto const shape = call_shape::pairwise;
    return steps >= product_operation.measured_crossover(shape).value_or(product_operation.preset_crossover(shape));
}

// Of a product of arrays on the host: how many of its steps a device has room for.
std::uint64_t room_there(std::uint64_t steps, arrays all) {
    if (!may_go_to_a_device(steps)) return all_steps;
    std::uint64_t bytes = 0;
    for (auto const* a : all) bytes += a != nullptr ? whole_of(*a).size() : 0;
    auto const fits = runtime::room_for(bytes, 1, 0);
    if (!fits) return all_steps;  // without a GPU there is nothing to have room: the decision says so
    note_gpu_use();
    if (*fits == bytes) return all_steps;
    return static_cast<std::uint64_t>(static_cast<double>(steps) * static_cast<double>(*fits) / static_cast<double>(bytes));
}

// Where a call runs, told by an event: where its arrays are, or, of arrays on the host, where Kiln decides. A gradient is decided as its product is.
runtime::operation_call decided(shape const& s, scalar type, array const& first, arrays all) {
    call_facts facts{.items = static_cast<std::uint64_t>(s.m * s.n * s.k * s.batch), .type = type, .where = first.on_device() ? residency::device : residency::host};
    auto call = [&] {
        without_gil const unlocked;
        if (!first.on_device()) facts.room = room_there(facts.items, all);
        return runtime::operation_call::begin(product_operation, facts);
    }();
    if (!call) throw error{call.error()};
    if (call->on_gpu()) note_gpu_use();
    return *std::move(call);
}

// An array of the host on a device for as long as a call takes.
class visit {
public:
    // Where its first item is there; null of none.
    result<void*> bring(array const& of, int device) {
        here_ = whole_of(of);
        if (here_.empty()) return of.data();
        first_ = static_cast<std::byte*>(of.data()) - here_.data();
        width_ = static_cast<std::int64_t>(of.type().bits / 8U);
        for (int i = 0; i < of.dimensions(); ++i) {
            extents_.push_back(of.extent(i));
            strides_.push_back(of.stride(i) * width_);
        }
        auto moved = storage::borrow(here_.data(), here_.size(), residency::host).to_device(default_stream, device);
        if (!moved) return std::move(moved).error();
        there_ = *std::move(moved);
        return static_cast<void*>(static_cast<std::byte*>(there_.data()) + first_);
    }
    // Its items alone: others may be writing what lies between them.
    result<void> take_back() const {
        if (here_.empty()) return {};
        return there_.to_host_sync(default_stream).transform([&](storage const& back) {
            copy_items(static_cast<std::byte const*>(back.data()) + first_, here_.data() + first_, 0);
        });
    }

private:
    void copy_items(std::byte const* from, std::byte* to, std::size_t dimension) const {
        if (dimension == extents_.size()) {
            std::memcpy(to, from, static_cast<std::size_t>(width_));
            return;
        }
        bool const is_row = dimension + 1 == extents_.size() && strides_[dimension] == width_;
        if (is_row) {
            std::memcpy(to, from, static_cast<std::size_t>(extents_[dimension] * width_));
            return;
        }
        for (std::int64_t i = 0; i < extents_[dimension]; ++i) copy_items(from + i * strides_[dimension], to + i * strides_[dimension], dimension + 1);
    }

    std::span<std::byte> here_;
    std::ptrdiff_t first_ = 0;  // item, in bytes
    std::int64_t width_ = 0;
    std::vector<std::int64_t> extents_, strides_;  // in bytes
    storage there_;
};

struct operand {
    array const* of;  // null: none
    void const** in;  // the call's pointer to it, which is set; one of the two
    void** out;
};
// `work` on what these arrays hold, brought to a device and, what is written, back.
template <class Work>
result<void> run_there(int device, std::initializer_list<operand> all, Work work) {
    std::vector<visit> visits(all.size());
    auto at = visits.begin();
    for (auto const& o : all) {
        if (o.of != nullptr) {
            auto there = at->bring(*o.of, device);
            if (!there) return std::move(there).error();
            if (o.in != nullptr) *o.in = *there;
            else *o.out = *there;
        }
        ++at;
    }
    if (auto done = work(std::optional{default_stream}); !done) return done;
    wait_sync(device, default_stream);
    at = visits.begin();
    for (auto const& o : all) {
        if (o.out != nullptr)
            if (auto done = at->take_back(); !done) return done;
        ++at;
    }
    return {};
}

// `ended`: called with the interpreter's lock after work on the host, before its result is looked at.
template <class Work, class Ended>
void run(array const& first, nb::handle stream, arrays all, Work work, Ended ended) {
    if (!first.on_device()) {
        for (auto const* a : all) {
            if (a != nullptr && a->on_device())
                throw error{errc::invalid_argument, std::string{first.argument()} + " is " + first.describe() + ", " + a->argument() + " is " + a->describe() + ": bring them to one place"};
        }
        if (!stream.is_none()) (void)stream_of(stream);  // what a device would refuse
        auto const done = [&] {
            without_gil const unlocked;
            return work(std::nullopt);
        }();
        ended();
        return done.value();
    }
    call_stream on{stream, all};
    auto const done = [&] {
        without_gil const unlocked;
        return work(std::optional{on.get()});
    }();
    done.value();
    on.done();
}

// A product on the CPU in pieces of rows, so that Ctrl-C does not wait for all of it. What is written stays as far as it came.
class product_here {
public:
    product_here(semiring s, scalar type, std::size_t item) : s_{s}, type_{type}, item_{static_cast<std::int64_t>(item)} {}

    // Of one member, or of as many as are few steps together. Without the interpreter's lock.
    result<void> run(product_call const& call) {
        auto const& s = call.shape;
        constexpr std::int64_t steps = std::int64_t{1} << 26;
        constexpr std::int64_t fewest = 64;  // as many as are packed at once
        auto const of_a_row = std::max<std::int64_t>(1, s.n) * std::max<std::int64_t>(1, s.k);
        auto const rows = std::max(fewest, steps / of_a_row / fewest * fewest);
        if (s.m * std::max<std::int64_t>(1, s.batch) <= rows) return piece(call);
        for (std::int64_t member = 0; member < s.batch; ++member) {
            for (std::int64_t first = 0; first < s.m; first += rows) {
                auto part = call;
                part.shape.batch = 1, part.shape.m = std::min(rows, s.m - first);
                move(part.a, member * call.stride_a + first * (call.a_as == transposed::yes ? 1 : call.lda), item_);
                move(part.b, member * call.stride_b, item_);
                move(part.c, member * call.stride_c + first * call.ldc, item_);
                move(part.arg, member * call.stride_arg + first * call.ldarg, call.width == index_width::i64 ? 8 : 4);
                if (auto done = piece(part); !done) return done;
            }
        }
        return {};
    }
    // KeyboardInterrupt, where that ended it.
    void raise() {
        if (thrown_) throw std::move(*thrown_);
    }

private:
    template <class Pointer>
    static void move(Pointer& at, std::int64_t items, std::int64_t width) {
        using byte = std::conditional_t<std::is_same_v<Pointer, void*>, char, char const>;
        if (at != nullptr) at = static_cast<byte*>(at) + items * width;
    }
    result<void> piece(product_call const& call) {
        auto const now = std::chrono::steady_clock::now();
        if (now - looked_ > std::chrono::milliseconds{100}) {
            looked_ = now;
            with_gil const locked;
            if (PyErr_CheckSignals() != 0) {
                thrown_.emplace();
                return error{errc::cancelled, "interrupted"};
            }
        }
        return tropical::cpu::run(s_, type_, call);
    }

    semiring s_;
    scalar type_;
    std::int64_t item_;
    std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
    std::optional<nb::python_error> thrown_;
};

void product_into(std::string const& name, nb::handle a_object, nb::handle b_object, nb::handle c_object, nb::handle winners_object,
                  nb::handle stream, seconds timeout) {
    auto const s = semiring_by_name(name);
    array const a{a_object, "a"}, b{b_object, "b"}, c{c_object, "out"};
    std::optional<array> won;
    if (!winners_object.is_none()) won.emplace(winners_object, "winners");
    want_product(a, b, {&c, won ? &*won : nullptr});
    want_same(a, b), want_same(a, c), want_writable(c), want_apart(c, {&a, &b}), want_no_item_twice(c);
    auto const am = matrix_of(a), bm = matrix_of(b), cm = matrix_of(c);
    if (cm.as == transposed::yes) throw error{errc::invalid_argument, "out must have its rows in order"};
    auto const d = c.dimensions();
    product_call call{.shape = {.m = c.extent(d - 2), .n = c.extent(d - 1), .k = a.extent(a.dimensions() - 1)},
                      .a = a.data(), .b = b.data(), .c = c.data(), .arg = won ? won->data() : nullptr,
                      .lda = am.ld, .ldb = bm.ld, .ldc = cm.ld,
                      .a_as = am.as, .b_as = bm.as};
    for (int i = 0; i < d - 2; ++i) call.shape.batch *= c.extent(i);
    matrix wm;
    if (won) {
        wm = matrix_of(*won);
        call.ldarg = wm.ld, call.width = width_of(*won);
    }
    auto const type = type_for(a);
    array const* const winners = won ? &*won : nullptr;
    auto const where = decided(call.shape, type, a, {&a, &b, &c, winners});
    auto const device = std::max(a.device(), 0);
    std::optional<untyped_product> by;
    if (where.on_gpu()) by = product_for(s, type, won.has_value(), device, timeout);
    product_here here{s, type, a.type().bits / 8U};
    auto const once = [&](std::optional<stream_ref> on, product_call const& what) { return on ? by->run(*on, what) : here.run(what); };
    auto const step_a = am.step(), step_b = bm.step(), step_c = cm.step();
    bool const one_matrix = am.extents.empty() || bm.extents.empty();
    // Member by member where one step does not lead to the next, as from a matrix that all share.
    bool const one_by_one = call.shape.batch > 1 && (one_matrix || !step_a || !step_b || !step_c);
    if (!one_by_one) call.stride_a = step_a.value_or(0), call.stride_b = step_b.value_or(0), call.stride_c = step_c.value_or(0), call.stride_arg = wm.step().value_or(0);
    auto const all = [&](std::optional<stream_ref> on) -> result<void> {
        if (!one_by_one) return once(on, call);
        auto const at = [](auto* data, matrix const& of, std::int64_t member, unsigned bits) {
            using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>, char const, char>;
            return data == nullptr ? data : static_cast<byte*>(data) + of.begin_of(member) * static_cast<std::int64_t>(bits / 8U);
        };
        for (std::int64_t i = 0; i < call.shape.batch; ++i) {
            auto one = call;
            one.shape.batch = 1;
            one.a = at(call.a, am, i, a.type().bits), one.b = at(call.b, bm, i, b.type().bits), one.c = at(call.c, cm, i, c.type().bits);
            one.arg = at(call.arg, wm, i, won ? won->type().bits : 0);
            if (auto done = once(on, one); !done) return done;
        }
        return {};
    };
    run(a, stream, {&a, &b, &c, winners}, [&](std::optional<stream_ref> on) {
        if (on || !where.on_gpu()) return all(on);
        return run_there(device, {{&a, &call.a, nullptr}, {&b, &call.b, nullptr}, {&c, nullptr, &call.c}, {winners, nullptr, &call.arg}}, all);
    }, [&] { here.raise(); });
}

void backward_into(std::string const& name, nb::handle g_object, nb::handle winners_object, nb::handle a_object, nb::handle b_object,
                   nb::handle da_object, nb::handle db_object, nb::handle stream, seconds timeout) {
    auto const rule = semiring_by_name(name) == semiring::max_mul ? gradient_rule::mul : gradient_rule::plus;
    array const g{g_object, "g"}, won{winners_object, "winners"}, da{da_object, "da"}, db{db_object, "db"};
    std::optional<array> a, b;
    if (rule == gradient_rule::mul) a.emplace(a_object, "a"), b.emplace(b_object, "b");
    auto const gm = matrix_of(g), wm = matrix_of(won), dam = matrix_of(da), dbm = matrix_of(db);
    auto const step = [](matrix const& m, array const& of) {
        if (auto const found = m.step()) return *found;
        throw error{errc::invalid_argument, std::string{of.argument()} + ": the dimensions of its batch are not in order: pass a contiguous copy"};
    };
    auto const d = g.dimensions();
    backward_call call{.shape = {.m = g.extent(d - 2), .n = g.extent(d - 1), .k = da.extent(da.dimensions() - 1)},
                       .g = g.data(), .arg = won.data(), .a = a ? a->data() : nullptr, .b = b ? b->data() : nullptr,
                       .da = da.data(), .db = db.data(),
                       .ldg = gm.ld, .ldarg = wm.ld, .ldda = dam.ld, .lddb = dbm.ld,
                       .stride_g = step(gm, g), .stride_arg = step(wm, won), .stride_da = step(dam, da), .stride_db = step(dbm, db),
                       .width = width_of(won)};
    if (a) {
        auto const am = matrix_of(*a), bm = matrix_of(*b);
        call.lda = am.ld, call.ldb = bm.ld, call.stride_a = step(am, *a), call.stride_b = step(bm, *b);
    }
    for (int i = 0; i < d - 2; ++i) call.shape.batch *= g.extent(i);
    auto const type = type_for(g);
    array const* const left = a ? &*a : nullptr;
    array const* const right = b ? &*b : nullptr;
    auto const where = decided(call.shape, type, g, {&g, &won, left, right, &da, &db});
    auto const device = std::max(g.device(), 0);
    std::optional<untyped_backward> by;
    if (where.on_gpu()) by = backward_for(rule, type, device, timeout);
    auto const once = [&](std::optional<stream_ref> on) { return on ? by->run(*on, call) : tropical::cpu::run(rule, type, call); };
    run(g, stream, {&g, &won, &da, &db}, [&](std::optional<stream_ref> on) -> result<void> {
        if (on || !where.on_gpu()) return once(on);
        return run_there(device, {{&g, &call.g, nullptr}, {&won, &call.arg, nullptr}, {left, &call.a, nullptr}, {right, &call.b, nullptr},
                                  {&da, nullptr, &call.da}, {&db, nullptr, &call.db}}, once);
    }, [] {});
}

}  // namespace

void bind_tropical(nb::module_& m) {
    m.def("tropical_product", &product_into, nb::arg("semiring"), nb::arg("a"), nb::arg("b"), nb::arg("out"), nb::arg("winners").none(), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("tropical_backward", &backward_into, nb::arg("semiring"), nb::arg("g"), nb::arg("winners"), nb::arg("a").none(), nb::arg("b").none(), nb::arg("da"), nb::arg("db"), nb::arg("stream").none(), nb::arg("timeout").none());
}

}  // namespace kiln::python
