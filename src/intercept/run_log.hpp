// SPDX-License-Identifier: Apache-2.0
//
// What happened in the processes of one `kiln run`: each appends a line to a file of the run, which the parent reads at the
// end. One write a line, so that lines of many processes do not mix and one that is killed loses nothing it had said.
#pragma once

#include "base/check.hpp"
#include "store/tier.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln::intercept {

struct happening {
    enum class what {
        answered,   // from the store
        made,       // by the program's own compiler, there or in a worker, and kept if `at` says where
        failed,     // the compiler said no
        forwarded,  // left to the real library, `detail` says why
        forbidden,  // KILN_JIT=forbid
        verified,   // made again and the same
        different,  // made again and not the same
    };
    what kind = what::forwarded;
    int process = 0;
    int maker = 0;          // the process that compiled it; 0: the program's own
    std::string by{};       // who asked: "python train.py"
    std::string library{};  // "nvrtc", "nvjitlink"
    std::string program{};  // what was compiled
    std::string target{};
    std::chrono::microseconds took{};
    std::chrono::microseconds waited{};  // of it: for another that was making the same
    std::chrono::milliseconds cost{};    // what making it took, where it was answered
    std::optional<store::address> at{};
    std::optional<base::digest> request{};  // where nothing is kept of it: what it would be kept under
    std::string detail{};
    bool operator==(happening const&) const = default;
};
[[nodiscard]] std::string_view name_of(happening::what kind) noexcept;

// Why an answer is not kept, where the user's own bound is too small for it: no fault that 'kiln doctor' would find.
inline constexpr std::string_view too_large = "larger than KILN_MAX_SIZE";
// What was made, with where it is kept, or why it is not.
[[nodiscard]] happening told_of(result<store::address> const& kept, happening made);
// Of its detail all but that.
[[nodiscard]] std::string_view why_made(happening const& made) noexcept;
// Of its detail why it had to be made.
[[nodiscard]] std::string_view why_missed(happening const& made) noexcept;
// What is kept under the names of its files as the program gave them, so that it is not found under others.
inline constexpr std::string_view own_names_mark = "; under its own names: ";
// Of its detail why that is; empty: it is not.
[[nodiscard]] std::string_view why_own_names(happening const& made) noexcept;

// Begins the detail of what the loader's hook says: a library that nothing is answered for, whatever is asked of it.
inline constexpr std::string_view left_alone_mark = "loaded without Kiln: ";
[[nodiscard]] std::optional<base::digest> request_of(happening const& h) noexcept;

// Without the newline. Texts lose what would break the line.
[[nodiscard]] std::string to_line(happening const& h);
[[nodiscard]] std::optional<happening> from_line(std::string_view line);

// The log of a run that listens at `door`: made by the first who writes, as long as the door is there.
[[nodiscard]] std::filesystem::path log_at(std::filesystem::path door);
// Appends to `file`; whatever goes wrong is nobody's problem.
void append(std::string const& file, happening const& h) noexcept;
// The headers that a process had to read, for the next run to have them read ahead.
void append_headers(std::string const& file, std::vector<std::string> const& paths) noexcept;

struct run_log {
    std::vector<happening> happenings;
    std::vector<std::string> headers;
};
// Lines that make no sense are passed over.
[[nodiscard]] run_log parse_run_log(std::string_view text);
[[nodiscard]] run_log read_run_log(std::filesystem::path const& file);

}  // namespace kiln::intercept
