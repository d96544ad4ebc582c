// SPDX-License-Identifier: Apache-2.0
//
// A unit is a piece of CUDA C++ text with its entry points: the thing that is compiled. It is a plain value;
// making one starts nothing and reads nothing. Usually a static constant next to the code that launches it.
#pragma once

#include <kiln/language.hpp>

#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

struct header {
    std::string name;  // as written between < > or " "
    std::string text;
};

// A header by its place when its unit was built: "s/step.cuh" beside the source, "i0/lib/q.h" below the first include directory, "/abs/x.h"; "!i1/q.h" was looked for in
// vain, and where "!" is in the list, looking for what is not in it is an error. "#2 i0/b.h": another header says the same as b.h, and is another file. "=i0/": digests of the names in that folder; what is not among them was not there.
struct carried_header {
    std::string place;
    std::string text;
};

struct unit {
    std::string name;  // appears in events, errors and bundles
    std::string source;
    // Entry points: extern "C" names, or expressions such as "scale<float>" for templates. None = every kernel found.
    std::vector<std::string> kernels = {};
    // NVRTC's own options. Architecture and artifact kind come from the target; an option whose effect cannot be
    // part of the key is refused with an error that names it.
    std::vector<std::string> options = {};
    // Headers that are found before any file.
    std::vector<header> headers = {};
    // Searched in order; the CUDA toolkit's own headers are searched last, where they are installed.
    std::vector<std::string> include_dirs = {};
    // Where the source came from: searched first for #include "...". Empty = text from memory, no directory.
    std::string directory = {};
    // __constant__ variables whose initial bytes the artifact carries for the host.
    std::vector<std::string> exports = {};
    // Licence of the sources, for the bundle's manifest.
    std::string licence = {};
    // Options of NVRTC that `options` refuses because no key can have their effect: "--time=/tmp/phases.csv", one that Kiln does
    // not know. A unit with any goes around the cache: compiled whenever an artifact is asked for, kept and recorded nowhere.
    // Paths are absolute: the compiler runs in a process of its own, in another directory.
    std::vector<std::string> uncached_options = {};
    // What kiln_add_kernels puts into a program. Headers that travel with the unit: with any, no directory of this machine is
    // looked at for it, but the toolkit's. They count as if they lay there, so that bundles and caches know no difference.
    std::vector<carried_header> carried = {};
    // A unit without its text, by what a bundle calls it (IMAGES_ONLY): found, never compiled.
    std::string images_of = {};
};

}  // namespace kiln
