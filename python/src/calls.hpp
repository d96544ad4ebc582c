// SPDX-License-Identifier: Apache-2.0
// Calls that must cost little: an object's call arrives here as the interpreter makes it, without another lookup and another
// reading of the arguments in between. Names, order and defaults are those of a Python function: `def f(x, y=None, *, out=None)`.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <exception>
#include <string>
#include <string_view>

namespace kiln::python {

namespace nb = nanobind;

// Sets Python's error from the exception in flight. Inside a catch block.
void raise_current() noexcept;

template <std::size_t Count>
struct signature {
    char const* function;
    std::array<char const*, Count> names;
    std::size_t required;    // of them must be there
    std::size_t positional;  // of them may come without their name

    using arguments = std::array<nb::handle, Count>;  // None where nothing came

    // TypeError for what fits no parameter.
    [[nodiscard]] arguments read(PyObject* given, PyObject* named) const {
        arguments out;
        auto const n = static_cast<std::size_t>(PyTuple_Size(given));
        if (n > positional)
            complain("takes " + std::to_string(positional) + " positional arguments, " + std::to_string(n) + " came");
        for (std::size_t i = 0; i < n; ++i) out[i] = PyTuple_GetItem(given, static_cast<Py_ssize_t>(i));
        if (named != nullptr) {
            PyObject *key = nullptr, *value = nullptr;
            for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &value) != 0;) take(out, key, value);
        }
        for (std::size_t i = 0; i < Count; ++i) {
            if (out[i].is_valid()) continue;
            if (i < required) complain(std::string{"is missing its argument '"} + names[i] + "'");
            out[i] = Py_None;
        }
        return out;
    }

private:
    void take(arguments& out, PyObject* key, PyObject* value) const {
        for (std::size_t i = 0; i < Count; ++i) {
            if (PyUnicode_CompareWithASCIIString(key, names[i]) != 0) continue;
            if (out[i].is_valid()) complain(std::string{"got two values for its argument '"} + names[i] + "'");
            out[i] = value;
            return;
        }
        complain("has no argument " + nb::cast<std::string>(nb::repr(key)));
    }
    [[noreturn]] void complain(std::string const& what) const { throw nb::type_error((std::string{function} + "() " + what).c_str()); }
};

// tp_call of a bound class T: `Run(T const&, signature::arguments)` gives what the call returns.
template <class T, auto const& Signature, auto Run>
PyObject* called(PyObject* self, PyObject* given, PyObject* named) noexcept {
    try {
        return Run(*nb::inst_ptr<T>(nb::handle{self}), Signature.read(given, named)).release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

}  // namespace kiln::python
