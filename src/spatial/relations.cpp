// SPDX-License-Identifier: Apache-2.0
#include "spatial/relations.hpp"

#include "spatial/kept_elements.hpp"
#include "spatial/pair_lists.cuh"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"
#include "spatial/polygon_predicates.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

bool may_have(geometries const& g, int dimension) {
    return g.kind() == family::mixed || dimension_of(g.kind()) == dimension;
}

class relater {
public:
    relater(queue& on, geometries const& left, geometries const& right, relating which)
        : on_{on}, left_{left}, right_{right}, which_{which} {}
    relater(queue& on, geometries const& left, relate_target const& right)
        : on_{on}, left_{left}, right_{right.of}, which_{relating::all}, target_{&right}, b_{right.layer} {}

    result<relations> relate() {
        KILN_CHECK(meet());
        KILN_CHECK(collect());
        KILN_CHECK(which_ == relating::all ? find_pairs() : take_rows());
        KILN_TRY(bits_, on_.filled<std::uint32_t>(pairs_, 0));
        KILN_CHECK(on_.launch(prove_contacts{facts_, pair_.data(), bits_.data()}, facts_.mets));
        KILN_CHECK(on_.launch(prove_insides{facts_, pair_.data(), bits_.data()}, facts_.in_bs + facts_.in_as));
        KILN_TRY(auto seen_in_a, see(left_, right_, 0));
        KILN_TRY(auto seen_in_b, see(right_, left_, 1));
        KILN_CHECK(count_paths(seen_in_a, seen_in_b));
        bool const all = which_ == relating::all;
        KILN_CHECK(on_.launch(finish_matrices{all ? out_.left.data() : nullptr, all ? out_.right.data() : nullptr,
                                              side(a_, seen_in_a), side(b_, seen_in_b), bits_.data()},
                              pairs_));
        return relations{out_, bits_, a_.dimensions(), b_.dimensions()};
    }

private:
    // What was seen of one side, by pair.
    struct seen {
        buffer<std::uint64_t> paths, ends, covered;
        buffer<std::uint64_t> listed;  // paths of rows with several
        buffer<std::int64_t> listed_count;
        line_ends has_ends = line_ends::no;
        bool has_pieces = false;
    };

    // Layers and their contacts. Ends of lines are counted at every vertex, so layers with lines are noded first; others only in
    // the rows that touch something, once that is known.
    result<void> meet() {
        bool const have_lines = may_have(left_, 1) || may_have(right_, 1);
        auto const layer_of = have_lines ? &kept_layer::noded : &kept_layer::distinct;
        KILN_TRY(a_, layer_of(on_, left_));
        if (target_ == nullptr) {
            KILN_TRY(b_, layer_of(on_, right_));
        }
        KILN_CHECK(find_met());
        if (have_lines || met_.size() == 0) return {};

        KILN_TRY(auto rows_a, on_.filled<std::uint32_t>(a_.rows(), 0));
        KILN_TRY(auto rows_b, on_.filled<std::uint32_t>(b_.rows(), 0));
        KILN_TRY(auto any, on_.filled<std::int64_t>(1, 0));
        KILN_CHECK(on_.launch(
            mark_touched{a_.view(), b_.view(), met(), rows_a.data(), rows_b.data(), reinterpret_cast<u32*>(any.data())},
            met_.size()));
        std::int64_t touched = 0;
        KILN_CHECK(on_.read_sync({{any.data(), touched}}));
        if (touched == 0) return {};
        auto const before = std::pair{a_.vertices(), b_.vertices()};
        KILN_CHECK(a_.node(on_, rows_a.data()));
        if (target_ == nullptr) KILN_CHECK(b_.node(on_, rows_b.data()));
        return before == std::pair{a_.vertices(), b_.vertices()} ? result<void>{} : find_met();
    }
    result<void> find_met() {
        KILN_CHECK(b_.keep_elements(on_));
        KILN_TRY(met_, find_contacts(on_, a_, b_, b_.elements(),
                                     which_ == relating::all ? rows_wanted::all : rows_wanted::same));
        return {};
    }
    [[nodiscard]] contact_facts met() const { return {met_.left.data(), met_.right.data(), met_.how.data()}; }

