// SPDX-License-Identifier: Apache-2.0
// A queue on the host that knows how often kernels ran, how many items they had and how much memory it gave: a measure of work that no clock is needed for.
#pragma once

#include "spatial/queue.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace kiln::spatial_tests {

class counting_queue final : public spatial::queue {
public:
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

    [[nodiscard]] std::size_t items() const noexcept { return items_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  // of all memory it ever gave
    [[nodiscard]] std::size_t runs_of(std::string const& kernel) const {
        auto const at = runs_.find(kernel);
        return at == runs_.end() ? 0 : at->second;
    }

private:
    [[nodiscard]] result<storage> allocate(std::size_t bytes) override {
        bytes_ += bytes;
        return storage::on_host(std::max<std::size_t>(bytes, 16));
    }
    [[nodiscard]] result<void> run(task const& what, std::size_t items) override {
        items_ += items, ++runs_[name_of(what.number)];
        for (std::size_t i = 0; i < items; ++i) what.item(what.what, i);
        return {};
    }
    [[nodiscard]] result<void> scan(buffer<std::int64_t> const& values) override { return inner_.sum(values); }

    spatial::host_queue inner_;
    std::size_t items_ = 0, bytes_ = 0;
    std::map<std::string, std::size_t> runs_;
};

}  // namespace kiln::spatial_tests
