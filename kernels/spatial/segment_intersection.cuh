// SPDX-License-Identifier: Apache-2.0
// Contacts of the elements of two layers. A box tree over the right one is asked by the elements of the left; filters throw out
// what is certainly apart and mark what certainly crosses; the rest is classified exactly by a kernel of its own. Elements that
// have to look at much are put off, as in spatial_index.cuh.
#pragma once

#include "grid.cuh"
#include "layer.cuh"
#include "tree.cuh"

namespace kiln_spatial {

enum : u8 { not_known = 4 };

// The box of every vertex that is an element; turned round for the others.
struct element_boxes {
    layer l;
    box* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        double const far = from_bits(u64{0x7ff} << 52);
        if (!is_element(l, v)) {
            to[i] = {far, far, -far, -far};
            return;
        }
        point const a = l.at[v], b = element_end(l, v);
        to[i] = {least(a.x, b.x), least(a.y, b.y), most(a.x, b.x), most(a.y, b.y)};
    }
};

// Where many vertices are no elements, those that are: counted, listed, and named by their vertex again in a tree over the list.
struct count_elements {
    layer l;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = is_element(l, static_cast<i32>(i)) ? 1 : 0; }
};
struct list_elements {
    layer l;
    i64 const* place;
    box const* boxes;
    i32* vertex;
    box* to;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] != at) vertex[at] = static_cast<i32>(i), to[at] = boxes[i];
    }
};
struct name_elements {
    i32 const* vertex;
    i32* item;
    KILN_HD void operator()(u64 i) const { item[i] = vertex[item[i]]; }
};
// Elements in the order of a tree's leaves.
struct elements_in_order {
    layer l;
    u32 const* item;
    segment* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(item[i]);
        to[i] = {l.at[v], element_end(l, v)};
    }
};

// `apart`, `crossing` or not_known.
KILN_HD u8 quick_contact(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return apart;
    guess const c_side = orient_filter(a, b, c), d_side = orient_filter(a, b, d);
    bool const cd_sure = c_side.certain && d_side.certain;
    if (cd_sure && c_side.side * d_side.side > 0) return apart;
    guess const a_side = orient_filter(c, d, a), b_side = orient_filter(c, d, b);
    bool const ab_sure = a_side.certain && b_side.certain;
    if (ab_sure && a_side.side * b_side.side > 0) return apart;
    bool const crosses = cd_sure && ab_sure && c_side.side * d_side.side < 0 && a_side.side * b_side.side < 0;
    return crosses ? u8{crossing} : u8{not_known};
}

enum class rows_wanted : int {
    all,    // every pair of rows
    same,   // the two of one number
    other,  // of a layer with itself: the elements of one row, each pair of them once, in the order of their numbers
};

struct contact_question {
    layer a;  // asks
    layer b;
    tree t;
    segment const* elements;  // of b, in the order of the leaves
    rows_wanted rows;
    i32 const* order;  // to ask in; null: as they are

    KILN_HD i32 number(u64 i) const { return order != nullptr ? order[i] : static_cast<i32>(i); }

    KILN_HD rough_box reach(segment const& s) const {
        return outwards({least(s.a.x, s.b.x), least(s.a.y, s.b.y), most(s.a.x, s.b.x), most(s.a.y, s.b.y)});
    }
    KILN_HD u8 contact(i32 v, segment const& s, u32 slot) const {
        if (rows != rows_wanted::all) {
            i32 const other = static_cast<i32>(t.item[slot]);
            if (row_at(a, v) != row_at(b, other)) return apart;
            if (rows == rows_wanted::other && other <= v) return apart;
        }
        return quick_contact(s.a, s.b, elements[slot].a, elements[slot].b);
    }
};

enum : u32 { most_light_contact_nodes = 96 };

struct count_contacts {
    contact_question q;
    i64* count;
    u32* heavy;
    u32* heavies;
    KILN_HD void operator()(u64 k) const {
        i32 const v = q.number(k);
        u32 hits = 0;
        bool put_off = false;
        if (is_element(q.a, v)) {
            segment const s{q.a.at[v], element_end(q.a, v)};
            put_off = !query_tree_within(q.t, q.reach(s), most_light_contact_nodes, [&](u32 slot) {
                hits += q.contact(v, s, slot) != apart ? 1U : 0U;
                return true;
            });
        }
        count[v] = put_off ? 0 : static_cast<i64>(hits);
        append(put_off, static_cast<u32>(v), heavy, heavies);
    }
};