    result<void> collect() {
        auto const asked = [&](geometries const& of) { return may_have(of, 1) ? line_ends::asked : line_ends::no; };
        if (may_have(right_, 2)) {
            KILN_TRY(in_b_, target_ != nullptr ? questions_in(on_, a_, *target_->areas, wanted_inside, asked(left_))
                                               : questions_in(on_, a_, b_, wanted_inside, asked(left_)));
        }
        if (may_have(left_, 2)) {
            KILN_TRY(in_a_, questions_in(on_, b_, a_, wanted_inside, asked(right_)));
        }
        facts_ = {a_.view(),
                  b_.view(),
                  met(),
                  {in_b_.left.data(), in_b_.right.data()},
                  {in_a_.left.data(), in_a_.right.data()},
                  met_.size(),
                  in_b_.size(),
                  in_a_.size()};
        count_ = met_.size() + in_b_.size() + in_a_.size();
        KILN_TRY(pair_, on_.room<std::int32_t>(count_));
        return {};
    }

    result<void> find_pairs() {
        int const bits = bits_for(right_.rows()), all_bits = bits + bits_for(left_.rows());
        u64 const none = u64{1} << all_bits;
        KILN_TRY(auto keys, on_.room<std::uint64_t>(count_));
        KILN_TRY(auto numbers, on_.room<std::int32_t>(count_));
        KILN_CHECK(on_.launch(fact_keys{facts_, bits, none, raw(keys), numbers.data()}, count_));
        KILN_CHECK(on_.sort(keys, numbers, all_bits + 1));
        KILN_TRY(auto place, on_.room<std::int64_t>(count_ + 1));
        KILN_CHECK(on_.launch(count_distinct_keys{raw(keys), none, raw(place)}, count_));
        KILN_CHECK(on_.sum(place));
        std::int64_t total = 0;
        KILN_CHECK(on_.read_sync({{place.data() + count_, total}}));
        pairs_ = static_cast<std::size_t>(total);
        KILN_TRY(out_.left, on_.room<std::int32_t>(pairs_));
        KILN_TRY(out_.right, on_.room<std::int32_t>(pairs_));
        KILN_CHECK(
            on_.launch(take_distinct_keys{raw(keys), raw(place), bits, out_.left.data(), out_.right.data()}, count_));
        return on_.launch(fact_pairs{raw(place), raw(keys), none, numbers.data(), pair_.data()}, count_);
    }
    result<void> take_rows() {
        pairs_ = std::min(left_.rows(), right_.rows());
        return on_.launch(fact_rows{facts_, pair_.data()}, count_);
    }

    result<seen> see(geometries const& of, geometries const& other, i32 of_b) {
        seen out;
        out.has_ends = may_have(of, 1) ? line_ends::asked : line_ends::no;
        auto const n = facts_.mets + static_cast<std::size_t>(of_b != 0 ? facts_.in_as : facts_.in_bs);
        facts_of_side const facts{facts_, pair_.data(), of_b};
        KILN_TRY(out.listed, on_.room<std::uint64_t>(n));
        KILN_TRY(out.listed_count, on_.filled<std::int64_t>(1, 0));
        KILN_CHECK(on_.launch(seen_paths{facts, raw((of_b != 0 ? b_ : a_).row_paths()), raw(out.listed),
                                         reinterpret_cast<u32*>(out.listed_count.data())},
                              n));
        if (out.has_ends == line_ends::asked) {
            KILN_TRY(auto end, on_.room<std::uint64_t>(facts_.mets + n));
            KILN_CHECK(on_.launch(seen_ends{facts, raw(end)}, n));
            KILN_TRY(out.ends, distinct(end));
        }
        // Of lines nothing but common pieces covers anything; areas were asked by rays.
        out.has_pieces = may_have(other, 1) && (may_have(of, 1) || may_have(of, 2));
        if (!out.has_pieces) return out;
        KILN_TRY(auto pieces, on_.room<std::uint64_t>(facts_.mets));
        KILN_TRY(auto numbers, on_.room<std::int32_t>(facts_.mets));
        KILN_CHECK(on_.launch(piece_keys{facts_, pair_.data(), of_b, raw(pieces), numbers.data()}, facts_.mets));
        KILN_CHECK(on_.sort(pieces, numbers, 64));
        KILN_TRY(out.covered, on_.filled<std::uint64_t>(pairs_, 0));
        KILN_CHECK(on_.launch(count_covered{facts_, of_b, raw(pieces), numbers.data(), raw(out.covered)}, facts_.mets));
        return out;
    }
    result<void> count_paths(seen& a, seen& b) {
        std::int64_t in_a = 0, in_b = 0;
        KILN_CHECK(on_.read_sync({{a.listed_count.data(), in_a}, {b.listed_count.data(), in_b}}));
        for (auto const& [side, n] : {std::pair{&a, in_a}, std::pair{&b, in_b}}) {
            if (n == 0) continue;
            auto keys = side->listed.first(static_cast<std::size_t>(n));
            KILN_TRY(side->paths, distinct(keys, (side == &a ? a_ : b_).view().kind));
        }
        return {};
    }
    // Different things by pair. Keys are pair << 32 | thing; what is none has all bits, and comes last in any case. `kind` of paths: see count_seen.
    result<buffer<std::uint64_t>> distinct(buffer<std::uint64_t>& keys, std::uint8_t const* kind = nullptr) {
        KILN_TRY(auto unused, on_.room<std::int32_t>(keys.size()));
        KILN_CHECK(on_.sort(keys, unused, std::min(64, 33 + bits_for(pairs_))));
        KILN_TRY(auto out, on_.filled<std::uint64_t>(pairs_, 0));
        KILN_CHECK(on_.launch(count_seen{raw(keys), kind, raw(out)}, keys.size()));
        return out;
    }
    static seen_of_side side(kept_layer const& l, seen const& s) {
        return {s.paths.empty() ? nullptr : raw(s.paths),
                s.has_ends == line_ends::asked ? raw(s.ends) : nullptr,
                s.has_pieces ? raw(s.covered) : nullptr,
                raw(l.row_paths()),
                raw(l.row_ends()),
                raw(l.row_segments()),
                l.states().data(),
                reinterpret_cast<signed char const*>(l.dimensions().data())};
    }

