// SPDX-License-Identifier: Apache-2.0
// The parts of the page that a report is: texts, charts and tables. What a program wrote is escaped, whatever it is.
#pragma once

#include "audit/report.hpp"

namespace kiln::audit::html {

[[nodiscard]] std::string escaped(std::string_view text);
// As a sentence begins.
[[nodiscard]] std::string capital(std::string text);
[[nodiscard]] std::string time_text(time_ns t);
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

// ---- charts
void put_steady_bar(std::string& out, process_model const& p);
void put_ledger(std::string& out, process_model const& p);
// How busy the GPU was over the run, and where the steady state begins.
void put_strip(std::string& out, process_model const& p);
void put_step_times(std::string& out, process_model const& p);

// ---- tables
void put_kernels(std::string& out, process_model const& p);
void put_copies(std::string& out, process_model const& p);
void put_waits(std::string& out, process_model const& p);
void put_allocations(std::string& out, process_model const& p);
void put_streams(std::string& out, process_model const& p);
void put_stages(std::string& out, process_model const& p);

}  // namespace kiln::audit::html
