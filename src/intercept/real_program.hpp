// SPDX-License-Identifier: Apache-2.0
// A program of the real NVRTC, and one compile of it that is watched: in the program that asked for it, or in a worker.
#pragma once

#include "compile/open_hook.hpp"
#include "intercept/compiler_library.hpp"
#include "intercept/foreign_entry.hpp"
#include "intercept/foreign_request.hpp"

#include <utility>

namespace kiln::intercept {

// The status codes of nvrtc.h that Kiln gives itself. All versions agree on them.
enum nvrtc_status : int {
    nvrtc_success = 0,
    nvrtc_out_of_memory = 1,
    nvrtc_invalid_input = 3,
    nvrtc_invalid_program = 4,
    nvrtc_compilation = 6,
    nvrtc_builtin_failure = 7,
    nvrtc_too_late_for_names = 8,
    nvrtc_too_early_for_names = 9,
    nvrtc_bad_expression = 10,
    nvrtc_internal_error = 11,
};

// What a program lets the compiler call while it works.
struct flow_callback {
    int (*function)(void*, void*) = nullptr;
    void* payload = nullptr;
};

// Destroyed with this, unless somebody else takes it.
class real_program {
public:
    explicit real_program(compiler_library& library, void* handle = nullptr) noexcept
        : library_{library}, handle_{handle} {}
    ~real_program();
    real_program(real_program const&) = delete;
    real_program& operator=(real_program const&) = delete;

    // All of these answer with NVRTC's status.
    [[nodiscard]] int create(foreign_program const& asked, std::optional<std::string> const& name,
                             flow_callback const& watcher);
    [[nodiscard]] int compile(std::vector<std::string> const& options);
    // So that compile() has nothing to look for: others may be waiting for this thread then.
    void find_compiler() { (void)library_.symbol("nvrtcCompileProgram"); }
    // The same, where nobody watches.
    [[nodiscard]] int compile_alone(std::vector<std::string> const& options);

    [[nodiscard]] relative_names what_it_makes_of_relative_names();
    [[nodiscard]] foreign_answer everything(std::vector<std::string> const& expressions);
    [[nodiscard]] std::string log();
    [[nodiscard]] void* get() const noexcept { return handle_; }
    [[nodiscard]] void* release() noexcept { return std::exchange(handle_, nullptr); }

private:
    [[nodiscard]] foreign_answer::output output(char const* kind);
    compiler_library& library_;
    void* handle_;
};

struct foreign_product {
    enum class outcome : std::uint8_t {
        made,
        failed,  // the compiler said no: `status`, and what it answers from then on
        unusable,  // what was made would tell a hidden name, or what was read is not known: call it another way. The log says why
    };
    outcome how = outcome::unusable;
    int status = nvrtc_success;
    foreign_entry entry;            // logs have virtual names still
    std::vector<known_file> known;  // of the files that were read
};
[[nodiscard]] foreign_product compile_watched(real_program& fresh, foreign_program const& asked,
                                              foreign_call const& call);

// The same in two halves, for who calls the compiler himself in between. Both arguments must outlive it.
class compile_watch {
public:
    compile_watch(foreign_program const& asked, foreign_call const& call);
    // Why nothing that is made could be used; empty: it may begin.
    [[nodiscard]] std::string const& objection() const noexcept { return objection_; }
    // From here to end() what the compiler opens is seen. Where it calls functions of the program, which may not come back, on this thread alone.
    enum class calls { nobody, the_program };
    void begin(calls whom);
    // With the status that the compiler gave.
    [[nodiscard]] foreign_product end(real_program& made, int status);

private:
    foreign_program const& asked_;
    foreign_call const& call_;
    compile::texts_together const own_;
    std::string objection_;
    look_capture capture_;
    std::optional<compile::scoped_capture> active_;
    std::optional<compile::thread_capture> active_here_;
};

}  // namespace kiln::intercept
