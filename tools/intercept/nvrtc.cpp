// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libnvrtc.so.N. A program is a record of what was asked. nvrtcCompileProgram answers from the store, or compiles
// with the real library and keeps every answer it can give. Whatever cannot be answered so (asking before
// compiling, compiling twice, options with effects, functions nobody knows) makes a real program of the record, and from then
// on the real library answers. Status codes are NVRTC's.
#include "nvrtc_program.hpp"

#include "forward.hpp"

#include <cstring>
#include <set>

namespace kiln::intercept {
namespace {

constexpr int bad_input = nvrtc_invalid_input;
constexpr int bad_program = nvrtc_invalid_program;

live_handles<program>& handles() {
    static constinit base::made_once<live_handles<program>> all;
    return all.get([] { return std::make_unique<live_handles<program>>(); });
}

template <class Body>
int with(Body body) noexcept {
    return guarded(nvrtc_out_of_memory, nvrtc_internal_error, body);
}

// A handle that is not ours is the real library's, if that can be.
template <class... Arguments>
int foreign(char const* name, Arguments... arguments) {
    auto& real = self().real;
    return real.may_have_made_some() ? real.call(name, nvrtc_builtin_failure, arguments...) : bad_program;
}

template <class... Arguments>
int real_call(char const* name, Arguments... arguments) {
    return self().real.call(name, nvrtc_builtin_failure, arguments...);
}

int size_of(void* handle, char const* name, char const* function, std::size_t* size) {
    if (handle == nullptr) return bad_program;
    auto* const p = handles().find(handle);
    if (p == nullptr) return foreign(function, handle, size);
    if (size == nullptr) return bad_input;
    auto const* const known = p->known();
    if (known == nullptr) return real_call(function, p->as_real(), size);
    auto const* const out = known->find(name);
    if (out == nullptr) return bad_program;
    if (out->status == 0) *size = out->data.size();
    return out->status;
}

int data_of(void* handle, char const* name, char const* function, char* data) {
    if (handle == nullptr) return bad_program;
    auto* const p = handles().find(handle);
    if (p == nullptr) return foreign(function, handle, data);
    if (data == nullptr) return bad_input;
    auto const* const known = p->known();
    if (known == nullptr) return real_call(function, p->as_real(), data);
    auto const* const out = known->find(name);
    if (out == nullptr) return bad_program;
    if (out->status == 0) std::memcpy(data, out->data.data(), out->data.size());
    return out->status;
}

}  // namespace
}  // namespace kiln::intercept

using namespace kiln::intercept;

#define KILN_API extern "C" __attribute__((visibility("default")))

KILN_API char const* nvrtcGetErrorString(int status) {
    static char const* const known[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "NVRTC_ERROR_INVALID_INPUT",
                                        "NVRTC_ERROR_INVALID_PROGRAM",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION",
                                        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                        "NVRTC_ERROR_INTERNAL_ERROR"};
    if (status >= 0 && status < static_cast<int>(std::size(known))) return known[status];
    // Later ones differ between versions.
    not_cancelled const whole;
    auto* const f = reinterpret_cast<char const* (*)(int)>(self().real.symbol("nvrtcGetErrorString"));
    return f == nullptr ? "NVRTC_ERROR unknown" : f(status);
}

KILN_API int nvrtcVersion(int* major, int* minor) {
    if (major == nullptr || minor == nullptr) return nvrtc_invalid_input;
    return with([&] {
        auto const* const known = compiler_facts();
        if (known == nullptr) return nvrtc_internal_error;
        *major = known->major;
        *minor = known->minor;
        return nvrtc_success;
    });
}

KILN_API int nvrtcGetNumSupportedArchs(int* count) {
    if (count == nullptr) return nvrtc_invalid_input;
    return with([&] {
        auto const* const known = compiler_facts();
        if (known == nullptr) return nvrtc_internal_error;
        *count = static_cast<int>(known->archs.size());
        return nvrtc_success;
    });
}

KILN_API int nvrtcGetSupportedArchs(int* archs) {
    if (archs == nullptr) return nvrtc_invalid_input;
    return with([&] {
        auto const* const known = compiler_facts();
        if (known == nullptr) return nvrtc_internal_error;
        std::copy(known->archs.begin(), known->archs.end(), archs);
        return nvrtc_success;
    });
}

