// SPDX-License-Identifier: Apache-2.0
// artifact::to_bytes and from_bytes: docs/formats/artifact.md, "By itself".
#include "base/digest.hpp"
#include "compile/job.hpp"

#include <algorithm>

namespace kiln {

namespace {

constexpr std::string_view magic = "KILNART\n";
constexpr std::uint32_t version_by_itself = 1;

}  // namespace

std::vector<std::byte> artifact::to_bytes() const {
    auto const payload = compile::encode(*this);
    base::byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(version_by_itself);
    auto const digest = base::sha256_of(base::byte_span{payload});
    w.put_raw(std::as_bytes(std::span{digest.bytes}));
    w.put_raw(payload);
    return std::move(w).take();
}

result<artifact> artifact::from_bytes(std::span<std::byte const> bytes) {
    base::byte_reader r{bytes};
    if (base::as_text(r.get_raw(magic.size())) != magic) return fail(errc::corrupt, "these bytes are no artifact");
    if (auto const version = r.get_u32(); r.ok() && version != version_by_itself)
        return fail(errc::unsupported, "an artifact of version {}; this Kiln reads version {}", version,
                    version_by_itself);
    auto const said = r.get_raw(base::digest{}.bytes.size());
    auto const payload = r.get_raw(r.left());
    auto const digest = base::sha256_of(payload);
    if (!r.ok() || !std::ranges::equal(said, std::as_bytes(std::span{digest.bytes})))
        return fail(errc::corrupt, "the artifact is damaged: its digest is another");
    return compile::decode_artifact(payload);
}

}  // namespace kiln
