// SPDX-License-Identifier: Apache-2.0
//
// The precompiled headers of one worker: in memory, bounded, the least recently used go first. NVRTC (12.8 or newer) can use one
// only in the process that made it, and takes it as it is: whether the headers it was made from still say the same, it does not
// ask. So with each is kept every look at a file it was made from, and who wants to use it asks the machine again
// (precompiling.hpp). docs/decisions/0016-precompiled-headers.md has the reasons.
#pragma once

#include "base/digest.hpp"
#include "base/files.hpp"
#include "compile/includes.hpp"
#include "compile/worker_protocol.hpp"
#include "cuda/nvrtc_api.hpp"

#include <list>
#include <map>
#include <set>

namespace kiln::compile {

struct precompiled_header {
    base::file_descriptor file;  // memory that passes for a file
    std::uint64_t bytes = 0;
    header_looks looks;  // everything it was made from, and what was looked for and not there
    std::string log;     // what the compiler said of it
    std::string source;  // what the log calls the source
};

class precompiled_headers {
public:
    // 0: none are ever made.
    explicit precompiled_headers(std::uint64_t most_bytes) : most_{most_bytes} {}

    // Whether this compiler makes them, within the bound. Asked once of each.
    [[nodiscard]] bool works_with(cuda::nvrtc_api const& api);

    // Null where there is none. Stays valid until the next call.
    [[nodiscard]] precompiled_header const* find(base::digest const& prefix);
    void keep(base::digest const& prefix, precompiled_header made);
    // Its headers changed.
    void drop(base::digest const& prefix);
    // The compiler would not make it, or not use it: not again for this prefix.
    void refuse(base::digest const& prefix);

    // CPU time of a compile with this prefix that made none.
    void took(base::digest const& prefix, double ms);
    // Making one costs a part of a compile. Headers of the toolkit are worth it at once; of others it is known after one compile.
    enum class headers { of_toolkit, of_others };
    [[nodiscard]] bool is_worth_making(base::digest const& prefix, headers of) const;

    [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    // Of the job that ran last.
    header_use last = header_use::plain;
    // By that job, where it does not compile; nullopt: not known.
    std::optional<std::vector<dependency>> read = {};

private:
    std::uint64_t most_;
    std::uint64_t bytes_ = 0;
    std::list<std::pair<base::digest, precompiled_header>> kept_;  // the most recently used first
    std::set<base::digest> refused_;
    std::map<base::digest, double> took_ms_;
    std::map<cuda::nvrtc_api const*, bool> works_;
};

}  // namespace kiln::compile
