// SPDX-License-Identifier: Apache-2.0
//
// A value or the reason there is none. Everything in Kiln that can fail in normal operation returns
// result<T>; callers who prefer exceptions write `.value()`, which throws the same kiln::error.
// Plain values: safe to copy and to move between threads; nothing here allocates on success.
#pragma once

#include <cassert>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace kiln {

// Closed list: adding one is an API change. `name_of` gives the stable spelling used in events and JSON.
enum class errc {
    invalid_argument,  // the caller's input cannot be right
    unsupported,       // needs a newer driver, compiler or GPU; the message names the version
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

private:
    std::optional<kiln::error> why_;
};

}  // namespace kiln
