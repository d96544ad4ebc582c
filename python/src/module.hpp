// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, one file each.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace kiln::python {

// Text of Kiln's for a person. Names of files and what compilers say need not be UTF-8, and an event ends where its room does.
[[nodiscard]] inline nanobind::object text_of(std::string_view from) {
    auto* const made = PyUnicode_DecodeUTF8(from.data(), static_cast<Py_ssize_t>(from.size()), "replace");
    if (made == nullptr) throw nanobind::python_error();
    return nanobind::steal(made);
}

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
