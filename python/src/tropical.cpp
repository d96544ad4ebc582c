// SPDX-License-Identifier: Apache-2.0
// Tropical products of arrays as they are: batched, transposed, on the host or on a device. Shapes are Python's part
// (kiln/tropical.py).
#include "arrays.hpp"
#include "device_array.hpp"
#include "gil.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <kiln/tropical/run.hpp>

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
    std::int64_t ld = 0, stride = 0;
    transposed as = transposed::no;
};

// The last two dimensions as rows and columns, what is before them as one batch. errc::invalid_argument where no leading
// dimension can say it.
matrix matrix_of(array const& a) {
    auto const d = a.dimensions();
    matrix out;
    auto const rows = a.extent(d - 2), columns = a.extent(d - 1);
    auto const by_row = a.stride(d - 2), by_column = a.stride(d - 1);
    if (by_column == 1 || columns == 1) out.ld = rows == 1 ? std::max<std::int64_t>(columns, 1) : by_row;
    else if (by_row == 1 || rows == 1) out.as = transposed::yes, out.ld = columns == 1 ? std::max<std::int64_t>(rows, 1) : by_column;
    else throw error{errc::invalid_argument, std::string{a.argument()} + " has neither its rows nor its columns in order: pass a contiguous copy"};
    if (out.ld < (out.as == transposed::yes ? rows : columns))
        throw error{errc::invalid_argument, std::string{a.argument()} + " overlaps itself: pass a contiguous copy"};
    if (d == 2) return out;
    out.stride = a.stride(d - 3);
    for (int i = d - 4; i >= 0; --i) {
        if (a.extent(i) != 1 && a.stride(i) != a.extent(i + 1) * a.stride(i + 1))
            throw error{errc::invalid_argument, std::string{a.argument()} + ": the dimensions of its batch are not in order: pass a contiguous copy"};
    }
    return out;
}

scalar type_for(array const& a) { return scalar_of(a.type(), a.argument()); }

