// SPDX-License-Identifier: Apache-2.0
#include "spatial/path_points.hpp"

#include "spatial/kept_tree.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

static_assert(wanted_inside == 1 && wanted_on == 2);

std::size_t questions_of(kept_layer const& of, line_ends ends) {
    return of.paths() + (ends == line_ends::asked ? of.vertices() : 0);
}

// An index passes over all edges some ten times; below that, the edges of the rows in question are fewer.
std::size_t worth_an_index(kept_layer const& areas) { return 16 * areas.vertices() + (std::size_t{1} << 20); }

// Without an index; nothing where one is better. Three fences.
result<std::optional<pair_list>> few_questions_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                                  std::uint32_t wanted, line_ends ends) {
    KILN_TRY(auto const found, candidates_in(on, of, areas, ends));
    if (!found) return std::optional<pair_list>{};
    auto const m = found->pairs.size();
    KILN_TRY(auto const mark, found->marks<tie::up>(on, areas));
    KILN_TRY(auto place, on.room<std::int64_t>(m + 1));
    KILN_CHECK(on.launch(count_marked{mark.data(), wanted, raw(place)}, m));
    KILN_TRY(auto const total, on.total_sync(place));
    pair_list out;
    KILN_TRY(out.left, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(list_marked{found->in(areas), raw(place), out.left.data(), out.right.data()}, m));
    return std::optional{std::move(out)};
}

}  // namespace

result<std::optional<question_candidates>> candidates_in(queue& on, kept_layer const& of, kept_layer const& areas,
                                                         line_ends ends) {
    std::optional<question_candidates> out;
    auto const n = questions_of(of, ends);
    if (n > areas.vertices()) return out;
    KILN_TRY(auto asked, on.room<box>(n));
    KILN_CHECK(on.launch(question_boxes{of.view(), asked.data()}, n));
    KILN_TRY(auto const boxes, areas.row_boxes(on));
    KILN_TRY(auto const tree, kept_tree::make(on, boxes));
    // A row with an edge has four vertices at least.
    KILN_TRY(auto pairs, query_boxes(on, tree, asked, 0, worth_an_index(areas) / 4));
    if (!pairs) return out;
    question_candidates found;
    found.pairs = *std::move(pairs), found.asked = std::move(asked);
    KILN_TRY(found.first, on.room<std::int64_t>(found.pairs.size() + 1));
    KILN_CHECK(on.launch(candidate_work{found.in(areas), raw(found.first)}, found.pairs.size()));
    KILN_TRY(auto const steps, on.total_sync(found.first));
    found.steps = static_cast<std::size_t>(steps);
    if (found.steps <= worth_an_index(areas)) out = std::move(found);
    return out;
}

template <tie Mode>
result<buffer<std::uint32_t>> question_candidates::marks(queue& on, kept_layer const& areas) const {
    auto const m = pairs.size();
    KILN_TRY(auto out, on.filled<std::uint32_t>(m, 0));
    double const share = static_cast<double>(m) / static_cast<double>(std::max<std::size_t>(steps, 1));
    KILN_CHECK(on.launch(mark_candidates<Mode>{in(areas), asked.data(), raw(first), m, steps, share, out.data()},
                         (steps + marks_of_item - 1) / marks_of_item));
    return out;
}
template result<buffer<std::uint32_t>> question_candidates::marks<tie::up>(queue&, kept_layer const&) const;
template result<buffer<std::uint32_t>> question_candidates::marks<tie::down>(queue&, kept_layer const&) const;

result<pair_list> questions_in(queue& on, kept_layer const& of, area_index::state const& areas, std::uint32_t wanted,
                               line_ends ends) {
    auto const n = questions_of(of, ends);
    KILN_TRY(auto x, on.room<double>(n));
    KILN_TRY(auto y, on.room<double>(n));
    KILN_CHECK(on.launch(path_questions{of.view(), x.data(), y.data()}, n));
    return point_locator{on, {x.data(), y.data(), nullptr, nullptr}, n, areas, wanted}.pairs();
}

result<pair_list> questions_in(queue& on, kept_layer const& of, kept_layer const& areas, std::uint32_t wanted,
                               line_ends ends) {
    KILN_TRY(auto few, few_questions_in(on, of, areas, wanted, ends));
    if (few) return *std::move(few);
    KILN_TRY(auto const index, build_brief_index(on, areas));
    return questions_in(on, of, *index, wanted, ends);
}

namespace {

template <class Areas>
result<pair_list> rows_in(queue& on, kept_layer const& of, Areas const& areas, std::uint32_t wanted) {
    KILN_TRY(auto out, questions_in(on, of, areas, wanted, line_ends::no));
    KILN_CHECK(on.launch(rows_of_questions{of.view(), out.left.data()}, out.size()));
    return out;
}

}  // namespace

result<pair_list> first_vertices_in(queue& on, kept_layer const& of, kept_layer const& areas, std::uint32_t wanted) {
    return rows_in(on, of, areas, wanted);
}
result<pair_list> first_vertices_in(queue& on, kept_layer const& of, area_index::state const& areas,
                                    std::uint32_t wanted) {
    return rows_in(on, of, areas, wanted);
}

}  // namespace kiln::spatial
