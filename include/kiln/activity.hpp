// SPDX-License-Identifier: Apache-2.0
//
// What moves and what waits. Every transfer between host and device, every wait of the host for the device and every
// allocation of device memory that goes through Kiln is counted here and leaves an event that names the operation and
// the call. A scope can forbid transfers or waits on its thread: what is tried inside fails at once, and check() lists it.
//
//     kiln::no_transfers still;
//     kiln::no_sync      unbroken;
//     pipeline(stream, values);            // a hidden copy inside fails with errc::forbidden
//     still.check().value();               // and is named here
#pragma once

#include <kiln/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

enum class transfer_direction : std::uint8_t { to_device, to_host, on_device };
// "to-device", "to-host", "on-device".
[[nodiscard]] std::string_view name_of(transfer_direction way) noexcept;

// Counts since the process started, over all its threads.
struct activity {
    std::uint64_t transfers_to_device = 0, bytes_to_device = 0;
    std::uint64_t transfers_to_host = 0, bytes_to_host = 0;
    std::uint64_t transfers_on_device = 0, bytes_on_device = 0;
    std::uint64_t pinned_bytes = 0;  // of the bytes above that crossed from or to pinned memory
    std::uint64_t synchronisations = 0;
    std::uint64_t allocations = 0, allocated_bytes = 0;
    std::uint64_t dispatched_to_gpu = 0, dispatched_to_cpu = 0, fallbacks = 0;

    // What happened between two readings.
    [[nodiscard]] activity since(activity const& earlier) const noexcept;
};
[[nodiscard]] activity activity_so_far() noexcept;

namespace cuda {
struct activity_ban;
}

// Both hold for the thread that makes them, until they die, and may be nested. Copies on the device are not transfers.
class no_transfers {
public:
    no_transfers();
    ~no_transfers();
    no_transfers(no_transfers const&) = delete;
    no_transfers& operator=(no_transfers const&) = delete;

    // errc::forbidden with one line per attempt in log(), if there was any.
    [[nodiscard]] result<void> check() const;
    [[nodiscard]] std::vector<std::string> const& attempts() const noexcept;

private:
    std::unique_ptr<cuda::activity_ban> ban_;
};

class no_sync {
public:
    no_sync();
    ~no_sync();
    no_sync(no_sync const&) = delete;
    no_sync& operator=(no_sync const&) = delete;

    [[nodiscard]] result<void> check() const;
    [[nodiscard]] std::vector<std::string> const& attempts() const noexcept;

private:
    std::unique_ptr<cuda::activity_ban> ban_;
};

}  // namespace kiln
