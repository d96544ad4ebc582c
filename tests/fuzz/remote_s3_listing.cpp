// SPDX-License-Identifier: Apache-2.0
// Any bytes as a page of what a bucket has.
#include "fuzz/fuzz.hpp"

#include "remote/s3_listing.hpp"

using namespace kiln;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const page = remote::decode_bucket_page(base::as_text(fuzz::bytes_of(data, size)));
    if (!page) return 0;
    must(page->objects.size() <= remote::most_page_objects && page->next.size() <= remote::most_page_token);
    std::size_t kept = page->next.size();
    for (auto const& o : page->objects) {
        must(!o.key.empty());
        kept += o.key.size();
    }
    must(kept < size);
    return 0;
}
