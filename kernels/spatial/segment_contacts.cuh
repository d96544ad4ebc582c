// SPDX-License-Identifier: Apache-2.0
// Contacts of the elements of two layers. A box tree over the right one is asked by the elements of the left; filters throw out
// what is certainly apart and mark what certainly crosses; the rest is classified exactly by a kernel of its own. Elements that
// have to look at much are put off, as in spatial_index.cuh.
#pragma once

#include "grid.cuh"
#include "layer.cuh"
#include "segment_filter.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// ---- The tree over elements --------------------------------------------------------------------------------------------

KILN_HD segment element_at(layer const& l, i32 v) { return {l.at[v], element_end(l, v)}; }

// Every vertex with the key of its element; those that are none come last.
struct element_keys_by_vertex {
    layer l;
    u64 const* around;
    i32* key;
    i32* vertex;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u32 const k = is_element(l, v) ? box_key(frame_of_extent(around), box_of(element_at(l, v))) : ~0U;
        key[i] = static_cast<i32>(k ^ 0x80000000U), vertex[i] = v;
    }
};
// Where many vertices are no elements, those that are.
struct count_elements {
    layer l;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = is_element(l, static_cast<i32>(i)) ? 1 : 0; }
};
struct element_keys_in_list {
    layer l;
    u64 const* around;
    i64 const* place;  // summed counts
    i32* key;
    i32* number;  // in the list
    i32* vertex;
    segment* elements;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] == at) return;
        i32 const v = static_cast<i32>(i);
        segment const s = element_at(l, v);
        elements[at] = s, vertex[at] = v, number[at] = static_cast<i32>(at);
        key[at] = static_cast<i32>(box_key(frame_of_extent(around), box_of(s)) ^ 0x80000000U);
    }
};
// Numbers in a list that were sorted become vertices, with their elements beside them.
struct elements_in_order {
    segment const* elements;
    i32 const* vertex;
    i32* number;
    segment* in_order;
    KILN_HD void operator()(u64 i) const {
        i32 const k = number[i];
        in_order[i] = elements[k], number[i] = vertex[k];
    }
};
// One item per child, as make_leaves of spatial_index.cuh; and the elements in the order of the leaves.
struct listed_element_leaves {
    elements_in_order from;
    tree_node* nodes;
    u64 items;
    u64 const* around;
    KILN_HD void operator()(u64 i) const {
        if (i < items) from(i);
        set_child(nodes[i >> 3], i & 7, i < items ? outwards_from(around, box_of(from.in_order[i])) : nothing_met());
    }
};
struct element_leaves {
    layer l;
    tree_node* nodes;
    i32 const* item;
    u64 items;
    segment* in_order;
    u64 const* around;
    KILN_HD void operator()(u64 i) const {
        rough_box b = nothing_met();
        if (i < items) {
            i32 const v = item[i];
            segment const s = element_at(l, v);
            in_order[i] = s;
            if (is_element(l, v)) b = outwards_from(around, box_of(s));
        }
        set_child(nodes[i >> 3], i & 7, b);
    }
};

// ---- Contacts ----------------------------------------------------------------------------------------------------------

enum class rows_wanted : int {
    all,   // every pair of rows
    same,  // the two of one number
};

enum : u32 { most_light_contact_nodes = 192, hits_kept = 8 };

// Neighbouring vertices ask together: along a path their elements are neighbours too, and what one of them has to look at the
// others have as well. Only their rounded boxes are held; those of what is no element meet nothing.
template <int Size>
struct element_group {
    i32 first;
    u32 segments;  // bits: has a length
    rough_box own[Size], reach;

    // Members whose boxes meet that of a leaf's child.
    KILN_HD u32 near(tree const& t, u32 slot) const {
        rough_box const child = child_of(t.nodes[t.first_leaf + (slot >> 3)], slot & 7);
        u32 out = 0;
        KILN_UNROLL
        for (int k = 0; k < Size; ++k) {
            rough_box const& b = own[k];
            bool const meets =
                b.min_x <= child.max_x && b.min_y <= child.max_y && b.max_x >= child.min_x && b.max_y >= child.min_y;
            out |= static_cast<u32>(meets) << k;
        }
        return out;
    }
};

struct contact_question {
    layer a;  // asks
    layer b;
    tree t;
    segment const* elements;  // of b, in the order of the leaves
    rows_wanted rows;

    KILN_HD bool may_meet(i32 v, u32 slot) const {
        return rows == rows_wanted::all || row_at(a, v) == row_at(b, static_cast<i32>(t.item[slot]));
    }
    // What is not `apart` is listed, what is not_known decided by a kernel of its own.
    KILN_HD static u8 quick(point p, point q, point r, point s) { return quick_contact(p, q, r, s); }
    KILN_HD static u8 exact(point p, point q, point r, point s) { return static_cast<u8>(contact_of(p, q, r, s)); }
};

