// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <unistd.h>

namespace kiln::python {

without_gil::~without_gil() {
    if (ending.load(std::memory_order_relaxed) && ::gettid() != ::getpid()) {
        for (;;) ::pause();
    }
    PyEval_RestoreThread(state_);
}

}  // namespace kiln::python
