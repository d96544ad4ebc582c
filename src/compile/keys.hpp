// SPDX-License-Identifier: Apache-2.0
//
// From a unit to the three digests it is found under (store/tier.hpp explains them). Two steps, so that a lookup can be
// made before compiling: identify() needs no compiler and reads no header; seal() takes what was really read.
#pragma once

#include "base/digest.hpp"
#include "compile/job.hpp"
#include "compile/options.hpp"

namespace kiln::compile {

using base::digest;

struct identity {
    digest family;
    digest request;
    // True when no text of the unit can make the compiler look for a file: seal() is known in advance.
    bool self_contained = false;
};

// `toolchain` is the compiler's identity as artifact::toolchain has it.
[[nodiscard]] result<identity> identify(kiln::unit const& u, kiln::target const& t, std::string_view toolchain);
// The same text and target by another compiler: nothing is hashed again but a few words.
[[nodiscard]] identity made_by(identity of, kiln::target const& t, std::string_view toolchain);
// The same with options that no key can have: never mistaken for it, by whoever waits, keeps or loads.
[[nodiscard]] identity with_uncached(identity of, std::span<std::string const> options);

// What the family is made of, field by field, for people: long texts as digests.
[[nodiscard]] std::vector<input_field> describe_inputs(kiln::unit const& u, normalized_options const& options);

// What images are called that travel without their text: by all of their keys, because nothing else there tells them from those that
// were made of the same text with other headers.
[[nodiscard]] digest family_of_images(std::span<digest const> keys);

[[nodiscard]] identity identify(link_job const& j, std::string_view toolchain);

[[nodiscard]] digest seal(digest const& request, std::span<dependency const> dependencies);

// Conservative: false whenever an #include, or anything that might become one, is not answered by a header in memory.
[[nodiscard]] bool is_self_contained(kiln::unit const& u, normalized_options const& options);

}  // namespace kiln::compile
