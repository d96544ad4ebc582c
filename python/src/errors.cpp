// SPDX-License-Identifier: Apache-2.0
// kiln::error becomes the Python exception of its code.
#include "calls.hpp"
#include "module.hpp"

#include <kiln/result.hpp>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <typeinfo>

namespace kiln::python {

namespace {

constexpr char not_of_its_type[] = "something inside of an argument is of another type than it must be";
constexpr errc last = errc::internal;

void raise(error const& e) {
    namespace nb = nanobind;
    nb::object const made = nb::module_::import_("kiln._errors").attr("make")(std::string{name_of(e.code())}, text_of(e.message()), e.status(), text_of(e.log()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

}  // namespace

void raise_current() noexcept {
    namespace nb = nanobind;
    try {
        try {
            throw;
        } catch (nb::python_error& e) {
            e.restore();
        } catch (nb::builtin_exception const& e) {
            PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, e.what());
        } catch (error const& e) {
            raise(e);
        } catch (std::bad_alloc const&) {
            PyErr_NoMemory();
        } catch (std::bad_cast const&) {
            PyErr_SetString(PyExc_TypeError, not_of_its_type);
        }
    } catch (std::exception const& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
}

void bind_errors(nanobind::module_& m) {
    nanobind::register_exception_translator(
        [](std::exception_ptr const& thrown, void*) {
            try {
                std::rethrow_exception(thrown);
            } catch (error const& e) {
                raise(e);
            } catch (std::bad_cast const&) {
                PyErr_SetString(PyExc_TypeError, not_of_its_type);
            }
        });
    m.def("error_codes", [] {
        std::vector<std::string> out;
        for (int i = 0; i <= static_cast<int>(last); ++i) out.emplace_back(name_of(static_cast<errc>(i)));
        return out;
    });
}

}  // namespace kiln::python
