// SPDX-License-Identifier: Apache-2.0
// For trials of operations: the result is waited for wherever it was made.
#pragma once

#include "base/check.hpp"

#include <kiln/runtime/buffer.hpp>

namespace kiln::workshop {

template <class T>
result<void> settled(result<buffer<T>> made, stream_ref on) {
    KILN_TRY(auto const out, std::move(made));
    if (!on_device(out.where())) return {};
    KILN_TRY(auto waits, fence::make(on, out.device()));
    if (!out.empty()) KILN_CHECK(waits.add(out.data()));
    return waits.wait_sync();
}

}  // namespace kiln::workshop
