// SPDX-License-Identifier: Apache-2.0
// Queues whose kernels hold no more memory at once than they may: errc::out_of_memory before more is taken.
#pragma once

#include "spatial/queue.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

namespace kiln::spatial {

// Counts what is taken until the last copy of it is let go.
class held_bytes {
public:
    explicit held_bytes(std::size_t most) : most_{most} {}

    template <class Allocate>
    [[nodiscard]] result<storage> take(std::size_t bytes, Allocate const& allocate) {
        if (*now_ + bytes > most_)
            return fail(errc::out_of_memory, "spatial: {} bytes more, where {} of {} are taken", bytes, now_->load(),
                        most_);
        KILN_TRY(auto memory, allocate(bytes));
        *now_ += memory.bytes();
        peak_ = std::max(peak_, now_->load());
        std::shared_ptr<void const> const keep{memory.data(),
                                               [memory, now = now_](void const*) { *now -= memory.bytes(); }};
        return storage::borrow(memory.data(), memory.bytes(), memory.where(), memory.device(), keep);
    }
    [[nodiscard]] std::size_t peak() const noexcept { return peak_; }

private:
    std::size_t most_, peak_ = 0;
    std::shared_ptr<std::atomic<std::size_t>> now_ = std::make_shared<std::atomic<std::size_t>>(0);
};

class bounded_device_queue final : public device_queue {
public:
    bounded_device_queue(stream_ref on, int device, std::size_t most) : device_queue{on, device}, held_{most} {}

private:
    [[nodiscard]] result<storage> allocate(std::size_t bytes) override {
        return held_.take(bytes, [&](std::size_t n) { return device_queue::allocate(n); });
    }
    held_bytes held_;
};

class bounded_host_queue final : public queue {
public:
    explicit bounded_host_queue(std::size_t most) : held_{most} {}

    [[nodiscard]] result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) override {
        return inner_.sort(keys, values, bits);
    }
    [[nodiscard]] result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) override {
        return inner_.sort(keys, values);
    }
    [[nodiscard]] result<void> read_sync(std::initializer_list<wish> wishes) override {
        return inner_.read_sync(wishes);
    }
    [[nodiscard]] residency where() const noexcept override { return residency::host; }
    [[nodiscard]] int device() const noexcept override { return 0; }
    [[nodiscard]] std::size_t threads() const noexcept override { return inner_.threads(); }
    [[nodiscard]] std::size_t peak() const noexcept { return held_.peak(); }

private:
    [[nodiscard]] result<storage> allocate(std::size_t bytes) override {
        return held_.take(std::max<std::size_t>(bytes, 16),
                          [](std::size_t n) { return result<storage>{storage::on_host(n)}; });
    }
    [[nodiscard]] result<void> run(task const& what, std::size_t items) override {
        for (std::size_t i = 0; i < items; ++i) what.item(what.what, i);
        return {};
    }
    [[nodiscard]] result<void> scan(buffer<std::int64_t> const& values) override { return inner_.sum(values); }

    host_queue inner_;
    held_bytes held_;
};

}  // namespace kiln::spatial
