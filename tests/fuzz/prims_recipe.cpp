// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a profile keeps of a primitive, and as the constants an image exports.
#include "fuzz/fuzz.hpp"
#include "prims/pack.hpp"
#include "prims/prim_info.hpp"
#include "prims/request.hpp"

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    if (auto const info = prims::decode_info(input)) {
        fuzz::must(info->tile() > 0);
        (void)prims::tile_states_of(*info).bytes(1000);
    }
    auto const read = prims::request_of({"prims", "fuzz", {input.begin(), input.end()}});
    if (!read) return 0;
    auto const again = prims::request_of(prims::recipe_of(*read));
    fuzz::must(again.has_value());
    fuzz::must(prims::family_of(*again, prims::part::whole) == prims::family_of(*read, prims::part::whole));
    if (!prims::check(*read)) return 0;
    (void)prims::device_unit(*read, prims::part::whole, prims::header_source::plain);
    if (read->by) (void)prims::operator_unit(*read);
    return 0;
}
