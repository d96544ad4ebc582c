// SPDX-License-Identifier: Apache-2.0
//
// The part of precompiled headers in one compile: uses one that is there, makes one where that is worth it, or has none. It
// stands between the compiler and the capture of headers, and what it keeps for the compiler are never files on a disk.
#pragma once

#include "compile/job.hpp"
#include "compile/precompiled_headers.hpp"

namespace kiln::compile {

class precompiling final : public header_answers {
public:
    struct subject {
        cuda::nvrtc_api const& api;
        job const& work;
        include_roots const& roots;
        std::string source;  // what the compiler calls it
    };
    // `kept` may be null: then there are none, and everything is the capture's.
    precompiling(precompiled_headers* kept, subject const& of, include_capture& headers);

    // What the compiler is told besides.
    [[nodiscard]] std::vector<std::string> arguments() const;

    std::FILE* open(std::string const& path) override;
    std::FILE* create(std::string const& path, char const* mode) override;
    int stat(std::string const& path, struct ::stat* out) override;
    [[nodiscard]] bool is_blank(int fd) const override;

    // After the compile. The log as it would be without all this; nullopt where the compiler did not go along: then nothing that
    // came of it counts, and the job is to be done again without.
    [[nodiscard]] std::optional<std::string> finish(nvrtcProgram of, nvrtcResult status, std::string log);

private:
    void finish_making(nvrtcProgram of, std::string_view log);

    precompiled_headers* kept_;
    cuda::nvrtc_api const& api_;
    include_capture& headers_;
    std::string source_;
    double begun_ms_;
    std::optional<base::digest> prefix_;  // of a job that may have one
    header_use role_ = header_use::plain;
    precompiled_header const* used_ = nullptr;
    precompiled_header made_;
    texts_together own_;  // of one that is made
    int blank_ = -1;
};

}  // namespace kiln::compile
