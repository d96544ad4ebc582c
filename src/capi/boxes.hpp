// SPDX-License-Identifier: Apache-2.0
// What the opaque types of kiln.h hold, and what every function of it needs: structs of older and newer callers, errors as
// objects, and that no exception gets out.
#pragma once

#include "base/caught.hpp"

#include <kiln/demand.hpp>
#include <kiln/engine.hpp>
#include <kiln/kiln.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <variant>

struct kiln_error {
    kiln::error why;
};
struct kiln_engine {
    kiln::engine engine;
};
struct kiln_artifact {
    kiln::obtained got;
    std::string arch;
};
struct kiln_stream {
    kiln::stream stream;
};
struct kiln_memory {
    kiln::device_memory memory;
};
struct kiln_loaded {
    kiln::ready_unit unit;
};
struct kiln_kernel {
    kiln::untyped_kernel kernel;
    std::string name;
};
struct kiln_variable {
    kiln::device_variable variable;
};
struct kiln_pending {
    std::variant<kiln::pending<kiln::obtained>, kiln::pending<kiln::ready_unit>> answer;
};
struct kiln_demanded {
    kiln::demanded what;
};

namespace kiln::capi {

// Never null: where there is no memory for an error there is one in advance.
[[nodiscard]] kiln_error* boxed(error why) noexcept;

// Calls `f`, which returns result<void>.
template <class F>
[[nodiscard]] kiln_error* guarded(F&& f) noexcept {
    try {
        result<void> done = f();
        return done ? nullptr : boxed(std::move(done).error());
    } catch (...) {
        return boxed(base::caught_error());
    }
}

[[nodiscard]] inline engine& engine_of(kiln_engine* given) {
    return given == nullptr ? engine::process() : given->engine;
}

[[nodiscard]] inline result<void> not_null(void const* given, std::string_view what) {
    if (given == nullptr) return fail(errc::invalid_argument, "{} is NULL", what);
    return {};
}
[[nodiscard]] inline std::string text_or_empty(char const* text) { return text == nullptr ? std::string{} : text; }

// A struct of a caller who may know less or more of it than this library: what it does not have is zero, and what this library
// does not know must be.
template <class T>
[[nodiscard]] result<T> read_struct(T const* given, std::string_view name) {
    KILN_CHECK(not_null(given, name));
    std::size_t size = 0;
    std::memcpy(&size, given, sizeof size);
    // No version ends within a field.
    if (size < sizeof size || size % alignof(T) != 0)
        return fail(errc::invalid_argument, "{}: its size is not set; begin with KILN_..._INIT", name);
    auto const* const bytes = reinterpret_cast<unsigned char const*>(given);
    if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char b) { return b != 0; }))
        return fail(errc::unsupported, "{}: uses a field that this version of Kiln does not know", name);
    T out{};
    std::memcpy(&out, given, std::min(size, sizeof(T)));
    out.size = sizeof(T);
    return out;
}
// The other way: as much as the caller has room for, whose size stays.
template <class T>
[[nodiscard]] result<void> write_struct(T value, T* to, std::string_view name) {
    KILN_CHECK(not_null(to, name));
    std::size_t size = 0;
    std::memcpy(&size, to, sizeof size);
    if (size < sizeof size || size % alignof(T) != 0)
        return fail(errc::invalid_argument, "{}: its size is not set; begin with KILN_..._INIT", name);
    value.size = size;
    std::memcpy(to, &value, std::min(size, sizeof(T)));
    return {};
}

[[nodiscard]] result<std::vector<std::string>> read_texts(char const* const* texts, std::size_t count,
                                                          std::string_view what);
[[nodiscard]] result<unit> read_unit(kiln_unit const* given);
[[nodiscard]] result<wait_options> read_wait(kiln_wait const* given);
[[nodiscard]] result<target> read_target(char const* arch, kiln_kind kind);
[[nodiscard]] result<void> describe(kernel_info const& k, kiln_kernel_info* out);
[[nodiscard]] kiln_artifact* boxed(obtained got);

// In C, a length of time is a number, and a negative one is none.
[[nodiscard]] inline std::chrono::milliseconds milliseconds(std::int64_t ms) {
    return std::chrono::milliseconds{std::clamp<std::int64_t>(ms, 0, std::int64_t{365} * 24 * 3600 * 1000)};
}

}  // namespace kiln::capi
