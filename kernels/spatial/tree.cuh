// SPDX-License-Identifier: Apache-2.0
// An implicit tree over boxes. Items are sorted along a Hilbert curve; eight neighbours make a node, eight nodes the next. Nodes
// are numbered as in a heap: the children of h are 8h + 1 to 8h + 8, so there are no pointers, and a traversal needs no stack:
// what is pending on each level is eight bits of one register. Boxes in nodes are floats rounded outwards, 128 bytes per node, from
// the corner of everything on: far from the origin floats would tell little apart. A test on them says "perhaps", and whoever asked
// decides on the doubles.
#pragma once

#include "grid.cuh"

namespace kiln_spatial {

// Others are turned round, and never met.
KILN_HD bool is_box(box const& b) { return b.min_x <= b.max_x; }

// A line of a device's cache: its memory begins at one. A host's need not, so that is not asked of the type.
struct alignas(16) tree_node {
    float min_x[8], min_y[8], max_x[8], max_y[8];  // of children; an empty one is (inf, inf, -inf, -inf)
};

// Four of its children. A side of them is one load of sixteen bytes: where every thread of a warp is at another node, a quarter of
// the requests that as many floats one by one are.
struct alignas(16) four_floats {
    float v[4];
};
struct four_children {
    four_floats min_x, min_y, max_x, max_y;
};
static_assert(sizeof(tree_node) == 2 * sizeof(four_children));
KILN_HD four_children half_of(tree_node const& n, int half) {
    auto const* const from = reinterpret_cast<four_floats const*>(&n) + half;
    return {from[0], from[2], from[4], from[6]};
}

KILN_HD u32 hilbert_key(u32 x, u32 y) {  // 16 bits each
    u32 key = 0;
    for (int bit = 15; bit >= 0; --bit) {
        u32 const rx = x >> bit & 1, ry = y >> bit & 1;
        key = key << 2 | ((3 * rx) ^ ry);
        if (ry == 0) {
            if (rx != 0) x = ~x, y = ~y;
            u32 const t = x;
            x = y, y = t;
        }
    }
    return key;
}

struct key_frame {
    double x, y, scale_x, scale_y;  // 65535 over the extent
};
KILN_HD u32 box_key(key_frame const& f, box const& b) {
    double const x = mul(sub(mul(add(b.min_x, b.max_x), 0.5), f.x), f.scale_x);
    double const y = mul(sub(mul(add(b.min_y, b.max_y), 0.5), f.y), f.scale_y);
    return hilbert_key(x > 0 ? x < 65535 ? static_cast<u32>(x) : 65535U : 0U, y > 0 ? y < 65535 ? static_cast<u32>(y) : 65535U : 0U);
}

// Around everything, of the four numbers that layer_extent and box_extent leave: ordered() ones, least x and y, and -x and -y.
KILN_HD key_frame frame_of_extent(u64 const* least) {
    double const x = unordered(least[0]), y = unordered(least[1]), width = sub(-unordered(least[2]), x),
                 height = sub(-unordered(least[3]), y);
    return {x, y, width > 0 ? quotient(65535, width) : 0, height > 0 ? quotient(65535, height) : 0};
}

struct rough_box {
    float min_x, min_y, max_x, max_y;
};
// Beyond the range of floats: the largest one, on both sides of every test. Infinity is for empty children.
KILN_HD float kept_finite(float v) {
    float const far = 3.4028234663852886e38F;
    return v > far ? far : v < -far ? -far : v;
}
KILN_HD rough_box outwards(box const& b) {
    return {kept_finite(round_down(b.min_x)), kept_finite(round_down(b.min_y)), kept_finite(round_up(b.max_x)),
            kept_finite(round_up(b.max_y))};
}

#ifdef __CUDA_ARCH__
KILN_HD double sub_below(double a, double b) { return __dsub_rd(a, b); }
KILN_HD double sub_above(double a, double b) { return __dsub_ru(a, b); }
#else
KILN_HD double sub_below(double a, double b) { return next_down(sub(a, b)); }
KILN_HD double sub_above(double a, double b) { return next_up(sub(a, b)); }
#endif
// The same from a corner on. `around`: as frame_of_extent() has it.
KILN_HD rough_box outwards_from(u64 const* around, box const& b) {
    double const x = unordered(around[0]), y = unordered(around[1]);
    return outwards({sub_below(b.min_x, x), sub_below(b.min_y, y), sub_above(b.max_x, x), sub_above(b.max_y, y)});
}

struct tree {
    tree_node const* nodes;
    u32 const* item;     // by leaf slot
    u32 first_leaf;      // nodes from here on have items as children
    i32 top;             // levels above the leaves
    u32 size;            // items
    u64 const* around;   // everything

