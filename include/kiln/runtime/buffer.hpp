// SPDX-License-Identifier: Apache-2.0
//
// Data that knows where it lives. A buffer is a run of elements in host, pinned, device or managed memory, owned or
// borrowed; copies share it. Nothing moves by itself: to_device() and to_host_sync() are the only ways across, and each is
// counted (<kiln/activity.hpp>). A column adds validity and, for lists, offsets, so that a null row and an empty one stay
// different everywhere. Device memory is ordered on the stream it was made on, which must outlive it.
//
//     auto values = kiln::buffer<float>::copy_of(host_values);
//     auto there  = values.to_device(stream).value();
//     auto back   = there.to_host_sync(stream).value();
#pragma once

#include <kiln/activity.hpp>
#include <kiln/device.hpp>
#include <kiln/runtime/residency.hpp>

#include <cstring>
#include <span>
#include <vector>

namespace KILN_PUBLIC kiln {

// Untyped: what a buffer shares.
class storage {
public:
    storage() = default;

    // Uninitialised.
    [[nodiscard]] static storage on_host(std::size_t bytes);
    [[nodiscard]] static result<storage> pinned(std::size_t bytes, int device = 0);
    [[nodiscard]] static result<storage> on_device(stream_ref on, std::size_t bytes, int device = 0);
    // Somebody else's memory; `keep` is let go with the last copy, and may be empty where the caller keeps it alive.
    [[nodiscard]] static storage borrow(void* data, std::size_t bytes, residency where, int device = 0,
                                        std::shared_ptr<void const> keep = {});

    [[nodiscard]] void* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] residency where() const noexcept { return where_; }
    [[nodiscard]] int device() const noexcept { return device_; }  // of host memory: 0
    [[nodiscard]] bool owns() const noexcept { return owns_; }
    [[nodiscard]] std::shared_ptr<void const> const& keep() const noexcept { return keep_; }

    [[nodiscard]] result<storage> to_device(stream_ref on, int device) const;
    [[nodiscard]] result<storage> to_host_sync(stream_ref on) const;

private:
    std::shared_ptr<void const> keep_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    residency where_ = residency::host;
    bool owns_ = false;
    int device_ = 0;
};

template <class T>
class buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    buffer() = default;
    buffer(storage from, std::size_t size) noexcept : storage_{std::move(from)}, size_{size} {}

    [[nodiscard]] static buffer on_host(std::size_t n) { return {storage::on_host(n * sizeof(T)), n}; }
    [[nodiscard]] static buffer copy_of(std::span<T const> values) {
        auto out = on_host(values.size());
        if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
        return out;
    }
    [[nodiscard]] static buffer copy_of(std::vector<T> const& values) { return copy_of(std::span<T const>{values}); }
    [[nodiscard]] static result<buffer> pinned(std::size_t n, int device = 0) {
        return wrap(storage::pinned(n * sizeof(T), device), n);
    }
    [[nodiscard]] static result<buffer> on_device(stream_ref on, std::size_t n, int device = 0) {
        return wrap(storage::on_device(on, n * sizeof(T), device), n);
    }
    [[nodiscard]] static buffer borrow(T* data, std::size_t n, residency where, int device = 0,
                                       std::shared_ptr<void const> keep = {}) {
        using raw = std::remove_const_t<T>;
        return {storage::borrow(const_cast<raw*>(data), n * sizeof(T), where, device, std::move(keep)), n};
    }

    [[nodiscard]] T* data() const noexcept { return static_cast<T*>(storage_.data()); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] residency where() const noexcept { return storage_.where(); }
    [[nodiscard]] int device() const noexcept { return storage_.device(); }
    [[nodiscard]] bool owns() const noexcept { return storage_.owns(); }
    [[nodiscard]] storage const& raw() const noexcept { return storage_; }

    // Host and managed memory only: the elements themselves.
    [[nodiscard]] std::span<T const> host_span() const noexcept {
        return where() == residency::device ? std::span<T const>{} : std::span<T const>{data(), size_};
    }
    [[nodiscard]] std::span<T> host_span() noexcept {
        return where() == residency::device ? std::span<T>{} : std::span<T>{data(), size_};
    }
    // The first n elements of the same memory.
    [[nodiscard]] buffer first(std::size_t n) const noexcept { return {storage_, n < size_ ? n : size_}; }

    // n elements of the same memory from `at` on; both must be inside.
    [[nodiscard]] buffer part(std::size_t at, std::size_t n) const {
        return borrow(data() + at, n, where(), device(), storage_.keep());
    }

    // Queued; the same buffer where it is on the device already. Pageable host memory may be reused on return.
    [[nodiscard]] result<buffer> to_device(stream_ref on, int device = 0) const {
        return wrap(storage_.to_device(on, device), size_);
    }
    // Waits for the stream; the same buffer where it is on the host already.
    [[nodiscard]] result<buffer> to_host_sync(stream_ref on) const { return wrap(storage_.to_host_sync(on), size_); }

