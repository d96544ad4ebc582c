// SPDX-License-Identifier: Apache-2.0
//
// A value or the reason there is none. Everything in Kiln that can fail in normal operation returns
// result<T>; callers who prefer exceptions write `.value()`, which throws the same kiln::error.
// Plain values: safe to copy and to move between threads; nothing here allocates on success.
#pragma once

#include <kiln/language.hpp>

#include <cassert>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace KILN_PUBLIC kiln {

// Closed list: adding one is an API change. `name_of` gives the stable spelling used in events and JSON.
enum class errc {
    invalid_argument,  // the caller's input cannot be right
    unsupported,       // needs a newer driver, compiler or GPU, or no result of it can be kept; the message says which
    not_found,         // a file, library, symbol or unit that had to exist does not
    io,                // the operating system refused; status() is errno
    corrupt,           // bytes failed a check
    compile_failed,    // the compiler said no; log() has its words
    link_failed,       // nvJitLink said no; log() has its words
    worker_failed,     // the compiler crashed or was killed, twice; message names the reproduction file
    timeout,           // a deadline passed
    cancelled,         // withdrawn before it was done
    out_of_memory,     // host or device memory
    no_device,         // no usable GPU or driver
    driver,            // a CUDA driver call failed; status() is the CUresult
    forbidden,         // policy (KILN_JIT=forbid, KILN_READONLY, ...) does not allow it
    internal,          // a bug in Kiln: please report it
};

[[nodiscard]] std::string_view name_of(errc code) noexcept;

class error : public std::exception {
public:
    error(errc code, std::string message) : code_{code}, message_{std::move(message)} {}

    [[nodiscard]] errc code() const noexcept { return code_; }
    // Names the thing and the remedy; one line.
    [[nodiscard]] std::string const& message() const noexcept { return message_; }
    // The failing library's own status (errno, CUresult, nvrtcResult, ...); 0 where there is none.
    [[nodiscard]] int status() const noexcept { return status_; }
    // Compiler or linker output, unabridged; empty where there is none.
    [[nodiscard]] std::string const& log() const noexcept { return log_; }
    [[nodiscard]] char const* what() const noexcept override { return message_.c_str(); }

    error&& with_status(int status) && {
        status_ = status;
        return std::move(*this);
    }
    error&& with_log(std::string log) && {
        log_ = std::move(log);
        return std::move(*this);
    }
    // Puts "context: " before the message: for callers that know more about what was being done.
    error&& within(std::string_view context) && {
        message_.insert(0, std::string{context} + ": ");
        return std::move(*this);
    }

private:
    errc code_;
    int status_ = 0;
    std::string message_;
    std::string log_;
};

template <class T>
class result;

namespace detail {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<result<T>> = true;

// What `f` gives, as a result.
template <class F, class... Args>
[[nodiscard]] auto result_of(F&& f, Args&&... args) {
    using given = std::remove_cvref_t<std::invoke_result_t<F, Args...>>;
    if constexpr (std::is_void_v<given>) return std::forward<F>(f)(std::forward<Args>(args)...), result<given>();
    else return result<given>(std::forward<F>(f)(std::forward<Args>(args)...));
}

// A value through `f`; an error as it is.
template <class Result, class F>
[[nodiscard]] auto and_then(Result&& from, F&& f) {
    auto const go_on = [&] {
        if constexpr (std::is_void_v<typename std::remove_cvref_t<Result>::value_type>) return std::forward<F>(f)();
        else return std::forward<F>(f)(*std::forward<Result>(from));
    };
    using next = std::remove_cvref_t<decltype(go_on())>;
    static_assert(is_result<next>, "and_then: the function gives a kiln::result; for plain values there is transform");
    return from.has_value() ? next(go_on()) : next(std::forward<Result>(from).error());
}
template <class Result, class F>
[[nodiscard]] auto transform(Result&& from, F&& f) {
    return and_then(std::forward<Result>(from), [&](auto&&... value) {
        return result_of(std::forward<F>(f), std::forward<decltype(value)>(value)...);
    });
}
// An error through `f`; a value as it is.
template <class Result, class F>
[[nodiscard]] std::remove_cvref_t<Result> or_else(Result&& from, F&& f) {
    if (from.has_value()) return std::forward<Result>(from);
    return std::forward<F>(f)(std::forward<Result>(from).error());
}

}  // namespace detail

