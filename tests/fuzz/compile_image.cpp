// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a compiler made: a cubin, PTX, names in either.
#include "compile/cpp_names.hpp"
#include "compile/elf.hpp"
#include "compile/internal_names.hpp"
#include "fuzz/fuzz.hpp"

#include <algorithm>

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    auto const variables = compile::cubin_variables(input);
    for (int const sm : {80, 90}) {
        auto const found = compile::read_cubin(input, sm, variables);
        if (!found) continue;
        fuzz::must(std::ranges::is_sorted(found->kernels, {}, &kernel_info::lowered));
        for (auto const& k : found->kernels) {
            fuzz::must(k.shared_bytes >= 0);
            auto const name = compile::cpp_name(k.lowered);
            fuzz::must(compile::is_name_of(k.lowered, k.lowered) && compile::is_name_of(name, k.lowered));
        }
        for (auto const& c : found->constants) fuzz::must(c.bytes.size() <= size);
    }
    fuzz::must(compile::cubin_essence(input).size() <= 5 * size + 4096);
    auto const text = base::as_text(input);
    fuzz::must(compile::without_compile_marks(text).size() <= size);
    for (auto const& entry : compile::ptx_entries(text)) fuzz::must(text.find(entry) != text.npos);
    if (size < 512) (void)compile::cpp_name(std::string{text});
    return 0;
}
