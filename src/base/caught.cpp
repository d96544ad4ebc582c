// SPDX-License-Identifier: Apache-2.0
#include "base/caught.hpp"

#include <new>

namespace kiln::base {

namespace {

error as_error() {
    try {
        throw;
    } catch (error const& why) {
        return why;
    } catch (std::bad_alloc const&) {
        return {errc::out_of_memory, "out of memory"};
    } catch (std::exception const& why) {
        return {errc::internal, why.what()};
    } catch (...) {
        return {errc::internal, "an exception of an unknown type"};
    }
}

}  // namespace

error caught_error(std::string_view about) noexcept {
    try {
        auto out = as_error();
        return about.empty() ? out : std::move(out).within(about);
    } catch (std::exception const&) {
        return {errc::out_of_memory, "out of memory"};  // short enough to be stored in the string itself
    }
}

}  // namespace kiln::base
