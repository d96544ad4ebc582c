// SPDX-License-Identifier: Apache-2.0
//
// Rewrites: a consumer that knows what made its input may do something cheaper with the same result, bit for bit. A pack
// declares each one as a constant of (producer, consumer) and asks before it takes it; KILN_REWRITES=0 or set_rewrites()
// turns all of them off, and every one that is taken is an event. Safe from any thread.
//
//     constinit kiln::rewrite const sort_of_sorted{"sort-of-sorted", "radix_sort", "radix_sort"};
//     if (kiln::take(sort_of_sorted, made_by)) return input;
#pragma once

#include <kiln/language.hpp>

#include <optional>
#include <string_view>

namespace KILN_PUBLIC kiln {

struct rewrite {
    std::string_view name;      // in events: "sort-of-sorted"
    std::string_view producer;  // operation that made the input
    std::string_view consumer;  // operation that is asked for
};

[[nodiscard]] bool rewrites_enabled() noexcept;
// For the whole process; nullopt goes back to KILN_REWRITES.
void set_rewrites(std::optional<bool> on) noexcept;

// True, with an event, if rewrites are on and `made_by` is the rewrite's producer.
[[nodiscard]] bool take(rewrite const& what, std::string_view made_by) noexcept;

}  // namespace kiln
