// SPDX-License-Identifier: Apache-2.0
// Any lines as options, as a profile or a command line from somebody else has them.
#include "compile/options.hpp"
#include "fuzz/fuzz.hpp"

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto rest = base::as_text(fuzz::bytes_of(data, size));
    std::vector<std::string> options;
    while (!rest.empty()) {
        auto const end = std::min(rest.find('\n'), rest.size());
        options.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    (void)compile::check_link_options(options);
    auto const normal = compile::normalize(options);
    if (!normal) return 0;
    // What NVRTC is given means the same: nothing is lost or gained on the way.
    auto const again = compile::normalize(normal->arguments);
    fuzz::must(again && again->keyed == normal->keyed && again->debug == normal->debug &&
               again->arguments == normal->arguments && again->include_dirs.empty());
    return 0;
}
