// SPDX-License-Identifier: Apache-2.0
//
// Where operations may run. `automatic` lets each operation choose and may fall back to the CPU, which is always told;
// `gpu` fails loudly where there is none; `cpu` touches no driver. What counts: a scope on this thread, then
// set_execution_mode(), then KILN_EXECUTION_MODE, then automatic. The same order holds for determinism (KILN_DETERMINISM)
// and strictness (KILN_STRICT). Safe from any thread.
#pragma once

#include <kiln/device.hpp>

#include <optional>

namespace KILN_PUBLIC kiln {

enum class execution_mode : std::uint8_t { automatic, cpu, gpu };
// "auto", "cpu", "gpu".
[[nodiscard]] std::string_view name_of(execution_mode mode) noexcept;
[[nodiscard]] result<execution_mode> parse_execution_mode(std::string_view text);

// Reads the settings the first time, as determinism_requested() and strict() do: std::bad_alloc where memory is short.
[[nodiscard]] execution_mode requested_mode();
// For the whole process; nullopt goes back to the environment. Forgets what was found out about the GPU.
void set_execution_mode(std::optional<execution_mode> mode);

class scoped_execution_mode {
public:
    explicit scoped_execution_mode(execution_mode mode) noexcept;
    ~scoped_execution_mode();
    scoped_execution_mode(scoped_execution_mode const&) = delete;
    scoped_execution_mode& operator=(scoped_execution_mode const&) = delete;

private:
    std::optional<execution_mode> outer_;
};

// A device that really answered: the driver is there, initialised, and gave a context. Asked once per mode change; else a
// remembered answer. errc::no_device with the reason and a remedy.
[[nodiscard]] result<device_info> usable_gpu();

// Same input, same device, same bits: operations that cannot promise it fail instead of ignoring the request.
[[nodiscard]] bool determinism_requested();
void set_determinism(std::optional<bool> on);
class deterministic_scope {
public:
    deterministic_scope() noexcept;
    ~deterministic_scope();
    deterministic_scope(deterministic_scope const&) = delete;
    deterministic_scope& operator=(deterministic_scope const&) = delete;

private:
    bool outer_;
};

// Any fallback, and any transfer an operation has not declared, is an error: for tests and CI.
[[nodiscard]] bool strict();
void set_strict(std::optional<bool> on);

}  // namespace kiln
