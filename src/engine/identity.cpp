// SPDX-License-Identifier: Apache-2.0
#include "engine/identity.hpp"

#include <string>

namespace kiln::engine_detail {

base::digest identity_of(subject const& of) {
    // Nothing is looked for: directories mean nothing.
    if (of.id.self_contained) return of.id.request;
    base::key_builder key{"kiln.identity.v1"};
    key.add("request", of.id.request).add("directory", of.roots.source_directory);
    for (auto const& directory : of.roots.include_directories) key.add("include", directory);
    for (auto const& directory : of.roots.toolkit) key.add("toolkit", directory);
    for (auto const& [place, text] : of.roots.carried) key.add("place", place).add("text", text);
    for (auto const& place : of.roots.in_vain) key.add("in vain", place);
    for (auto const& [place, copy] : of.roots.copies) key.add("copy", place).add("number", std::to_string(copy));
    for (auto const& [folder, names] : of.roots.names) key.add("folder", folder).add("names", names);
    if (of.roots.all_known) key.add("all", "known");
    return key.finish();
}

std::optional<base::digest> key_in_advance(subject const& of) {
    if (!of.id.self_contained || of.toolchain.empty()) return std::nullopt;
    return compile::seal(of.id.request, {});
}

}  // namespace kiln::engine_detail
