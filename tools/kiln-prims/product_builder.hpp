// SPDX-License-Identifier: Apache-2.0
//
// Makes, with Kiln's own engine and cache, what Kiln ships of the primitives: ready cubins, templates, and the CCCL headers
// that were read on the way. Needs NVRTC, nvJitLink and the toolkit's headers; neither nvcc nor a GPU.
#pragma once

#include "prims/request.hpp"

#include <kiln/engine.hpp>

#include <filesystem>

namespace kiln::prims_tool {

struct product_plan {
    std::filesystem::path folder;
    std::vector<arch> cubin_archs;
    std::vector<arch> template_archs;
    unsigned threads = 2;
};

struct product_report {
    std::string name;  // of the file
    std::size_t entries = 0;
    std::size_t bytes = 0;
};

// Everything or nothing: the first failure is returned and no file is written.
[[nodiscard]] result<std::vector<product_report>> build_products(engine& with, product_plan const& plan);

}  // namespace kiln::prims_tool
