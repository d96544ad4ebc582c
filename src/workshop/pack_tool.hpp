// SPDX-License-Identifier: Apache-2.0
//
// What a pack knows for Kiln's own programs alone: how to time its operations, what of it to show a newcomer, and what ships
// of it beyond a bundle of everything it names. A static object in src/<pack>/tool/, which is no part of libkiln. The
// defaults serve a pack that has none.
#pragma once

#include "workshop/products.hpp"

#include <kiln/device.hpp>

#include <functional>

namespace kiln::workshop {

using engine_detail::pack;
using engine_detail::recipe;

inline constexpr std::size_t most_trial_items = std::size_t{1} << 22;
// One operation on `n` items of host data, a power of two, in whatever execution mode the caller has set; the result is
// waited for.
struct trial {
    operation const* what;
    std::function<result<void>(stream_ref on, std::size_t n)> run;
};

struct demo_group {
    std::string title;
    std::vector<recipe> recipes;
};

class pack_tool {
public:
    pack_tool(pack_tool const&) = delete;
    pack_tool& operator=(pack_tool const&) = delete;

    // For `kiln calibrate`: operations without a trial keep their default.
    [[nodiscard]] virtual std::vector<trial> trials() const { return {}; }
    // For `kiln demo`: the heading of the pack's names, what of them is worth compiling where it does not ship, and what
    // no build has seen.
    [[nodiscard]] virtual std::string title(pack const& of) const { return std::string{of.name()}; }
    [[nodiscard]] virtual std::vector<recipe> worth_compiling(pack const& of) const;
    [[nodiscard]] virtual std::vector<demo_group> unseen() const { return {}; }
    // For the build: everything or nothing.
    [[nodiscard]] virtual result<void> make_products(engine& with, pack const& of, product_plan const& plan,
                                                     product_files& to) const;

protected:
    // Registers for the pack of this name; with none, for no pack.
    explicit pack_tool(std::string_view pack = {});
    ~pack_tool() = default;
};

[[nodiscard]] pack_tool const& tool_of(pack const& of);

}  // namespace kiln::workshop