private:
    [[nodiscard]] static result<buffer> wrap(result<storage> made, std::size_t n) {
        return std::move(made).transform([&](storage&& from) { return buffer(std::move(from), n); });
    }

    storage storage_;
    std::size_t size_ = 0;
};

// Rows of T, or of lists of T where there are offsets (one more than rows, from 0). A row whose validity bit is 0 is
// null; bits are in Arrow's order, least significant first. No validity: no row is null.
template <class T>
class column {
public:
    column() = default;
    explicit column(buffer<T> values) : values_{std::move(values)}, rows_{values_.size()} {}
    column(buffer<T> values, buffer<std::uint8_t> validity)
        : values_{std::move(values)}, validity_{std::move(validity)}, rows_{values_.size()} {}
    [[nodiscard]] static column lists(buffer<T> values, buffer<std::int32_t> offsets,
                                      std::optional<buffer<std::uint8_t>> validity = {}) {
        column out;
        out.rows_ = offsets.empty() ? 0 : offsets.size() - 1;
        out.values_ = std::move(values);
        out.offsets_ = std::move(offsets);
        out.validity_ = std::move(validity);
        return out;
    }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] buffer<T> const& values() const noexcept { return values_; }
    [[nodiscard]] std::optional<buffer<std::int32_t>> const& offsets() const noexcept { return offsets_; }
    [[nodiscard]] std::optional<buffer<std::uint8_t>> const& validity() const noexcept { return validity_; }
    [[nodiscard]] residency where() const noexcept { return values_.where(); }

    // Of columns on the host.
    [[nodiscard]] bool is_null(std::size_t row) const noexcept {
        return validity_ && (validity_->data()[row / 8] >> (row % 8) & 1U) == 0;
    }
    // Of lists on the host; a null row is not empty.
    [[nodiscard]] bool is_empty(std::size_t row) const noexcept {
        return !is_null(row) && offsets_ && offsets_->data()[row] == offsets_->data()[row + 1];
    }
    [[nodiscard]] std::size_t count_nulls() const noexcept {
        std::size_t out = 0;
        for (std::size_t i = 0; i < rows_; ++i) out += is_null(i) ? 1 : 0;
        return out;
    }

    [[nodiscard]] result<column> to_device(stream_ref on, int device = 0) const {
        return moved([&](auto const& b) { return b.to_device(on, device); });
    }
    [[nodiscard]] result<column> to_host_sync(stream_ref on) const {
        return moved([&](auto const& b) { return b.to_host_sync(on); });
    }

private:
    template <class Move>
    [[nodiscard]] result<column> moved(Move move) const {
        column out;
        out.rows_ = rows_;
        auto const take = [&](auto& to, auto const& from) -> result<void> {
            if (!from) return {};
            return move(*from).transform([&](auto&& there) { to = std::move(there); });
        };
        return move(values_)
            .transform([&](buffer<T>&& there) { out.values_ = std::move(there); })
            .and_then([&] { return take(out.offsets_, offsets_); })
            .and_then([&] { return take(out.validity_, validity_); })
            .transform([&] { return std::move(out); });
    }

    buffer<T> values_;
    std::optional<buffer<std::int32_t>> offsets_;
    std::optional<buffer<std::uint8_t>> validity_;
    std::size_t rows_ = 0;
};

// Reads small results (counts, sizes) of an operation from the device in one go: any number of values, one wait.
//
//     auto sizes = kiln::fence::make(stream).value();
//     auto kept  = sizes.add(count_on_device).value();
//     sizes.wait_sync().value();
//     resize(sizes.get<std::uint64_t>(kept));
class fence {
public:
    static constexpr std::size_t most_bytes = 512;

    [[nodiscard]] static result<fence> make(stream_ref on, int device = 0);
    fence(fence&& other) noexcept;
    fence& operator=(fence&&) = delete;
    ~fence();

    // Queues the copy; the answer is a position for get().
    template <class T>
    [[nodiscard]] result<std::size_t> add(T const* on_device) {
        static_assert(std::is_trivially_copyable_v<T>);
        return add_bytes(on_device, sizeof(T));
    }
    [[nodiscard]] result<void> wait_sync();
    // After wait_sync().
    template <class T>
    [[nodiscard]] T get(std::size_t position) const noexcept {
        T out;
        std::memcpy(&out, slots_ + position, sizeof(T));
        return out;
    }

private:
    fence(stream_ref on, int device, std::byte* slots) noexcept : stream_{on}, device_{device}, slots_{slots} {}
    [[nodiscard]] result<std::size_t> add_bytes(void const* on_device, std::size_t bytes);

    stream_ref stream_;
    int device_;
    std::byte* slots_;  // pinned, from a list of free ones
    std::size_t used_ = 0;
    bool is_awaited_ = false;  // copies that were queued
};

}  // namespace kiln
