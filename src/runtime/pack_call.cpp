// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/pack_call.hpp>

#include "cuda/activity.hpp"
#include "runtime/audit_words.hpp"

#include <kiln/runtime/memory.hpp>

namespace kiln::runtime {

// Host data that goes to the GPU is moved by the operation: that is what promotion means.
operation_call::operation_call(operation const& what, residency of_input, decision how)
    : how_{how},
      entered_{cuda::enter_operation(what.name(), strict() && (how.selected == place::cpu || on_device(of_input))
                                                      ? cuda::moves::undeclared
                                                      : cuda::moves::declared)} {
    if (entered_) tell_dispatch(what, how_, of_input);
}
result<operation_call> operation_call::begin(operation const& what, call_facts const& facts) {
    auto how = decide(what, facts);
    if (!how) return std::move(how).error();
    return operation_call{what, facts.where, *how};
}
operation_call::operation_call(operation_call&& other) noexcept
    : how_{other.how_}, entered_{std::exchange(other.entered_, false)} {}
operation_call::~operation_call() {
    if (!entered_) return;
    end_dispatch();
    cuda::leave_operation();
}

result<std::uint64_t> room_for(std::uint64_t elements, std::size_t size, int device) {
    constexpr std::uint64_t beside = 1 << 20;  // results and scratch
    KILN_TRY(auto const asked, admit(elements * size + beside, device));
    if (asked.admitted) return elements;
    return asked.fits > beside ? (asked.fits - beside) / 2 / size : 0;
}

error too_small(std::string_view what, std::size_t given, std::size_t needed) {
    return fail(errc::invalid_argument, "{} holds {} elements, {} are needed", what, given, needed);
}

error elsewhere(operation const& what, residency out, place ran) {
    return fail(errc::invalid_argument, "{}: out is in {} memory, but the call runs on the {}; make it there",
                what.name(), name_of(out), name_of(ran));
}

}  // namespace kiln::runtime
