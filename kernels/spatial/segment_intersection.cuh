// SPDX-License-Identifier: Apache-2.0
// Kernels of segment_contacts.cuh.
#pragma once

#include "segment_contacts.cuh"

KILN_KERNEL(element_vertex_keys, kiln_spatial::element_keys_by_vertex, 256, 1)
KILN_KERNEL(element_count, kiln_spatial::count_elements, 256, 1)
KILN_KERNEL(element_list_keys, kiln_spatial::element_keys_in_list, 256, 1)
KILN_KERNEL(element_leaf_nodes, kiln_spatial::element_leaves, 256, 1)
KILN_KERNEL(contact_count, kiln_spatial::count_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::contact_question>>, 128, 9)
KILN_KERNEL(contact_scatter, kiln_spatial::list_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::contact_question>>, 128, 9)
KILN_KERNEL(contact_count_heavy, kiln_spatial::count_heavy_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::contact_question>>, 128, 1)
KILN_KERNEL(contact_scatter_heavy, kiln_spatial::list_heavy_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::contact_question>>, 128, 1)
KILN_KERNEL(contact_count_each, kiln_spatial::count_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::contact_question>>, 128, 9)
KILN_KERNEL(contact_scatter_each, kiln_spatial::list_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::contact_question>>, 128, 9)
KILN_KERNEL(contact_count_heavy_each, kiln_spatial::count_heavy_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::contact_question>>, 128, 1)
KILN_KERNEL(contact_scatter_heavy_each, kiln_spatial::list_heavy_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::contact_question>>, 128, 1)
KILN_KERNEL(element_order, kiln_spatial::elements_in_order, 256, 1)
KILN_KERNEL(element_list_leaf_nodes, kiln_spatial::listed_element_leaves, 256, 1)
KILN_KERNEL(contact_exact, kiln_spatial::decide_contacts<kiln_spatial::contact_question>, 128, 1)
KILN_KERNEL(crossing_points, kiln_spatial::place_contacts, 128, 4)
KILN_KERNEL(contact_keys, kiln_spatial::list_contact_keys, 256, 1)
KILN_KERNEL(contact_element_keys, kiln_spatial::element_keys, 256, 1)
KILN_KERNEL(contact_row_pairs, kiln_spatial::contact_rows, 256, 1)
