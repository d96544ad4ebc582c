// SPDX-License-Identifier: Apache-2.0
// Any bytes as a bundle: as they are, and with the checks of header, footer and a one-page index made right so
// that what lies behind them is reached.
#include "base/digest.hpp"
#include "store/bundle.hpp"

#include <cstdint>
#include <cstring>

using namespace kiln;

namespace {

void use(base::byte_span data) {
    auto const bundle = store::bundle_tier::from_memory(data);
    if (!bundle) return;
    (void)(*bundle)->read_manifest();
    if ((*bundle)->info().entries > 1000) return;
    (void)(*bundle)->verify();
    (void)(*bundle)->for_each([&](store::summary const& s) {
        (void)(*bundle)->find(s.about.at, {});
        (void)(*bundle)->list(s.about.at.family, s.about.at.request);
    });
    (void)(*bundle)->find({}, {});
}

void mend(base::bytes& data, std::size_t at, base::byte_span covered) {
    auto const check = base::sha256_of(covered);
    std::memcpy(data.data() + at, check.bytes.data(), check.bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    base::byte_span const input{reinterpret_cast<std::byte const*>(data), size};
    use(input);
    if (size < store::bundle_header_bytes + store::bundle_footer_bytes) return 0;
    base::bytes mended{input.begin(), input.end()};
    base::byte_span const all{mended};
    mend(mended, 16, all.first(16));
    auto const footer = size - store::bundle_footer_bytes;
    base::byte_reader fields{all.subspan(footer + 24, 24)};
    auto const index = fields.get_u64(), manifest = fields.get_u64(), manifest_bytes = fields.get_u64();
    if (index < footer && footer - index >= store::index_page_bytes) {
        mend(mended, footer + 56, all.subspan(static_cast<std::size_t>(index), store::index_page_bytes));
    }
    if (manifest <= footer && manifest_bytes <= footer - manifest) {
        mend(mended, footer + 88,
             all.subspan(static_cast<std::size_t>(manifest), static_cast<std::size_t>(manifest_bytes)));
    }
    mend(mended, size - 32, all.subspan(footer, store::bundle_footer_bytes - 32));
    use(mended);
    return 0;
}