// Who asks: all vertices in pairs as they come, or elements one by one in an order where neighbours are together.
template <class Question>
struct asking_in_pairs {
    Question q;
    using group = element_group<2>;

    KILN_HD group at(u64 i) const {
        group g{};
        g.first = first(i);
        g.reach = nothing_met();
        KILN_UNROLL
        for (int k = 0; k < 2; ++k) {
            i32 const v = g.first + k;
            g.own[k] = nothing_met();
            if (v >= q.a.vertices || !is_element(q.a, v)) continue;
            bool const has_length = is_segment(q.a, v);
            if (has_length) g.segments |= 1U << k;
            g.own[k] = q.t.rough(box_of({q.a.at[v], q.a.at[has_length ? v + 1 : v]}));
            g.reach = around(g.reach, g.own[k]);
        }
        return g;
    }
    KILN_HD i32 first(u64 i) const { return static_cast<i32>(2 * i); }
    // Where what the i-th finds is counted.
    KILN_HD u64 home(u64 i) const { return i; }
    static constexpr bool in_order = false;

    // found(k, how) for every member of the group that is not apart from the element of a leaf.
    template <class Found>
    KILN_HD void contacts(group const& g, u32 slot, Found found) const {
        for (u32 near = g.near(q.t, slot); near != 0; near &= near - 1) {
            int const k = lowest_bit(near);
            i32 const v = g.first + k;
            if (!q.may_meet(v, slot)) continue;
            segment const s = q.elements[slot];
            u8 const how = Question::quick(q.a.at[v], q.a.at[(g.segments >> k & 1) != 0 ? v + 1 : v], s.a, s.b);
            if (how != apart) found(k, how);
        }
    }
};
template <class Question>
struct asking_one_by_one {
    Question q;
    i32 const* order;
    segment const* asked;  // in that order
    struct group {
        i32 first;
        segment own;
        rough_box reach;
    };

    KILN_HD group at(u64 i) const { return {order[i], asked[i], q.t.rough(box_of(asked[i]))}; }
    KILN_HD i32 first(u64 i) const { return order[i]; }
    // By vertex, so that what is found is listed in the order of those.
    KILN_HD u64 home(u64 i) const { return static_cast<u64>(order[i]); }
    static constexpr bool in_order = true;

    template <class Found>
    KILN_HD void contacts(group const& g, u32 slot, Found found) const {
        if (!q.may_meet(g.first, slot)) return;
        segment const s = q.elements[slot];
        u8 const how = Question::quick(g.own.a, g.own.b, s.a, s.b);
        if (how != apart) found(0, how);
    }
};

// The first hits of a group are kept, so that few have to look for them again: leaf, member and whether it crosses in one number.
struct kept_hits {
    u64* hits;  // hits_kept times as many as groups
    u64 groups;
    KILN_HD void keep(u64 group, u32 n, u32 slot, int member, u8 how) const {
        hits[n * groups + group] = static_cast<u64>(slot) << 8 | static_cast<u64>(member) << 4 | how;
    }
    KILN_HD static u32 slot(u64 hit) { return static_cast<u32>(hit >> 8); }
    KILN_HD static i32 member(u64 hit) { return static_cast<i32>(hit >> 4 & 15); }
    KILN_HD static u8 how(u64 hit) { return static_cast<u8>(hit & 15); }
};

template <class Asking>
struct count_contacts {
    Asking who;
    kept_hits kept;
    i64* count;  // at home
    u32* heavy;
    u32* heavies;
    KILN_HD void operator()(u64 i) const {
        auto const g = who.at(i);
        u32 hits = 0;
        bool put_off = false;
        if (g.reach.min_x <= g.reach.max_x) {
            put_off = !query_tree_within(who.q.t, g.reach, most_light_contact_nodes, [&](u32 slot) {
                who.contacts(g, slot, [&](int member, u8 how) {
                    if (hits < hits_kept) kept.keep(i, hits, slot, member, how);
                    ++hits;
                });
                return true;
            });
        }
        count[who.home(i)] = put_off ? 0 : static_cast<i64>(hits);
        append(put_off, static_cast<u32>(i), heavy, heavies);
    }
};

