// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include "module.hpp"

#include <kiln/event.hpp>

#include <nanobind/stl/string.h>

#include <unistd.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace kiln::python {

namespace {

struct reference {
    PyObject* object;
    reference* next;
};

// References let go by threads without the lock, until the main thread drops them. Never destroyed: deleters of exported arrays may come
// after everything else. Letting go needs no memory: it may happen because there is none.
constinit std::mutex mutex;
constinit reference* waiting = nullptr;
constinit bool told = false;
static_assert(std::is_trivially_destructible_v<std::mutex>);

int drop_all(void*) {
    reference* mine = nullptr;
    {
        std::lock_guard const lock{mutex};
        mine = std::exchange(waiting, nullptr);
        told = false;
    }
    while (mine != nullptr) {
        std::unique_ptr<reference> const one{std::exchange(mine, mine->next)};
        Py_DECREF(one->object);
    }
    return 0;
}

void drop_later(reference* gone) noexcept {
    if (ending.load(std::memory_order_relaxed)) return;
    std::lock_guard const lock{mutex};
    gone->next = std::exchange(waiting, gone);
    if (!told) told = Py_AddPendingCall(&drop_all, nullptr) == 0;
}

}  // namespace

namespace {

// Around taking the lock; a thread of an interpreter that ends does not come out of it.
class taking {
public:
    taking() noexcept {
        // In this order, and both in the one order that all threads see: whoever ends the interpreter sees this thread, or this thread the end.
        taking_lock.fetch_add(1);
        if (!ending.load() || ::gettid() == ::getpid()) return;
        taking_lock.fetch_sub(1);
        for (;;) ::pause();
    }
    ~taking() { taking_lock.fetch_sub(1); }
    taking(taking const&) = delete;
    taking& operator=(taking const&) = delete;
};

}  // namespace

without_gil::~without_gil() {
    taking const now;
    PyEval_RestoreThread(state_);
}

with_gil::with_gil() noexcept {
    taking const now;
    state_ = PyGILState_Ensure();
}

namespace {

// A program that has not imported logging hears nothing, and importing it takes longer than what was asked for. What there is to say is kept
// until it has.
bool has_logging() {
    PyObject* const modules = PyImport_GetModuleDict();
    return modules != nullptr && PyDict_GetItemString(modules, "logging") != nullptr;
}

}  // namespace

void pass_on_warnings() {
    static std::atomic<std::uint64_t> passed_on{0};   // how many
    static std::atomic<std::uint64_t> next{0};        // the first sequence number that was not
    auto& log = event_log::process();
    auto const count = log.count(event_kind::warned) + log.count(event_kind::fell_back);
    auto before = passed_on.load(std::memory_order_relaxed);
    if (count == before || !has_logging()) return;
    // Where two threads come together, one of them does it.
    if (!passed_on.compare_exchange_strong(before, count)) return;
    namespace nb = nanobind;
    try {
        auto const tell = nb::module_::import_("kiln._logging").attr("tell");
        for (auto const& e : log.recent()) {
            if ((e.kind != event_kind::warned && e.kind != event_kind::fell_back) || e.sequence < next.load(std::memory_order_relaxed)) continue;
            next.store(e.sequence + 1, std::memory_order_relaxed);
            tell(std::string{name_of(e.kind)}, text_of(e.unit.view()), text_of(e.reason.view()), text_of(e.detail.view()));
        }
    } catch (nb::python_error& e) {
        // Ctrl-C while a handler of the program's writes: it comes again as soon as the caller has its answer.
        if (e.matches(PyExc_KeyboardInterrupt)) {
            PyErr_SetInterrupt();
        } else {
            e.discard_as_unraisable("kiln: passing on a warning");
        }
    }
}

std::shared_ptr<void const> kept(nanobind::handle object) {
    auto one = std::make_unique<reference>(reference{object.ptr(), nullptr});
    object.inc_ref();
    return std::shared_ptr<reference const>{one.release(), [](reference const* held) { drop_later(const_cast<reference*>(held)); }};
}

}  // namespace kiln::python
