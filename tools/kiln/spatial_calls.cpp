// SPDX-License-Identifier: Apache-2.0
#include "spatial_calls.hpp"

#include "base/check.hpp"

#include <kiln/event.hpp>
#include <kiln/spatial/join.hpp>

#include <utility>

namespace kiln::cli::spatial_calls {

namespace {

// What the call inside of it was decided to be. What it calls in turn, and what is asked of its result, comes after it.
class watched_decisions {
public:
    watched_decisions()
        : token_{event_log::process().subscribe([this](event const& e) {
              if (e.kind != event_kind::dispatched || std::exchange(is_decided_, true)) return;
              seen_.selected = e.target.view() == name_of(place::gpu) ? place::gpu : place::cpu;
              seen_.reason = std::string{e.reason.view()};
          })} {}
    [[nodiscard]] decided const& seen() const noexcept { return seen_; }

private:
    decided seen_;
    bool is_decided_ = false;
    event_log::subscription token_;
};

// A stream for what may run on a GPU. What is too small for one in any case does not set one up.
class own_stream {
public:
    explicit own_stream(std::size_t items) {
        constexpr std::size_t never_worth_it = 1 << 12;
        auto const mode = requested_mode();
        bool const may = mode == execution_mode::gpu || (mode == execution_mode::automatic && items > never_worth_it);
        if (!may || !usable_gpu()) return;
        if (auto made = stream::make()) own_.emplace(*std::move(made));
    }
    [[nodiscard]] stream_ref get() const noexcept { return own_ ? stream_ref{*own_} : stream_ref{}; }

    template <class T>
    [[nodiscard]] result<buffer<T>> here(buffer<T> const& what) const {
        return what.to_host_sync(get());
    }

private:
    std::optional<stream> own_;
};

std::size_t items_of(spatial::geometries const& g) { return g.rows() + g.vertices(); }

// Runs call(stream), whose result is on the host.
template <class Call>
auto watched(std::size_t items, Call const& call)
    -> result<answer<std::remove_cvref_t<decltype(*call(std::declval<own_stream const&>()))>>> {
    own_stream const on{items};
    watched_decisions const decisions;
    KILN_TRY(auto data, call(on));
    return answer<decltype(data)>{std::move(data), decisions.seen()};
}

result<std::vector<spatial::row_pair>> pairs_here(own_stream const& on, spatial::pair_list const& of) {
    KILN_TRY(auto const left, on.here(of.left));
    KILN_TRY(auto const right, on.here(of.right));
    std::vector<spatial::row_pair> out(left.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {left.data()[i], right.data()[i]};
    return out;
}

// Dimensions are the host's to know.
spatial::matrix matrix_of(spatial::geometries const& left, std::size_t i, spatial::geometries const& right,
                          std::size_t j, std::uint32_t bits) {
    return {bits, spatial::dimension_of(left.kind_of(i)), spatial::dimension_of(right.kind_of(j))};
}

}  // namespace

answers<std::optional<spatial::bounding_box>> bounds(spatial::geometries const& of) {
    using box = std::optional<spatial::bounding_box>;
    return watched(items_of(of), [&](own_stream const& on) -> result<std::vector<box>> {
        KILN_TRY(auto const all, spatial::bounds(on.get(), of));
        KILN_TRY(auto const min_x, on.here(all.min_x));
        KILN_TRY(auto const min_y, on.here(all.min_y));
        KILN_TRY(auto const max_x, on.here(all.max_x));
        KILN_TRY(auto const max_y, on.here(all.max_y));
        std::vector<box> out(min_x.size());
        for (std::size_t i = 0; i < out.size(); ++i)
            if (min_x.data()[i] <= max_x.data()[i])
                out[i] = {min_x.data()[i], min_y.data()[i], max_x.data()[i], max_y.data()[i]};
        return out;
    });
}
answers<spatial::row_pair> join(spatial::geometries const& left, spatial::geometries const& right,
                                spatial::predicate what) {
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) {
        return spatial::join(on.get(), left, right, what).and_then([&](auto const& p) { return pairs_here(on, p); });
    });
}
answers<spatial::row_pair> join_within(spatial::geometries const& left, spatial::geometries const& right,
                                       double distance) {
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) {
        return spatial::join_within(on.get(), left, right, distance).and_then([&](auto const& p) {
            return pairs_here(on, p);
        });
    });
}
answers<spatial::near_pair> nearest(spatial::geometries const& left, spatial::geometries const& right,
                                    spatial::nearest_options const& how) {
    return watched(items_of(left) + items_of(right),
                   [&](own_stream const& on) -> result<std::vector<spatial::near_pair>> {
                       KILN_TRY(auto const all, spatial::nearest(on.get(), left, right, how));
                       KILN_TRY(auto const a, on.here(all.left));
                       KILN_TRY(auto const b, on.here(all.right));
                       KILN_TRY(auto const distance, on.here(all.distance));
                       std::vector<spatial::near_pair> out(a.size());
                       for (std::size_t i = 0; i < out.size(); ++i)
                           out[i] = {a.data()[i], b.data()[i], distance.data()[i]};
                       return out;
                   });
}
answers<spatial::related_pair> relate_join(spatial::geometries const& left, spatial::geometries const& right) {
    return watched(
        items_of(left) + items_of(right), [&](own_stream const& on) -> result<std::vector<spatial::related_pair>> {
            KILN_TRY(auto const all, spatial::relate_join(on.get(), left, right));
            KILN_TRY(auto const a, on.here(all.left));
            KILN_TRY(auto const b, on.here(all.right));
            KILN_TRY(auto const bits, on.here(all.bits));
            std::vector<spatial::related_pair> out;
            for (std::size_t k = 0; k < a.size(); ++k) {
                auto const i = static_cast<std::size_t>(a.data()[k]), j = static_cast<std::size_t>(b.data()[k]);
                out.push_back({a.data()[k], b.data()[k], matrix_of(left, i, right, j, bits.data()[k])});
            }
            return out;
        });
}
answers<std::optional<spatial::matrix>> relate(spatial::geometries const& left, spatial::geometries const& right) {
    using entry = std::optional<spatial::matrix>;
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) -> result<std::vector<entry>> {
        KILN_TRY(auto const all, spatial::relate(on.get(), left, right));
        KILN_TRY(auto const bits, on.here(all));
        std::vector<entry> out(bits.size());
        for (std::size_t i = 0; i < out.size(); ++i)
            if (!left.is_null(i) && !right.is_null(i)) out[i] = matrix_of(left, i, right, i, bits.data()[i]);
        return out;
    });
}

