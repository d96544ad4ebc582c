// SPDX-License-Identifier: Apache-2.0
#include "capi/boxes.hpp"

#include <kiln/version.hpp>

#include <cstdlib>
#include <new>

namespace kiln::capi {

namespace {

constexpr kiln_code code_of(errc code) { return static_cast<kiln_code>(code) + 1; }

// The numbers of the header are for ever.
static_assert(code_of(errc::invalid_argument) == KILN_INVALID_ARGUMENT &&
              code_of(errc::unsupported) == KILN_UNSUPPORTED && code_of(errc::not_found) == KILN_NOT_FOUND &&
              code_of(errc::io) == KILN_IO && code_of(errc::corrupt) == KILN_CORRUPT &&
              code_of(errc::compile_failed) == KILN_COMPILE_FAILED && code_of(errc::link_failed) == KILN_LINK_FAILED &&
              code_of(errc::worker_failed) == KILN_WORKER_FAILED && code_of(errc::timeout) == KILN_TIMEOUT &&
              code_of(errc::cancelled) == KILN_CANCELLED && code_of(errc::out_of_memory) == KILN_OUT_OF_MEMORY &&
              code_of(errc::no_device) == KILN_NO_DEVICE && code_of(errc::driver) == KILN_DRIVER &&
              code_of(errc::forbidden) == KILN_FORBIDDEN && code_of(errc::internal) == KILN_INTERNAL);

kiln_error& no_memory() {
    static kiln_error out{error{errc::out_of_memory, "out of memory"}};
    return out;
}
// Made while there is memory.
[[maybe_unused]] kiln_error& made_early = no_memory();

}  // namespace

kiln_error* boxed(error why) noexcept {
    auto* const out = new (std::nothrow) kiln_error{std::move(why)};
    return out == nullptr ? &no_memory() : out;
}

}  // namespace kiln::capi

using namespace kiln;

uint32_t kiln_c_version(void) { return KILN_C_VERSION; }
char const* kiln_version(void) { return kiln::version.data(); }
void kiln_free(void* what) { std::free(what); }

kiln_code kiln_error_code(kiln_error const* why) { return why == nullptr ? KILN_OK : capi::code_of(why->why.code()); }
char const* kiln_error_message(kiln_error const* why) { return why == nullptr ? "" : why->why.message().c_str(); }
char const* kiln_error_log(kiln_error const* why) { return why == nullptr ? "" : why->why.log().c_str(); }
int32_t kiln_error_status(kiln_error const* why) { return why == nullptr ? 0 : why->why.status(); }
void kiln_error_free(kiln_error* why) {
    if (why != &capi::no_memory()) delete why;
}
char const* kiln_code_name(kiln_code code) {
    if (code == KILN_OK) return "ok";
    if (code < KILN_OK || code > KILN_INTERNAL) return "unknown";
    return name_of(static_cast<errc>(code - 1)).data();
}