KILN_API int nvrtcCreateProgram(void** handle, char const* source, char const* name, int count,
                                char const* const* texts, char const* const* names) {
    if (handle == nullptr) return nvrtc_invalid_program;
    if (source == nullptr || count < 0 || (count > 0 && (texts == nullptr || names == nullptr)))
        return nvrtc_invalid_input;
    return with([&] {
        std::set<std::string_view> different;
        for (int i = 0; i < count; ++i) {
            if (texts[i] == nullptr || names[i] == nullptr || !different.insert(names[i]).second)
                return foreign_create(handle, source, name, count, texts, names);
        }
        auto made = std::make_unique<program>();
        made->asked.source = source;
        if (name != nullptr) made->asked.name = name;
        for (int i = 0; i < count; ++i) made->asked.headers.emplace_back(names[i], texts[i]);
        *handle = handles().add(made.get());
        made.release();
        return int{nvrtc_success};
    });
}

KILN_API int nvrtcDestroyProgram(void** handle) {
    if (handle == nullptr || *handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        std::unique_ptr<program> const p{handles().take(*handle)};
        if (!p) return foreign("nvrtcDestroyProgram", handle);
        *handle = nullptr;
        return p->real == nullptr ? int{nvrtc_success} : real_call("nvrtcDestroyProgram", &p->real);
    });
}

namespace {

compile_begun begin_to_compile(void* handle, int count, char const* const* options) {
    auto* const p = handles().find(handle);
    if (p == nullptr) {
        if (!self().real.may_have_made_some()) return {.status = bad_program, .steps = nullptr};
        return compile_as_it_is(handle, count, options);
    }
    if (count < 0) return {.status = nvrtc_invalid_input, .steps = nullptr};
    std::vector<std::string> given;
    for (int i = 0; i < count; ++i) {
        if (options == nullptr || options[i] == nullptr) return compile_as_it_is(p->as_real_again(), count, options);
        given.emplace_back(options[i]);
    }
    return compile_program(*p, std::move(given));
}

// What can throw, or has something to destroy, is in these two and not in nvrtcCompileProgram(): see compile_steps.
[[gnu::noinline]] int begin(void* handle, int count, char const* const* options, compile_steps*& steps) {
    return with([&] {
        auto begun = begin_to_compile(handle, count, options);
        steps = begun.steps.release();
        return begun.status;
    });
}

[[gnu::noinline]] int go_on(compile_steps*& steps, int said) {
    std::unique_ptr<compile_steps> whole{std::exchange(steps, nullptr)};
    return with([&] {
        auto const status = whole->go_on(said);
        if (!status) steps = whole.release();
        return status.value_or(nvrtc_success);
    });
}

int call_next(compile_steps const& steps) {
    auto const& next = steps.next;
    if (next.watcher.function != nullptr) return next.watcher.function(next.watcher.payload, nullptr);
    int before = PTHREAD_CANCEL_ENABLE;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (next.cancelling != nullptr) *next.cancelling = before;
    int const said = next.compile(next.program, next.count, next.options);
    ::pthread_setcancelstate(before, nullptr);
    return said;
}

}  // namespace

KILN_API int nvrtcCompileProgram(void* handle, int count, char const* const* options) {
    if (handle == nullptr) return nvrtc_invalid_program;
    compile_steps* steps = nullptr;
    int status = begin(handle, count, options, steps);
    while (steps != nullptr) status = go_on(steps, call_next(*steps));
    return status;
}

KILN_API int nvrtcAddNameExpression(void* handle, char const* expression) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcAddNameExpression", handle, expression);
        if (expression == nullptr) return int{nvrtc_invalid_input};
        if (p->real != nullptr || p->failure) return real_call("nvrtcAddNameExpression", p->as_real(), expression);
        if (p->answer) return int{nvrtc_too_late_for_names};
        p->asked.expressions.emplace_back(expression);
        return int{nvrtc_success};
    });
}

KILN_API int nvrtcGetLoweredName(void* handle, char const* expression, char const** name) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcGetLoweredName", handle, expression, name);
        if (expression == nullptr || name == nullptr) return int{nvrtc_invalid_input};
        if (p->real != nullptr || p->failure) return real_call("nvrtcGetLoweredName", p->as_real(), expression, name);
        *name = nullptr;
        if (!p->answer) return int{nvrtc_too_early_for_names};
        for (auto const& [asked, lowered] : p->answer->lowered) {
            if (asked != expression) continue;
            *name = lowered.c_str();
            return int{nvrtc_success};
        }
        return int{nvrtc_bad_expression};
    });
}