void want_same(array const& a, array const& b) {
    if (a.type() == b.type()) return;
    throw error{errc::invalid_argument, std::string{a.argument()} + " is " + a.describe() + ", " + b.argument() + " is " + b.describe() + ": they must be of one type"};
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

// From an array's first byte to its last, gaps and all, so that its strides hold there.
std::span<std::byte> whole_of(array const& of) {
    if (of.items() == 0) return {};
    std::int64_t low = 0, high = 1;
    for (int i = 0; i < of.dimensions(); ++i) (of.stride(i) < 0 ? low : high) += (of.extent(i) - 1) * of.stride(i);
    auto const width = static_cast<std::int64_t>(of.type().bits / 8U);
    return {static_cast<std::byte*>(of.data()) + low * width, static_cast<std::size_t>((high - low) * width)};
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
    at = visits.begin();
    for (auto const& o : all) {
        if (o.out != nullptr)
            if (auto done = at->take_back(); !done) return done;
        ++at;
    }
    return {};
}

template <class Work>
void run(array const& first, nb::handle stream, arrays all, Work work) {
    if (!first.on_device()) {
        for (auto const* a : all) {
            if (a != nullptr && a->on_device())
                throw error{errc::invalid_argument, std::string{first.argument()} + " is " + first.describe() + ", " + a->argument() + " is " + a->describe() + ": bring them to one place"};
        }
        auto const done = [&] {
            without_gil const unlocked;
            return work(std::nullopt);
        }();
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

void product_into(std::string const& name, nb::handle a_object, nb::handle b_object, nb::handle c_object, nb::handle winners_object,
                  nb::handle stream, seconds timeout) {
    auto const s = semiring_by_name(name);
    array const a{a_object, "a"}, b{b_object, "b"}, c{c_object, "out"};
    std::optional<array> won;
    if (!winners_object.is_none()) won.emplace(winners_object, "winners");
    want_same(a, b), want_same(a, c), want_writable(c);
    auto const am = matrix_of(a), bm = matrix_of(b), cm = matrix_of(c);
    if (cm.as == transposed::yes) throw error{errc::invalid_argument, "out must have its rows in order"};
    auto const d = c.dimensions();
    product_call call{.shape = {.m = c.extent(d - 2), .n = c.extent(d - 1), .k = a.extent(a.dimensions() - 1)},
                      .a = a.data(), .b = b.data(), .c = c.data(), .arg = won ? won->data() : nullptr,
                      .lda = am.ld, .ldb = bm.ld, .ldc = cm.ld,
                      .stride_a = am.stride, .stride_b = bm.stride, .stride_c = cm.stride,
                      .a_as = am.as, .b_as = bm.as};
    for (int i = 0; i < d - 2; ++i) call.shape.batch *= c.extent(i);
    if (won) {
        auto const wm = matrix_of(*won);
        call.ldarg = wm.ld, call.stride_arg = wm.stride, call.width = width_of(*won);
    }
    auto const type = type_for(a);
    array const* const winners = won ? &*won : nullptr;
    auto const where = decided(call.shape, type, a, {&a, &b, &c, winners});
    auto const device = std::max(a.device(), 0);
    std::optional<untyped_product> by;
    if (where.on_gpu()) by = product_for(s, type, won.has_value(), device, timeout);
    auto const once = [&](std::optional<stream_ref> on) { return on ? by->run(*on, call) : tropical::cpu::run(s, type, call); };
    auto const batch = std::exchange(call.shape.batch, 1);
    bool const shared = batch > 1 && (a.dimensions() == 2 || b.dimensions() == 2);
    if (!shared) call.shape.batch = batch;
    // A stride of 0 means "one after the other": a matrix that all members share is multiplied member by member.
    auto const all = [&](std::optional<stream_ref> on) -> result<void> {
        if (!shared) return once(on);
        auto const next = [](auto*& at, std::int64_t items, std::size_t width) {
            using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<std::remove_reference_t<decltype(at)>>>, char const, char>;
            if (at != nullptr) at = static_cast<byte*>(at) + items * static_cast<std::int64_t>(width);
        };
        for (std::int64_t i = 0; i < batch; ++i) {
            if (auto done = once(on); !done) return done;
            next(call.a, am.stride, a.type().bits / 8U), next(call.b, bm.stride, b.type().bits / 8U);
            next(call.c, cm.stride, c.type().bits / 8U), next(call.arg, call.stride_arg, won ? won->type().bits / 8U : 0);
        }
        return {};
    };
    run(a, stream, {&a, &b, &c, winners}, [&](std::optional<stream_ref> on) {
        if (on || !where.on_gpu()) return all(on);
        return run_there(device, {{&a, &call.a, nullptr}, {&b, &call.b, nullptr}, {&c, nullptr, &call.c}, {winners, nullptr, &call.arg}}, all);
    });
}

void backward_into(std::string const& name, nb::handle g_object, nb::handle winners_object, nb::handle a_object, nb::handle b_object,
                   nb::handle da_object, nb::handle db_object, nb::handle stream, seconds timeout) {
    auto const rule = semiring_by_name(name) == semiring::max_mul ? gradient_rule::mul : gradient_rule::plus;
    array const g{g_object, "g"}, won{winners_object, "winners"}, da{da_object, "da"}, db{db_object, "db"};
    std::optional<array> a, b;
    if (rule == gradient_rule::mul) a.emplace(a_object, "a"), b.emplace(b_object, "b");
    auto const gm = matrix_of(g), wm = matrix_of(won), dam = matrix_of(da), dbm = matrix_of(db);
    auto const d = g.dimensions();
    backward_call call{.shape = {.m = g.extent(d - 2), .n = g.extent(d - 1), .k = da.extent(da.dimensions() - 1)},
                       .g = g.data(), .arg = won.data(), .a = a ? a->data() : nullptr, .b = b ? b->data() : nullptr,
                       .da = da.data(), .db = db.data(),
                       .ldg = gm.ld, .ldarg = wm.ld, .ldda = dam.ld, .lddb = dbm.ld,
                       .stride_g = gm.stride, .stride_arg = wm.stride, .stride_da = dam.stride, .stride_db = dbm.stride,
                       .width = width_of(won)};
    if (a) {
        auto const am = matrix_of(*a), bm = matrix_of(*b);
        call.lda = am.ld, call.ldb = bm.ld, call.stride_a = am.stride, call.stride_b = bm.stride;
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
    });
}

}  // namespace

void bind_tropical(nb::module_& m) {
    m.def("tropical_product", &product_into, nb::arg("semiring"), nb::arg("a"), nb::arg("b"), nb::arg("out"), nb::arg("winners").none(), nb::arg("stream").none(), nb::arg("timeout").none());
    m.def("tropical_backward", &backward_into, nb::arg("semiring"), nb::arg("g"), nb::arg("winners"), nb::arg("a").none(), nb::arg("b").none(), nb::arg("da"), nb::arg("db"), nb::arg("stream").none(), nb::arg("timeout").none());
}

}  // namespace kiln::python
