// SPDX-License-Identifier: Apache-2.0
// Helpers around kiln::result for Kiln's own sources: fail(), KILN_TRY, KILN_ASSERT.
#pragma once

#include <kiln/result.hpp>

#include <fmt/format.h>

namespace kiln {

// Makes an error from a format string: return fail(errc::io, "{}: {}", path, why);
template <class... Args>
[[nodiscard]] error fail(errc code, fmt::format_string<Args...> format, Args&&... args) {
    return error{code, fmt::format(format, std::forward<Args>(args)...)};
}

// errc::io with "what: strerror(number)" and the number as status.
[[nodiscard]] error io_error(std::string_view what, int number);

namespace base {
[[noreturn]] void assertion_failed(char const* expression, char const* file, int line) noexcept;
}

}  // namespace kiln

#define KILN_CONCAT_(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_(a, b)

// KILN_TRY(auto x, expression): x = *expression, or return its error from this function.
#define KILN_TRY(declaration, expression) KILN_TRY_(declaration, expression, KILN_CONCAT(kiln_try_, __LINE__))
#define KILN_TRY_(declaration, expression, name) \
    auto name = (expression);                    \
    if (!name) return std::move(name).error();   \
    declaration = *std::move(name)

// KILN_CHECK(expression): for result<void>.
#define KILN_CHECK(expression)                                                                 \
    do {                                                                                       \
        if (auto kiln_check = (expression); !kiln_check) return std::move(kiln_check).error(); \
    } while (false)

// For Kiln's own bugs; stays on in release builds.
#define KILN_ASSERT(expression) \
    ((expression) ? static_cast<void>(0) : ::kiln::base::assertion_failed(#expression, __FILE__, __LINE__))
