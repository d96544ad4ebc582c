// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, one file each.
#pragma once

#include <nanobind/nanobind.h>

namespace kiln::python {

void bind_errors(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_prims(nanobind::module_& m);
void bind_tropical(nanobind::module_& m);
void bind_warmup(nanobind::module_& m);
void bind_views(nanobind::module_& m);
void bind_device_array(nanobind::module_& m);
void bind_geometries(nanobind::module_& m);
void bind_spatial(nanobind::module_& m);

}  // namespace kiln::python
