// SPDX-License-Identifier: Apache-2.0
//
// One piece of work for a compiler, in this process or in a worker, and what comes of it. Jobs and products
// cross a process boundary, so both can be encoded; see docs/formats/worker-protocol.md.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <kiln/artifact.hpp>
#include <kiln/unit.hpp>

#include <optional>
#include <variant>

namespace kiln::compile {

// Where the compiler libraries are. The host finds them once and tells its workers, so that both mean the same file.
struct toolchain_paths {
    std::string nvrtc;
    std::string nvjitlink;
    std::vector<std::string> toolkit_includes;
};

struct compile_job {
    kiln::unit unit;
    kiln::target target;
};

struct link_input {
    std::string name;
    artifact_kind kind = artifact_kind::ltoir;
    base::bytes image;
};

// nvJitLink over LTO-IR (or PTX, cubin) inputs.
struct link_job {
    std::string name;
    kiln::target target;
    std::vector<link_input> inputs;
    std::vector<std::string> kernels;  // the entry points to keep; all of them must be in the result
    std::vector<std::string> exports;
    std::vector<std::string> options;
};

struct job {
    toolchain_paths tools;
    std::variant<compile_job, link_job> task;
    [[nodiscard]] std::string const& name() const noexcept;
};

// What a compiler made: an artifact whose `key` is still empty (the caller derives it, knowing the request).
using product = kiln::artifact;

[[nodiscard]] base::bytes encode(job const& j);
[[nodiscard]] result<job> decode_job(base::byte_span data);

// Also the payload of a store entry: docs/formats/artifact.md. Deterministic: the same artifact gives the same bytes.
[[nodiscard]] base::bytes encode(kiln::artifact const& a);
[[nodiscard]] result<kiln::artifact> decode_artifact(base::byte_span data);

// Why there is no product, and what the compiler had read or looked for by then: as long as that says the same, it fails again.
struct failure {
    error why;
    std::optional<std::vector<dependency>> read = {};  // nullopt: not known
};
[[nodiscard]] base::bytes encode(failure const& f);
// Bytes that cannot be read give errc::corrupt, which is a failure all the same.
[[nodiscard]] failure decode_failure(base::byte_span data);

// Is this what the job asked for, as far as it can be told without compiling: name, target, kernels, an image that can be
// read, a compiler of the right kind. errc::corrupt says what is not.
[[nodiscard]] result<void> check_product(job const& j, product const& made);

// Runs the job in this process: loads NVRTC or nvJitLink on first use. Compile errors are errc::compile_failed with the log.
[[nodiscard]] result<product> run_job(job const& j);

// What precompiled headers had to do with a job.
enum class header_use : std::uint8_t {
    plain,   // none took part
    made,    // one was made, and is kept for the next job
    reused,  // one was used
};

class precompiled_headers;
// The same in a worker, which keeps precompiled headers from job to job. What is made is the same to the byte.
[[nodiscard]] result<product> run_job_with(precompiled_headers& kept, job const& j);

}  // namespace kiln::compile
