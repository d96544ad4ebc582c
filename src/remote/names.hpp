// SPDX-License-Identifier: Apache-2.0
// What an object is called on a server: docs/formats/packet.md. Names are digests, so that no server can be made to confuse two
// namespaces, and plain hexadecimal, because some servers and some signatures of requests mind anything else.
#pragma once

#include "store/tier.hpp"

namespace kiln::remote {

using base::digest;

// Entries of one request that were made from different headers lie side by side.
inline constexpr unsigned slots = 8;

[[nodiscard]] digest object_name(std::string_view space, digest const& request, unsigned slot);
// One lease for all slots of a request.
[[nodiscard]] digest lease_name(std::string_view space, digest const& request);
// For machines that have no compiler and know no request.
[[nodiscard]] digest family_name(std::string_view space, digest const& family, std::string_view target,
                                 std::string_view kind);
// Where an entry goes when all slots are taken by others.
[[nodiscard]] unsigned last_resort(digest const& key) noexcept;

}  // namespace kiln::remote
