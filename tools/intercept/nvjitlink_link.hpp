// SPDX-License-Identifier: Apache-2.0
// A link of nvJitLink as the stand-in keeps it, and how one is made. See nvjitlink.cpp.
#pragma once

#include "standin.hpp"

#include <list>

namespace kiln::intercept {

// The status codes of nvJitLink.h that Kiln gives itself. All versions agree on them.
enum nvjitlink_status : int { nvjitlink_success = 0, nvjitlink_internal_error = 6 };

template <class... Arguments>
int real_call(char const* name, Arguments... arguments) {
    return self().real.call(name, nvjitlink_internal_error, arguments...);
}

struct link_input {
    int type = 0;
    std::string name;
    bool named = false;    // a null name is not an empty one
    bool is_file = false;  // `name` is its path
    std::string data;      // of a file what was in it
};

struct link_record {
    std::vector<std::string> options;
    std::list<link_input> inputs;     // which stay where they are: the linker keeps the addresses of their names
    std::list<link_input> refused;    // by the linker, whose messages may still have their names
    std::vector<base::digest> chain;  // options, then one for each input
    std::string why_not;              // it is not kept; empty: it is
    void* real = nullptr;
    std::size_t fed = 0;                   // inputs the real one has
    std::optional<foreign_answer> answer;  // completed

    link_record() = default;
    ~link_record() { close(); }
    link_record(link_record const&) = delete;
    link_record& operator=(link_record const&) = delete;

    void close();
    [[nodiscard]] int feed(link_input const& one) const;
    // The real link with everything that was noted, as far as the program is.
    [[nodiscard]] int materialise();
};

// False: there must be a real link from the beginning, because it cannot be kept, or nobody knows whether these options are accepted.
[[nodiscard]] bool begin(link_record& k);
// Both answer with nvJitLink's status.
[[nodiscard]] int add(link_record& k, link_input one);
[[nodiscard]] int complete(link_record& k);

struct linker_version {
    unsigned major = 0, minor = 0;
};
// Kept, so that asking loads no linker. Null when the real library cannot be asked either.
[[nodiscard]] linker_version const* version_of_linker();

}  // namespace kiln::intercept
