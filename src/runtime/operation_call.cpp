// SPDX-License-Identifier: Apache-2.0
#include <kiln/operation_call.hpp>

#include "cuda/activity.hpp"

namespace kiln::runtime {

result<operation_call> operation_call::begin(operation const& what, call_facts const& facts) {
    KILN_TRY(auto const how, decide(what, facts));
    // Host data that goes to the GPU is moved by the operation: that is what promotion means.
    bool const promotes = how.selected == place::gpu && !on_device(facts.where);
    operation_call out{how};
    out.entered_ =
        cuda::enter_operation(what.name(), strict() && !promotes ? cuda::moves::undeclared : cuda::moves::declared);
    return out;
}
operation_call::operation_call(operation_call&& other) noexcept
    : how_{other.how_}, entered_{std::exchange(other.entered_, false)} {}
operation_call::~operation_call() {
    if (entered_) cuda::leave_operation();
}

error too_small(std::string_view what, std::size_t given, std::size_t needed) {
    return fail(errc::invalid_argument, "{} holds {} elements, {} are needed", what, given, needed);
}

error elsewhere(operation const& what, residency out, place ran) {
    return fail(errc::invalid_argument, "{}: out is in {} memory, but the call runs on the {}; make it there",
                what.name(), name_of(out), name_of(ran));
}

}  // namespace kiln::runtime