    // A box as its nodes have theirs.
    KILN_HD rough_box rough(box const& b) const { return outwards_from(around, b); }
};

KILN_HD rough_box nothing_met() {
    float const far = static_cast<float>(from_bits(u64{0x7ff} << 52));
    return {far, far, -far, -far};
}
KILN_HD rough_box around(rough_box const& a, rough_box const& b) {
    return {a.min_x < b.min_x ? a.min_x : b.min_x, a.min_y < b.min_y ? a.min_y : b.min_y, a.max_x > b.max_x ? a.max_x : b.max_x,
            a.max_y > b.max_y ? a.max_y : b.max_y};
}
KILN_HD void set_child(tree_node& n, u64 i, rough_box const& b) {
    n.min_x[i] = b.min_x, n.min_y[i] = b.min_y, n.max_x[i] = b.max_x, n.max_y[i] = b.max_y;
}
KILN_HD rough_box child_of(tree_node const& n, u32 i) { return {n.min_x[i], n.min_y[i], n.max_x[i], n.max_y[i]}; }
// Which children the box meets, as bits.
KILN_HD u32 children_met(tree_node const& n, rough_box const& b) {
    u32 out = 0;
    KILN_UNROLL
    for (int half = 0; half < 2; ++half) {
        four_children const c = half_of(n, half);
        KILN_UNROLL
        for (int i = 0; i < 4; ++i) {
            bool const meets =
                c.min_x.v[i] <= b.max_x && c.min_y.v[i] <= b.max_y && c.max_x.v[i] >= b.min_x && c.max_y.v[i] >= b.min_y;
            out |= static_cast<u32>(meets) << (4 * half + i);
        }
    }
    return out;
}

// Where a traversal is: a node, the children of it that are left, and those of the nodes above.
struct tree_cursor {
    u32 node = 0;
    i32 level;
    u64 pending = 0;
    u32 left = 0;

    // To the child that is lowest among `left`.
    KILN_HD void down() {
        int const child = lowest_bit(left);
        down_to(child, left & (left - 1));
    }
    KILN_HD void down_to(int child, u32 others) {
        pending |= static_cast<u64>(others) << (8 * (level - 1));
        --level;
        node = node * 8 + 1 + static_cast<u32>(child);
    }
    // To the nearest node above with something left; false where there is none.
    KILN_HD bool up() {
        if (pending == 0) return false;
        do {
            ++level;
            node = (node - 1) >> 3;
            left = static_cast<u32>(pending >> (8 * (level - 1))) & 0xff;
        } while (left == 0);
        pending &= ~(u64{0xff} << (8 * (level - 1)));
        return true;
    }
};

// visit(slot) for every item that is left to a traversal and among the children(node, level) of its leaf. visit returns whether to go
// on, and no more than `nodes` of them are looked at: false where that was the end of it.
template <class Children, class Visit>
KILN_HD bool walk_by(tree const& t, tree_cursor c, u32 nodes, Children children, Visit visit) {
    for (;;) {
        if (c.level == 0) {
            for (; c.left != 0; c.left &= c.left - 1)
                if (!visit((c.node - t.first_leaf) * 8 + static_cast<u32>(lowest_bit(c.left)))) return false;
        }
        if (c.left == 0) {
            if (!c.up()) return true;
        }
        if (c.level > 0) {
            if (nodes-- == 0) return false;
            c.down();
            c.left = children(c.node, c.level);
        }
    }
}
// The same of items whose rounded box meets b.
template <class Visit>
KILN_HD bool walk_on(tree const& t, tree_cursor c, rough_box const& b, u32 nodes, Visit visit) {
    return walk_by(t, c, nodes, [&](u32 node, i32) { return children_met(t.nodes[node], b); }, visit);
}
// The same of everything below a node. `level`: levels between it and the leaves.
template <class Visit>
KILN_HD bool walk_subtree(tree const& t, u32 node, i32 level, rough_box const& b, u32 nodes, Visit visit) {
    if (t.size == 0) return true;
    return walk_on(t, {node, level, 0, children_met(t.nodes[node], b)}, b, nodes, visit);
}
// A traversal of a leaf and of all that come after it.
KILN_HD tree_cursor from_leaf_on(tree const& t, u32 leaf, rough_box const& b) {
    tree_cursor c{leaf, 0, 0, children_met(t.nodes[leaf], b)};
    i32 level = 0;
    for (u32 node = leaf; node != 0; ++level) {
        u32 const behind = 0xfeU << ((node - 1) & 7);
        node = (node - 1) >> 3;
        c.pending |= static_cast<u64>(children_met(t.nodes[node], b) & behind) << (8 * level);
    }
    return c;
}
template <class Visit>
KILN_HD void query_tree(tree const& t, rough_box const& b, Visit visit) {
    walk_subtree(t, 0, t.top, b, ~0U, [&](u32 slot) { return visit(slot), true; });
}
template <class Visit>
KILN_HD bool query_tree_within(tree const& t, rough_box const& b, u32 nodes, Visit visit) {
    return walk_subtree(t, 0, t.top, b, nodes, visit);
}
template <class Visit>
KILN_HD void query_subtree(tree const& t, u32 node, i32 level, rough_box const& b, Visit visit) {
    walk_subtree(t, node, level, b, ~0U, [&](u32 slot) { return visit(slot), true; });
}

// ---- Some slots --------------------------------------------------------------------------------------------------------

// Slots from first to before last.
struct slot_range {
    u32 first, last;