struct contact_list {
    i32* left;   // elements
    i32* right;
    u8* how;
    KILN_HD void put(u64 at, i32 v, i32 w, u8 contact) const { left[at] = v, right[at] = w, how[at] = contact; }
    // The same where first to at - 1 are of v and in order.
    KILN_HD void insert(u64 first, u64 at, i32 v, i32 w, u8 contact) const {
        for (; at > first && right[at - 1] > w; --at) put(at, v, right[at - 1], how[at - 1]);
        put(at, v, w, contact);
    }
};
template <class Asking>
struct list_contacts {
    Asking who;
    kept_hits kept;
    i64 const* place;  // summed counts
    contact_list to;
    KILN_HD void operator()(u64 i) const {
        u64 const first = static_cast<u64>(place[who.home(i)]), count = static_cast<u64>(place[who.home(i) + 1]) - first;
        if (count == 0) return;
        if (count > hits_kept) return again(i, first);
        for (u64 k = 0; k < count; ++k) {
            u64 const hit = kept.hits[k * kept.groups + i];
            put(first, first + k, who.first(i) + kept.member(hit), kept.slot(hit), kept.how(hit));
        }
    }

private:
    KILN_HD void again(u64 i, u64 first) const {
        auto const g = who.at(i);
        u64 at = first;
        query_tree(who.q.t, g.reach, [&](u32 slot) {
            who.contacts(g, slot, [&](int member, u8 how) { put(first, at++, g.first + member, slot, how); });
        });
    }
    KILN_HD void put(u64 first, u64 at, i32 v, u32 slot, u8 how) const {
        i32 const w = static_cast<i32>(who.q.t.item[slot]);
        if (Asking::in_order) to.insert(first, at, v, w, how);
        else to.put(at, v, w, how);
    }
};

// Every group that was put off, against every subtree below one level.
template <class Asking>
struct heavy_contacts {
    Asking who;
    u32 const* heavy;
    u32 first_node, nodes;
    i32 level;

    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        auto const g = who.at(heavy[i / nodes]);
        query_subtree(who.q.t, first_node + static_cast<u32>(i % nodes), level, g.reach, [&](u32 slot) {
            who.contacts(g, slot, [&](int member, u8 how) { found(g.first + member, static_cast<i32>(who.q.t.item[slot]), how); });
        });
    }
};
template <class Asking>
struct count_heavy_contacts {
    heavy_contacts<Asking> h;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        h.each(i, [&](i32, i32, u8) { ++n; });
        count[i] = n;
    }
};
template <class Asking>
struct list_heavy_contacts {
    heavy_contacts<Asking> h;
    i64 const* place;
    contact_list to;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        h.each(i, [&](i32 v, i32 w, u8 how) { to.put(at++, v, w, how); });
    }
};

// What is not known becomes known, and may be `apart`.
template <class Question>
struct decide_contacts {
    layer a, b;
    contact_list of;
    u64* aparts;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (of.how[i] != not_known) return;
        i32 const v = of.left[i], w = of.right[i];
        of.how[i] = Question::exact(a.at[v], element_end(a, v), b.at[w], element_end(b, w));
        if (of.how[i] == apart) add_to(aparts, 1);
    }
};
// Contacts in the order of their elements, without those that turned out to be none; then their rows and points.
struct element_keys {
    contact_list of;
    u64* key;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        key[i] = of.how[i] == apart ? ~u64{0} : static_cast<u64>(static_cast<u32>(of.left[i])) << 32 | static_cast<u32>(of.right[i]);
        number[i] = static_cast<i32>(i);
    }
};
struct contact_rows {
    layer a, b;
    contact_list of;
    i32 const* number;  // null: as they are
    i32* left;
    i32* right;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        u64 const k = number != nullptr ? static_cast<u64>(number[i]) : i;
        left[i] = row_at(a, of.left[k]), right[i] = row_at(b, of.right[k]), kind[i] = of.how[k];
    }
};
// row of a << bits | row of b of those that are not apart, in no order. Contacts that follow each other are often of the same rows.
struct list_contact_keys {
    layer a, b;
    contact_list of;
    i32 bits;
    u64* list;
    u32* listed;
    KILN_HD void operator()(u64 i) const {
        u64 const k = key(i);
        append(k != ~u64{0} && (i == 0 || key(i - 1) != k), k, list, listed);
    }

private:
    KILN_HD u64 key(u64 i) const {
        if (of.how[i] == apart) return ~u64{0};
        return static_cast<u64>(row_at(a, of.left[i])) << bits | static_cast<u64>(row_at(b, of.right[i]));
    }
};
KILN_HD_COLD point touching_point(point a, point b, point c, point d) {
    if (on_segment(a, b, c)) return c;
    if (on_segment(a, b, d)) return d;
    return on_segment(c, d, a) ? a : b;
}
// Of those that meet in one point; the others get NaN.
struct place_contacts {
    layer a, b;
    contact_list of;
    i32 const* number;
    double* x;
    double* y;
    KILN_HD void operator()(u64 k) const {
        u64 const i = number != nullptr ? static_cast<u64>(number[k]) : k;
        i32 const v = of.left[i], w = of.right[i];
        point const a0 = a.at[v], a1 = element_end(a, v), b0 = b.at[w], b1 = element_end(b, w);
        double const nan = from_bits(~u64{0});
        point p{nan, nan};
        if (of.how[i] == crossing) p = crossing_point(a0, a1, b0, b1);
        if (of.how[i] == touching) p = touching_point(a0, a1, b0, b1);
        x[k] = p.x, y[k] = p.y;
    }
};

}  // namespace kiln_spatial
