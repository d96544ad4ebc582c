// SPDX-License-Identifier: Apache-2.0
// Which kernels and primitives a call's time goes to: a queue that marks the stream before and after each. What runs for less than a launch takes shows as that, and
// the call as a whole takes longer than without.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/device.hpp>

#include <string>
#include <vector>

namespace kiln::spatial_bench {

class timed_queue final : public spatial::device_queue {
public:
    explicit timed_queue(stream_ref on) noexcept : device_queue{on, 0} {}

    [[nodiscard]] result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) override {
        return timed("sort of long keys", [&] { return device_queue::sort(keys, values, bits); });
    }
    [[nodiscard]] result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) override {
        return timed("sort", [&] { return device_queue::sort(keys, values); });
    }
    [[nodiscard]] result<void> read_sync(std::initializer_list<wish> wishes) override {
        ++fences_;
        return device_queue::read_sync(wishes);
    }

    // The longest, one a line, and how much the others are together.
    void print_sync(std::size_t most) const;

private:
    [[nodiscard]] result<void> run(task const& what, std::size_t items) override {
        return timed(name_of(what.number), [&] { return device_queue::run(what, items); });
    }
    [[nodiscard]] result<void> scan(buffer<std::int64_t> const& values) override {
        return timed("sums", [&] { return device_queue::scan(values); });
    }
    template <class Call>
    result<void> timed(char const* name, Call call) {
        lap now{name, device_event::make().value(), device_event::make().value()};
        KILN_CHECK(now.begin.record(on()));
        KILN_CHECK(call());
        KILN_CHECK(now.end.record(on()));
        laps_.push_back(std::move(now));
        return {};
    }

    struct lap {
        std::string name;
        device_event begin, end;
    };
    std::vector<lap> laps_;
    std::size_t fences_ = 0;
};

}  // namespace kiln::spatial_bench
