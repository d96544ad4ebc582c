// SPDX-License-Identifier: Apache-2.0
// Two noded layers, asked pair by pair how their rows lie to each other.
#pragma once

#include "spatial/loops.hpp"
#include "spatial/row_pairs.hpp"

#include <kiln/spatial/relate.hpp>

namespace kiln::spatial {

class related_layers {
public:
    [[nodiscard]] static result<related_layers> make(geometries const& left, geometries const& right);

    struct evidence {
        matrix how;
        bool meets;
    };
    [[nodiscard]] evidence relate(std::int32_t left, std::int32_t right);
    // Looks no further than the predicate needs.
    [[nodiscard]] bool holds(predicate what, std::int32_t left, std::int32_t right);

    // take(left, right) for rows whose boxes meet and may(box, box) allows, by left, then right.
    template <class May, class Take>
    void for_candidates(May may, Take take) {
        row_candidates const candidates{layers_->right_rows};
        std::vector<std::int32_t> found;
        in_any_order(layers_->left.rows(), [&](std::size_t i) {
            auto const& box = layers_->left_rows.boxes()[i];
            if (!(box.min_x <= box.max_x)) return;
            candidates.of(box, found);
            in_any_order(found.size(), [&](std::size_t k) {
                if (may(box, layers_->right_rows.box_of(found[k]))) take(static_cast<std::int32_t>(i), found[k]);
            });
        });
    }

private:
    // Evidence only grows: one entry of these proved, or all of those, and the rest does not matter.
    struct limits {
        std::uint32_t any = 0;
        std::uint32_t all[3] = {};
    };
    [[nodiscard]] static limits limits_of(predicate what, int left, int right) noexcept;
    [[nodiscard]] std::uint32_t evidence_for(std::int32_t left, std::int32_t right, limits const& until);

    struct both {
        both(host_layer a, host_layer b)
            : left{std::move(a)}, right{std::move(b)}, left_rows{left}, right_rows{right} {}
        host_layer left, right;
        row_lookup left_rows, right_rows;
    };
    explicit related_layers(std::unique_ptr<both> layers) noexcept : layers_{std::move(layers)} {}

    std::unique_ptr<both> layers_;
    element_pairs elements_;
};

}  // namespace kiln::spatial