namespace {

result<drawn_rows> drawn_here(own_stream const& on, spatial::geometries const& rows) {
    KILN_TRY(auto const areas, spatial::area(on.get(), rows));
    KILN_TRY(auto const sizes, on.here(areas));
    drawn_rows out;
    out.areas.assign(sizes.host_span().begin(), sizes.host_span().end());
    KILN_TRY(out.rows, rows.to_host_sync(on.get()));
    return out;
}
std::vector<std::int32_t> numbers_of(buffer<std::int32_t> const& b) {
    return {b.host_span().begin(), b.host_span().end()};
}

}  // namespace

result<answer<drawn_rows>> overlay(spatial::geometries const& left, spatial::geometries const& right,
                                   spatial::overlay_kind what, spatial::overlay_options const& how) {
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) -> result<drawn_rows> {
        KILN_TRY(auto const made, spatial::overlay(on.get(), left, right, what, how));
        KILN_TRY(auto out, drawn_here(on, made.rows));
        KILN_TRY(auto const a, on.here(made.left));
        KILN_TRY(auto const b, on.here(made.right));
        out.left = numbers_of(a), out.right = numbers_of(b);
        return out;
    });
}
result<answer<drawn_rows>> overlay_row_by_row(spatial::geometries const& left, spatial::geometries const& right,
                                              spatial::overlay_kind what, spatial::overlay_options const& how) {
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) -> result<drawn_rows> {
        KILN_TRY(auto const made, spatial::overlay_row_by_row(on.get(), left, right, what, how));
        KILN_TRY(auto out, drawn_here(on, made));
        for (std::size_t i = 0; i < left.rows(); ++i) out.left.push_back(static_cast<std::int32_t>(i));
        out.right = out.left;
        return out;
    });
}
result<answer<drawn_rows>> dissolve(spatial::geometries const& of, std::vector<std::int32_t> const& key,
                                    std::size_t keys, spatial::memory_options const& how) {
    return watched(items_of(of), [&](own_stream const& on) {
        return spatial::dissolve(on.get(), of, buffer<std::int32_t>::copy_of(key), keys, how)
            .and_then([&](spatial::geometries const& rows) { return drawn_here(on, rows); });
    });
}

result<answer<drawn_rows>> buffer_of(spatial::geometries const& of, double distance,
                                     spatial::buffer_options const& how) {
    return watched(items_of(of), [&](own_stream const& on) {
        return spatial::buffer_of(on.get(), of, distance, how).and_then([&](spatial::geometries const& rows) {
            return drawn_here(on, rows);
        });
    });
}

result<answer<drawn_rows>> shape(spatial::geometries const& of, shape_maker const& make) {
    return watched(items_of(of), [&](own_stream const& on) {
        return make(on.get(), of).and_then([&](spatial::geometries const& rows) { return drawn_here(on, rows); });
    });
}

result<answer<drawn_rows>> clip(spatial::geometries const& of, spatial::geometries const& areas) {
    return watched(items_of(of) + items_of(areas), [&](own_stream const& on) {
        return spatial::clip(on.get(), of, areas).and_then([&](spatial::geometries const& rows) {
            return drawn_here(on, rows);
        });
    });
}

answers<measured_row> measures(spatial::geometries const& of) {
    return watched(items_of(of), [&](own_stream const& on) -> result<std::vector<measured_row>> {
        KILN_TRY(auto const areas, spatial::area(on.get(), of));
        KILN_TRY(auto const lengths, spatial::length(on.get(), of));
        KILN_TRY(auto const middle, spatial::centroid(on.get(), of));
        KILN_TRY(auto const validity, spatial::is_valid(on.get(), of));
        KILN_TRY(auto const area, on.here(areas));
        KILN_TRY(auto const length, on.here(lengths));
        KILN_TRY(auto const x, on.here(middle.x));
        KILN_TRY(auto const y, on.here(middle.y));
        KILN_TRY(auto const valid, on.here(validity));
        std::vector<measured_row> out;
        for (std::size_t i = 0; i < of.rows(); ++i)
            out.push_back({area.data()[i], length.data()[i], {x.data()[i], y.data()[i]}, valid.data()[i] != 0});
        return out;
    });
}
answers<double> distance(spatial::geometries const& left, spatial::geometries const& right) {
    return watched(items_of(left) + items_of(right), [&](own_stream const& on) -> result<std::vector<double>> {
        KILN_TRY(auto const all, spatial::distance(on.get(), left, right));
        KILN_TRY(auto const here, on.here(all));
        return std::vector<double>(here.host_span().begin(), here.host_span().end());
    });
}

}  // namespace kiln::cli::spatial_calls