template <class T>
class [[nodiscard]] result {
public:
    using value_type = T;

    result(T value) : state_{std::in_place_index<0>, std::move(value)} {}
    result(kiln::error why) : state_{std::in_place_index<1>, std::move(why)} {}

    [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & { return check(), *std::get_if<0>(&state_); }
    T const& value() const& { return check(), *std::get_if<0>(&state_); }
    T value() && { return check(), std::move(*std::get_if<0>(&state_)); }

    T& operator*() & noexcept { return assert(has_value()), *std::get_if<0>(&state_); }
    T const& operator*() const& noexcept { return assert(has_value()), *std::get_if<0>(&state_); }
    T&& operator*() && noexcept { return assert(has_value()), std::move(*std::get_if<0>(&state_)); }
    T* operator->() noexcept { return &**this; }
    T const* operator->() const noexcept { return &**this; }

    [[nodiscard]] kiln::error const& error() const& noexcept { return assert(!has_value()), *std::get_if<1>(&state_); }
    [[nodiscard]] kiln::error&& error() && noexcept {
        return assert(!has_value()), std::move(*std::get_if<1>(&state_));
    }

    template <class U>
    [[nodiscard]] T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }

    // As those of std::expected. Of the value: transform(T -> U) gives result<U>, and_then(T -> result<U>) the same; of the
    // error: or_else(error -> result<T>). The function is called at most once, and not at all for the other kind.
    template <class F>
    auto transform(F&& f) const& {
        return detail::transform(*this, std::forward<F>(f));
    }
    template <class F>
    auto transform(F&& f) && {
        return detail::transform(std::move(*this), std::forward<F>(f));
    }
    template <class F>
    auto and_then(F&& f) const& {
        return detail::and_then(*this, std::forward<F>(f));
    }
    template <class F>
    auto and_then(F&& f) && {
        return detail::and_then(std::move(*this), std::forward<F>(f));
    }
    template <class F>
    result or_else(F&& f) const& {
        return detail::or_else(*this, std::forward<F>(f));
    }
    template <class F>
    result or_else(F&& f) && {
        return detail::or_else(std::move(*this), std::forward<F>(f));
    }

private:
    void check() const {
        if (!has_value()) throw *std::get_if<1>(&state_);
    }
    std::variant<T, kiln::error> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
    using value_type = void;

    result() = default;
    result(kiln::error why) : why_{std::move(why)} {}

    [[nodiscard]] bool has_value() const noexcept { return !why_; }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (why_) throw *why_;
    }
    [[nodiscard]] kiln::error const& error() const& noexcept { return assert(why_), *why_; }
    [[nodiscard]] kiln::error&& error() && noexcept { return assert(why_), std::move(*why_); }

    // As above; the function takes nothing.
    template <class F>
    auto transform(F&& f) const& {
        return detail::transform(*this, std::forward<F>(f));
    }
    template <class F>
    auto transform(F&& f) && {
        return detail::transform(std::move(*this), std::forward<F>(f));
    }
    template <class F>
    auto and_then(F&& f) const& {
        return detail::and_then(*this, std::forward<F>(f));
    }
    template <class F>
    auto and_then(F&& f) && {
        return detail::and_then(std::move(*this), std::forward<F>(f));
    }
    template <class F>
    result or_else(F&& f) const& {
        return detail::or_else(*this, std::forward<F>(f));
    }
    template <class F>
    result or_else(F&& f) && {
        return detail::or_else(std::move(*this), std::forward<F>(f));
    }

private:
    std::optional<kiln::error> why_;
};

}  // namespace kiln
