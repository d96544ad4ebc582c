// SPDX-License-Identifier: Apache-2.0
#include "remote/names.hpp"

namespace kiln::remote {

namespace {

constexpr std::string_view object_schema = "kiln remote v1";
constexpr std::string_view lease_schema = "kiln lease v1";
constexpr std::string_view family_schema = "kiln family v1";

}  // namespace

digest object_name(std::string_view space, digest const& request, unsigned slot) {
    KILN_ASSERT(slot < slots);
    return base::key_builder{object_schema}
        .add("namespace", space)
        .add("request", request)
        .add("slot", std::uint64_t{slot})
        .finish();
}

digest lease_name(std::string_view space, digest const& request) {
    return base::key_builder{lease_schema}.add("namespace", space).add("request", request).finish();
}

digest family_name(std::string_view space, digest const& family, std::string_view target, std::string_view kind) {
    return base::key_builder{family_schema}
        .add("namespace", space)
        .add("family", family)
        .add("target", target)
        .add("kind", kind)
        .finish();
}

unsigned last_resort(digest const& key) noexcept { return key.bytes[31] % slots; }

}  // namespace kiln::remote