    queue& on_;
    geometries const& left_;
    geometries const& right_;
    relating which_;
    relate_target const* target_ = nullptr;  // has the right side ready
    kept_layer a_, b_;
    contacts met_;
    pair_list in_b_, in_a_;  // questions and rows
    fact_list facts_{};
    std::size_t count_ = 0, pairs_ = 0;
    buffer<std::int32_t> pair_;  // by fact
    pair_list out_;
    buffer<std::uint32_t> bits_;
};

}  // namespace

result<relations> relate_rows(queue& on, geometries const& left, geometries const& right, relating which) {
    if (left.empty() || right.empty()) return relations{};
    return relater{on, left, right, which}.relate();
}

result<relate_target> relate_target::make(queue& on, geometries const& right) {
    relate_target out{right, {}, {}};
    KILN_TRY(out.layer, kept_layer::noded(on, right));
    KILN_CHECK(out.layer.keep_elements(on));
    if (may_have(right, 2)) {
        KILN_TRY(out.areas, build_brief_index(on, out.layer));
    }
    return out;
}
result<relations> relate_rows(queue& on, geometries const& left, relate_target const& right) {
    if (left.empty() || right.of.empty()) return relations{};
    return relater{on, left, right}.relate();
}

namespace {

held_pairs held(relations const& all, predicate what) {
    auto const dimensions = [](buffer<std::int8_t> const& b) { return reinterpret_cast<signed char const*>(b.data()); };
    return {{static_cast<i32>(what)},       all.bits.data(),
            all.pairs.left.data(),          all.pairs.right.data(),
            dimensions(all.left_dimension), dimensions(all.right_dimension)};
}

}  // namespace

result<pair_list> rows_holding::pairs() {
    auto const n = all_.pairs.size();
    if (n == 0) return pair_list{};
    KILN_TRY(auto const counts, on_->room<std::int64_t>(n + 1));
    KILN_CHECK(on_->launch(count_holding{held(all_, what_), raw(counts)}, n));
    return counted_pairs(*on_, all_.pairs, counts);
}
result<buffer<std::int32_t>> rows_holding::first() {
    KILN_TRY(auto const all, pairs());
    return firsts_of(*on_, all, left_rows_);
}
result<buffer<std::uint8_t>> rows_holding::any() {
    KILN_TRY(auto const counts, count());
    return any_of(*on_, counts);
}
result<buffer<std::int64_t>> rows_holding::count(buffer<std::int32_t> const& row, std::size_t rows) {
    KILN_TRY(auto out, on_->filled<std::int64_t>(rows, 0));
    KILN_CHECK(on_->launch(count_holding_of_rows{held(all_, what_), row.data(), counts_in(out)}, all_.pairs.size()));
    return out;
}

}  // namespace kiln::spatial