KILN_API int nvrtcGetProgramLogSize(void* handle, std::size_t* size) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcGetProgramLogSize", handle, size);
        if (size == nullptr) return int{nvrtc_invalid_input};
        auto const* const known = p->log();
        if (known == nullptr) return real_call("nvrtcGetProgramLogSize", p->as_real(), size);
        *size = known->size();
        return int{nvrtc_success};
    });
}

KILN_API int nvrtcGetProgramLog(void* handle, char* log) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcGetProgramLog", handle, log);
        if (log == nullptr) return int{nvrtc_invalid_input};
        auto const* const known = p->log();
        if (known == nullptr) return real_call("nvrtcGetProgramLog", p->as_real(), log);
        std::memcpy(log, known->data(), known->size());
        return int{nvrtc_success};
    });
}

#define KILN_OUTPUT(kind)                                                                   \
    KILN_API int nvrtcGet##kind##Size(void* handle, std::size_t* size) {                    \
        return with([&] { return size_of(handle, #kind, "nvrtcGet" #kind "Size", size); }); \
    }                                                                                       \
    KILN_API int nvrtcGet##kind(void* handle, char* data) {                                 \
        return with([&] { return data_of(handle, #kind, "nvrtcGet" #kind, data); });        \
    }
KILN_OUTPUT(PTX)
KILN_OUTPUT(CUBIN)
KILN_OUTPUT(LTOIR)
KILN_OUTPUT(OptiXIR)
KILN_OUTPUT(NVVM)
KILN_OUTPUT(TileIR)

KILN_API int nvrtcSetFlowCallback(void* handle, int (*callback)(void*, void*), void* payload) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcSetFlowCallback", handle, callback, payload);
        bool const is_real = p->real != nullptr || p->failure;
        if (callback == nullptr) return real_call("nvrtcSetFlowCallback", p->as_real(), callback, payload);
        if (is_real) (void)p->as_real();
        p->watcher = {callback, payload};
        if (!is_real) return int{nvrtc_success};
        auto const heard = p->relay();
        return real_call("nvrtcSetFlowCallback", p->real, heard.function, heard.payload);
    });
}

// Precompiled headers are the real library's affair, and so is its heap for them.
KILN_API int nvrtcSetPCHHeapSize(std::size_t size) {
    return with([&] { return real_call("nvrtcSetPCHHeapSize", size); });
}
KILN_API int nvrtcGetPCHHeapSize(std::size_t* size) {
    return with([&] { return real_call("nvrtcGetPCHHeapSize", size); });
}

KILN_API int nvrtcGetPCHCreateStatus(void* handle) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcGetPCHCreateStatus", handle);
        if (!p->answer) return real_call("nvrtcGetPCHCreateStatus", p->as_real());
        return p->answer->pch_status;
    });
}

KILN_API int nvrtcGetPCHHeapSizeRequired(void* handle, std::size_t* size) {
    if (handle == nullptr) return nvrtc_invalid_program;
    return with([&] {
        auto* const p = handles().find(handle);
        if (p == nullptr) return foreign("nvrtcGetPCHHeapSizeRequired", handle, size);
        return real_call("nvrtcGetPCHHeapSizeRequired", p->as_real(), size);
    });
}

namespace {
int unavailable() { return nvrtc_builtin_failure; }
}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) void* kiln_forward(char const* name, long* first) {
    void* to = nullptr;
    (void)with([&] {
        if (auto* const p = handles().find(reinterpret_cast<void*>(*first)))
            *first = reinterpret_cast<long>(p->as_real());
        self().tell({.kind = happening::what::forwarded, .detail = name});
        to = self().real.symbol(name);
        return 0;
    });
    return to == nullptr ? reinterpret_cast<void*>(&unavailable) : to;
}

KILN_FORWARD(__nvrtcCPEx);
KILN_FORWARD(__nvrtcNvvmHandle);
KILN_FORWARD(nvrtcGetBundledHeadersInfo);
KILN_FORWARD(nvrtcInstallBundledHeaders);
KILN_FORWARD(nvrtcRemoveBundledHeaders);
