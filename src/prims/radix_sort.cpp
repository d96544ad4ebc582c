// SPDX-License-Identifier: Apache-2.0
//
// One block for what fits in it. Otherwise one histogram of all digits, their sums, and one sweep per digit and portion. A
// sweep clears what the next one looks back at, so that kernel follows kernel and each begins while the one before it ends.
#include "prims/radix_layout.hpp"
#include "prims/specialisation.hpp"

namespace kiln::prims {

namespace {

struct radix_sort_kernel {
    enum { histogram, sums, sweep, small };
};

result<void> sort_in_one_block(specialisation const& s, stream_ref on, sort_call const& call, int last_bit) {
    int const n = static_cast<int>(call.n);
    return launch(s.kernels[radix_sort_kernel::small], on, 1, radix_constants_of(s.info).small_threads,
                  {call.keys_in, call.keys_out, call.values_in, call.values_out, n, call.first_bit, last_bit});
}

class sweeps {
public:
    sweeps(specialisation const& s, stream_ref on, sort_call const& call, int last_bit)
        : s_{s},
          on_{on},
          call_{call},
          last_bit_{last_bit},
          shape_{s.info, s.value_bytes, s.mapped_bytes, call.n, last_bit - call.first_bit} {}

    [[nodiscard]] std::size_t scratch_bytes() const noexcept { return shape_.total; }

    [[nodiscard]] result<void> run(std::byte* scratch) const {
        auto const c = radix_constants_of(s_.info);
        void* const bins = scratch + shape_.bins;
        KILN_CHECK(set_zero(s_, on_, scratch, shape_.cleared));
        // Offsets are 32 or 64 bits wide: a little-endian machine may pass either from the same place.
        std::uint64_t const n = call_.n;
        KILN_CHECK(launch(s_.kernels[radix_sort_kernel::histogram], on_, s_.resident_blocks, c.histogram_threads,
                          {bins, call_.keys_in, n, call_.first_bit, last_bit_}));
        KILN_CHECK(launch(s_.kernels[radix_sort_kernel::sums], on_, shape_.passes, c.sum_threads, {bins},
                          launch_start::early));
        void const* keys = call_.keys_in;
        void const* values = call_.values_in;
        for (std::size_t pass = 0; pass < shape_.passes; ++pass) {
            bool const to_out = (shape_.passes - 1 - pass) % 2 == 0;
            void* const keys_to = to_out ? call_.keys_out : scratch + shape_.keys;
            void* const values_to = to_out ? call_.values_out : scratch + shape_.values;
            for (std::size_t portion = 0; portion < shape_.portions; ++portion) {
                KILN_CHECK(one_sweep(scratch, pass, portion, {keys, keys_to, values, values_to}));
            }
            keys = keys_to;
            values = values_to;
        }
        return {};
    }

private:
    struct move {
        void const* keys;
        void* keys_to;
        void const* values;
        void* values_to;
    };

    [[nodiscard]] result<void> one_sweep(std::byte* scratch, std::size_t pass, std::size_t portion,
                                         move const& m) const {
        auto const c = radix_constants_of(s_.info);
        auto const first = portion * shape_.portion, items = shape_.items_of(portion);
        int const n = static_cast<int>(items);
        auto const areas = shape_.areas_of(pass, portion);
        void* const lookback = scratch + areas.own;
        void* const next_lookback = scratch + areas.next;
        auto const bins_of = [&](std::size_t p) {
            return scratch + shape_.bins + (p * shape_.passes + pass) * shape_.digits * c.offset_bytes;
        };
        void* const counter = scratch + (portion * shape_.passes + pass) * sizeof(std::int32_t);
        void* const bins_out = portion + 1 < shape_.portions ? bins_of(portion + 1) : nullptr;
        void const* const bins_in = bins_of(portion);
        void const* const keys = static_cast<std::byte const*>(m.keys) + first * s_.value_bytes;
        void const* const values = static_cast<std::byte const*>(m.values) + first * s_.mapped_bytes;
        int const bit = call_.first_bit + static_cast<int>(pass) * c.radix_bits;
        int const bits = std::min(c.radix_bits, last_bit_ - bit);
        return launch(s_.kernels[radix_sort_kernel::sweep], on_, shape_.tiles(items), s_.info.threads,
                      {lookback, next_lookback, areas.next_words, counter, bins_out, bins_in, m.keys_to, keys,
                       m.values_to, values, n, bit, bits},
                      launch_start::early);
    }

    specialisation const& s_;
    stream_ref on_;
    sort_call const& call_;
    int last_bit_;
    radix_layout shape_;
};

}  // namespace

result<radix_sort> radix_sort::make(element_type key, element_type value, sort_order order, prim_options const& how) {
    KILN_TRY(auto what,
             specialisation::make(radix_sort_request(std::move(key), std::move(value), order, how.items), how));
    return radix_sort{std::move(what), nullptr};
}

std::size_t radix_sort::scratch_bytes(std::size_t n) const noexcept {
    if (n <= radix_constants_of(what_->info).small_items) return 0;
    auto const bits = static_cast<int>(what_->value_bytes * 8);
    return radix_layout{what_->info, what_->value_bytes, what_->mapped_bytes, n, bits}.total;
}

result<void> radix_sort::run(stream_ref on, sort_call const& call) const {
    auto const& s = *what_;
    int const key_bits = static_cast<int>(s.value_bytes * 8);
    int const last_bit = call.last_bit < 0 ? key_bits : call.last_bit;
    if (call.first_bit < 0 || call.first_bit > last_bit || last_bit > key_bits) {
        return fail(errc::invalid_argument, "{}: bits {} to {} of keys that have {}", s.name, call.first_bit, last_bit,
                    key_bits);
    }
    auto const c = radix_constants_of(s.info);
    if (c.offset_bytes == 4 && call.n > 0xffffffffU) return too_many(s, call.n);
    if (call.n == 0) return {};
    KILN_TRY(auto const scope, call_scope::enter(s));
    if (call.first_bit == last_bit) {
        KILN_CHECK(copy(s, on, call.keys_in, call.keys_out, call.n * s.value_bytes));
        return copy(s, on, call.values_in, call.values_out, call.n * s.mapped_bytes);
    }
    if (call.n <= c.small_items) return sort_in_one_block(s, on, call, last_bit);
    sweeps const work{s, on, call, last_bit};
    KILN_TRY(auto const lease, s.scratch->acquire(on, work.scratch_bytes(), call.scratch));
    return work.run(lease.get());
}

}  // namespace kiln::prims