    // Which children of a node have some of them, as bits. Of the nodes of a level, those at depth d begin at (8^d - 1) / 7.
    KILN_HD u32 children_in(tree const& t, u32 node, i32 level) const {
        u32 const begin = (node - first_at(t.top - level)) * 8, low = first >> (3 * level), high = (last - 1) >> (3 * level);
        if (high < begin || low > begin + 7) return 0;
        u32 const from = low > begin ? low - begin : 0, to = high < begin + 7 ? high - begin : 7;
        return (0xffU << from) & (0xffU >> (7 - to));
    }
    // Levels between the leaves and the lowest node that has all of them; and that node.
    KILN_HD i32 level() const {
        i32 out = 0;
        while (above(first, out) != above(last - 1, out)) ++out;
        return out;
    }
    KILN_HD u32 node_at(tree const& t, i32 level) const { return first_at(t.top - level) + above(first, level); }

private:
    // The node of a level that has a slot below it, among those of its level.
    KILN_HD static u32 above(u32 slot, i32 level) { return static_cast<u32>(static_cast<u64>(slot) >> (3 * level + 3)); }
    KILN_HD static u32 first_at(i32 depth) { return 0x9249249U & ((1U << (3 * depth)) - 1); }
};
// visit(slot) for those of them whose rounded box meets b.
template <class Visit>
KILN_HD void query_slots(tree const& t, slot_range const& some, rough_box const& b, Visit visit) {
    if (some.first >= some.last) return;
    auto const children = [&](u32 node, i32 level) { return children_met(t.nodes[node], b) & some.children_in(t, node, level); };
    i32 const level = some.level();
    u32 const node = some.node_at(t, level);
    walk_by(t, {node, level, 0, children(node, level)}, ~0U, children, [&](u32 slot) { return visit(slot), true; });
}

// ---- Nearest -----------------------------------------------------------------------------------------------------------

#ifdef __CUDA_ARCH__
KILN_HD float squared_down(float v) { return __fmul_rd(v, v); }
KILN_HD float add_down(float a, float b) { return __fadd_rd(a, b); }
KILN_HD float sub_down(float a, float b) { return __fsub_rd(a, b); }
KILN_HD float larger(float a, float b) { return fmaxf(a, b); }
#else
KILN_HD float squared_down(float v) { return round_down(static_cast<double>(v) * v); }
KILN_HD float add_down(float a, float b) { return round_down(static_cast<double>(a) + b); }
KILN_HD float sub_down(float a, float b) { return round_down(static_cast<double>(a) - b); }
KILN_HD float larger(float a, float b) { return a > b ? a : b; }
#endif
KILN_HD float gap(float low, float high, float from, float to) {
    return larger(larger(sub_down(low, to), sub_down(from, high)), 0.0F);
}
// A lower bound of the squared distance between two boxes.
KILN_HD float least_square(rough_box const& a, rough_box const& b) {
    return add_down(squared_down(gap(a.min_x, a.max_x, b.min_x, b.max_x)), squared_down(gap(a.min_y, a.max_y, b.min_y, b.max_y)));
}

// As a float that is no less; infinity is for empty children, which no bound lets in.
KILN_HD float bound_of(double most) {
    float const far = 3.4028234663852886e38F, up = round_up(most);
    return up < far ? up : far;
}
// Visits items in about the order of their distance from the box: measure(slot, most) returns the squared distance beyond which
// nothing more is wanted. What lies at exactly that distance is visited too, so ties are not lost.
template <class Measure>
KILN_HD void nearest_in_tree(tree const& t, rough_box const& b, double most, Measure measure) {
    if (t.size == 0) return;
    tree_cursor c{0, t.top, 0, 0xff};
    float bound = bound_of(most);
    for (;;) {
        tree_node const& n = t.nodes[c.node];
        // Nearest child first; the others wait if they still can win.
        int best = -1;
        u32 others = 0;
        float best_square = nothing_met().min_x;  // infinity
        KILN_UNROLL
        for (int half = 0; half < 2; ++half) {
            four_children const four = half_of(n, half);
            KILN_UNROLL
            for (int k = 0; k < 4; ++k) {
                int const i = 4 * half + k;
                float const square = least_square({four.min_x.v[k], four.min_y.v[k], four.max_x.v[k], four.max_y.v[k]}, b);
                if ((c.left >> i & 1) == 0 || !(square <= bound)) continue;
                others |= 1U << i;
                if (square < best_square) best = i, best_square = square;
            }
        }
        if (best >= 0) {
            others &= ~(1U << best);
            if (c.level > 0) {
                c.down_to(best, others);
                c.left = 0xff;
                continue;
            }
            // Of a leaf the rest as they come, if they still can win.
            for (;;) {
                most = measure((c.node - t.first_leaf) * 8 + static_cast<u32>(best), most);
                bound = bound_of(most);
                while (others != 0 && !(least_square(child_of(n, static_cast<u32>(lowest_bit(others))), b) <= bound)) others &= others - 1;
                if (others == 0) break;
                best = lowest_bit(others), others &= others - 1;
            }
        }
        if (!c.up()) return;
    }
}

}  // namespace kiln_spatial
