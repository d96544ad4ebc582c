// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <unistd.h>

#include <mutex>
#include <vector>

namespace kiln::python {

namespace {

// References let go by threads without the lock, until the main thread drops them. Neither is ever destroyed: deleters of exported
// arrays may come after everything else.
struct dropped_references {
    std::mutex mutex;
    std::vector<PyObject*> waiting;
    bool told = false;
};
dropped_references& dropped() {
    static auto& all = *new dropped_references;
    return all;
}

int drop_all(void*) {
    std::vector<PyObject*> mine;
    {
        std::lock_guard const lock{dropped().mutex};
        mine.swap(dropped().waiting);
        dropped().told = false;
    }
    for (auto* const object : mine) Py_DECREF(object);
    return 0;
}

void drop_later(PyObject* object) noexcept {
    if (ending.load(std::memory_order_relaxed)) return;
    auto& all = dropped();
    std::lock_guard const lock{all.mutex};
    all.waiting.push_back(object);
    if (!all.told) all.told = Py_AddPendingCall(&drop_all, nullptr) == 0;
}

}  // namespace

without_gil::~without_gil() {
    if (ending.load(std::memory_order_relaxed) && ::gettid() != ::getpid()) {
        for (;;) ::pause();
    }
    PyEval_RestoreThread(state_);
}

std::shared_ptr<void const> kept(nanobind::handle object) {
    return {static_cast<void const*>(object.inc_ref().ptr()), [](void const* held) { drop_later(static_cast<PyObject*>(const_cast<void*>(held))); }};
}

}  // namespace kiln::python
