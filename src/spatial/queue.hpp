// SPDX-License-Identifier: Apache-2.0
// Where the pack's kernels run. An algorithm is written once, as launches of kernels (kernels/spatial/grid.cuh) with primitives
// between them; a queue on a device puts them onto a stream, one on the host runs the same text in a loop. So the device's
// algorithms are tested without one, also with their items in another order.
#pragma once

#include "base/check.hpp"
#include "spatial/words.cuh"

#include <kiln/runtime/buffer.hpp>

#include <atomic>
#include <initializer_list>

namespace kiln::spatial {

class queue {
public:
    virtual ~queue() = default;
    queue(queue const&) = delete;
    queue& operator=(queue const&) = delete;

    // Uninitialised, where the kernels run.
    template <class T>
    [[nodiscard]] result<buffer<T>> room(std::size_t n) {
        KILN_TRY(auto memory, allocate_bounded(n * sizeof(T)));
        return buffer<T>{std::move(memory), n};
    }
    // No piece of memory is larger from here on: errc::out_of_memory before it is taken.
    void bound_pieces(std::size_t bytes) noexcept { most_piece_ = bytes; }
    template <class Kernel>
    [[nodiscard]] result<void> launch(Kernel const& what, std::size_t items) {
        if (items == 0) return {};
        using facts = kiln_spatial::kernel_facts<Kernel>;
        static constinit std::atomic<std::size_t> known{0};  // one more than its number
        return run({number_of(facts::name, known), facts::block, &what,
                    [](void const* k, std::uint64_t i) { (*static_cast<Kernel const*>(k))(i); }},
                   items);
    }
    // Every 32-bit word of it.
    template <class T>
    [[nodiscard]] result<void> fill(buffer<T> const& what, std::uint32_t word);
    template <class T>
    [[nodiscard]] result<buffer<T>> filled(std::size_t n, std::uint32_t word) {
        KILN_TRY(auto out, room<T>(n));
        KILN_CHECK(fill(out, word));
        return out;
    }

    // Exclusive sums in place: `counts` has one more element than there are counts, which becomes the total.
    [[nodiscard]] result<void> sum(buffer<std::int64_t> const& counts);
    // The same, and the total. A fence.
    [[nodiscard]] result<std::int64_t> total_sync(buffer<std::int64_t> const& counts);
    // Stable, by the low `bits` of the keys. Both are replaced by sorted ones, in other memory.
    [[nodiscard]] virtual result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) = 0;
    [[nodiscard]] virtual result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) = 0;

    // Waits for what was queued, and reads: one fence for all of them.
    struct wish {
        std::int64_t const* from;
        std::int64_t* to;
        template <class T>
        wish(T const* where, T& value)
            : from{reinterpret_cast<std::int64_t const*>(where)}, to{reinterpret_cast<std::int64_t*>(&value)} {
            static_assert(sizeof(T) == 8);
        }
    };
    [[nodiscard]] virtual result<void> read_sync(std::initializer_list<wish> wishes) = 0;

    [[nodiscard]] virtual residency where() const noexcept = 0;
    [[nodiscard]] virtual int device() const noexcept = 0;
    // Threads that keep the device busy, for work of unknown size.
    [[nodiscard]] virtual std::size_t threads() const noexcept = 0;

    // A small number for each kernel's name, for tables of handles.
    [[nodiscard]] static std::size_t number_of(char const* kernel);
    [[nodiscard]] static std::size_t number_of(char const* kernel, std::atomic<std::size_t>& known) {
        if (auto const kept = known.load(std::memory_order_relaxed); kept != 0) return kept - 1;
        auto const out = number_of(kernel);
        known.store(out + 1, std::memory_order_relaxed);
        return out;
    }
    [[nodiscard]] static char const* name_of(std::size_t number);
    static constexpr std::size_t most_kernels = 512;

protected:
    queue() = default;
    struct task {
        std::size_t number;  // of the kernel
        unsigned block;
        void const* what;  // its structure
        void (*item)(void const* what, std::uint64_t i);
    };
    [[nodiscard]] virtual result<storage> allocate(std::size_t bytes) = 0;
    [[nodiscard]] virtual result<void> run(task const& what, std::size_t items) = 0;
    [[nodiscard]] virtual result<void> scan(buffer<std::int64_t> const& values) = 0;

private:
    [[nodiscard]] result<storage> allocate_bounded(std::size_t bytes);
    std::size_t most_piece_ = ~std::size_t{0};
};

template <class T>
result<void> queue::fill(buffer<T> const& what, std::uint32_t word) {
    static_assert(sizeof(T) % 4 == 0);
    return launch(kiln_spatial::set_words{reinterpret_cast<kiln_spatial::u32*>(what.data()), word},
                  what.size() * (sizeof(T) / 4));
}

class device_queue : public queue {
public:
    device_queue(stream_ref on, int device) noexcept : on_{on}, device_{device} {}

    [[nodiscard]] result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) override;
    [[nodiscard]] result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) override;
    [[nodiscard]] result<void> read_sync(std::initializer_list<wish> wishes) override;
    [[nodiscard]] residency where() const noexcept override { return residency::device; }
    [[nodiscard]] int device() const noexcept override { return device_; }
    [[nodiscard]] std::size_t threads() const noexcept override { return std::size_t{1} << 16; }
    [[nodiscard]] stream_ref on() const noexcept { return on_; }

protected:
    [[nodiscard]] result<storage> allocate(std::size_t bytes) override;
    [[nodiscard]] result<void> run(task const& what, std::size_t items) override;
    [[nodiscard]] result<void> scan(buffer<std::int64_t> const& values) override;

private:
    stream_ref on_;
    int device_;
};

enum class item_order : std::uint8_t { ascending, scrambled };

class host_queue final : public queue {
public:
    explicit host_queue(item_order order = item_order::ascending) noexcept : order_{order} {}

    [[nodiscard]] result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) override;
    [[nodiscard]] result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) override;
    [[nodiscard]] result<void> read_sync(std::initializer_list<wish> wishes) override;
    [[nodiscard]] residency where() const noexcept override { return residency::host; }
    [[nodiscard]] int device() const noexcept override { return 0; }
    [[nodiscard]] std::size_t threads() const noexcept override { return 64; }

private:
    [[nodiscard]] result<storage> allocate(std::size_t bytes) override;
    [[nodiscard]] result<void> run(task const& what, std::size_t items) override;
    [[nodiscard]] result<void> scan(buffer<std::int64_t> const& values) override;

    item_order order_;
};

// What kernels call the contents of a buffer: their 64-bit words are other types than the C library's.
[[nodiscard]] inline kiln_spatial::i64* raw(buffer<std::int64_t> const& b) {
    return reinterpret_cast<kiln_spatial::i64*>(b.data());
}
[[nodiscard]] inline kiln_spatial::u64* raw(buffer<std::uint64_t> const& b) {
    return reinterpret_cast<kiln_spatial::u64*>(b.data());
}
// Counters that are added to as words without a sign and read as numbers with one.
[[nodiscard]] inline kiln_spatial::u64* counts_in(buffer<std::int64_t> const& b) {
    return reinterpret_cast<kiln_spatial::u64*>(b.data());
}

// Bits that numbers up to `most` need.
[[nodiscard]] int bits_for(std::uint64_t most) noexcept;

}  // namespace kiln::spatial