struct contact_list {
    i32* left;   // elements
    i32* right;
    u8* how;
};
struct list_contacts {
    contact_question q;
    i64 const* place;  // summed counts
    contact_list to;
    KILN_HD void operator()(u64 k) const {
        i32 const v = q.number(k);
        u64 at = static_cast<u64>(place[v]);
        if (static_cast<u64>(place[v + 1]) == at) return;
        segment const s{q.a.at[v], element_end(q.a, v)};
        query_tree(q.t, q.reach(s), [&](u32 slot) {
            u8 const how = q.contact(v, s, slot);
            if (how != apart) to.left[at] = v, to.right[at] = static_cast<i32>(q.t.item[slot]), to.how[at++] = how;
        });
    }
};

// Every element that was put off, against every subtree below one level.
struct heavy_contacts {
    contact_question q;
    u32 const* heavy;
    u32 first_node, nodes;
    i32 level;

    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        i32 const v = static_cast<i32>(heavy[i / nodes]);
        segment const s{q.a.at[v], element_end(q.a, v)};
        query_subtree(q.t, first_node + static_cast<u32>(i % nodes), level, q.reach(s), [&](u32 slot) {
            u8 const how = q.contact(v, s, slot);
            if (how != apart) found(v, static_cast<i32>(q.t.item[slot]), how);
        });
    }
};
struct count_heavy_contacts {
    heavy_contacts h;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        h.each(i, [&](i32, i32, u8) { ++n; });
        count[i] = n;
    }
};
struct list_heavy_contacts {
    heavy_contacts h;
    i64 const* place;
    contact_list to;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        h.each(i, [&](i32 v, i32 w, u8 how) { to.left[at] = v, to.right[at] = w, to.how[at++] = how; });
    }
};

// What is not known becomes apart, touching, crossing or overlapping.
struct decide_contacts {
    layer a, b;
    contact_list of;
    KILN_HD void operator()(u64 i) const {
        if (of.how[i] != not_known) return;
        i32 const v = of.left[i], w = of.right[i];
        of.how[i] = static_cast<u8>(contact_of(a.at[v], element_end(a, v), b.at[w], element_end(b, w)));
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
struct count_real_contacts {
    u64 const* key;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = key[i] != ~u64{0} ? 1 : 0; }
};
struct contact_rows {
    layer a, b;
    contact_list of;
    i32 const* number;
    i32* left;
    i32* right;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        i32 const k = number[i];
        left[i] = row_at(a, of.left[k]), right[i] = row_at(b, of.right[k]), kind[i] = of.how[k];
    }
};
// row of a << bits | row of b; `none` where they are apart.
struct make_contact_keys {
    layer a, b;
    contact_list of;
    i32 bits;
    u64 none;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        key[i] = of.how[i] == apart ? none
                                    : static_cast<u64>(row_at(a, of.left[i])) << bits | static_cast<u64>(row_at(b, of.right[i]));
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
        i32 const i = number[k], v = of.left[i], w = of.right[i];
        point const a0 = a.at[v], a1 = element_end(a, v), b0 = b.at[w], b1 = element_end(b, w);
        double const nan = from_bits(~u64{0});
        point p{nan, nan};
        if (of.how[i] == crossing) p = crossing_point(a0, a1, b0, b1);
        if (of.how[i] == touching) p = touching_point(a0, a1, b0, b1);
        x[k] = p.x, y[k] = p.y;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(contact_boxes, kiln_spatial::element_boxes, 256, 1)
KILN_KERNEL(contact_elements, kiln_spatial::elements_in_order, 256, 1)
KILN_KERNEL(contact_count, kiln_spatial::count_contacts, 128, 9)
KILN_KERNEL(contact_scatter, kiln_spatial::list_contacts, 128, 9)
KILN_KERNEL(contact_count_heavy, kiln_spatial::count_heavy_contacts, 128, 1)
KILN_KERNEL(contact_scatter_heavy, kiln_spatial::list_heavy_contacts, 128, 1)
KILN_KERNEL(contact_exact, kiln_spatial::decide_contacts, 128, 1)
KILN_KERNEL(crossing_points, kiln_spatial::place_contacts, 128, 4)
KILN_KERNEL(contact_keys, kiln_spatial::make_contact_keys, 256, 1)
KILN_KERNEL(contact_element_keys, kiln_spatial::element_keys, 256, 1)
KILN_KERNEL(contact_real_count, kiln_spatial::count_real_contacts, 256, 1)
KILN_KERNEL(contact_row_pairs, kiln_spatial::contact_rows, 256, 1)
KILN_KERNEL(contact_element_count, kiln_spatial::count_elements, 256, 1)
KILN_KERNEL(contact_element_list, kiln_spatial::list_elements, 256, 1)
KILN_KERNEL(contact_element_names, kiln_spatial::name_elements, 256, 1)
