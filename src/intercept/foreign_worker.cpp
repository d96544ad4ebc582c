// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_worker.hpp"

#include "compile/worker_life.hpp"
#include "compile/worker_protocol.hpp"
#include "intercept/foreign_job.hpp"

#include <kiln/version.hpp>

#include <cerrno>
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

namespace kiln::intercept {

namespace {

// A program that has not compiled for so long has started up; the next time it gets another worker.
constexpr int most_idle_ms = 5000;

// One NVRTC, the first that is asked for: a second one in the same process would share its serial front end and nothing else.
class only_library final : public compiler_library {
public:
    [[nodiscard]] result<void> open(std::string const& path, std::string const& toolchain) {
        if (path == path_ && toolchain == toolchain_) return {};
        if (!path_.empty()) return fail(errc::unsupported, "{}: this worker has another compiler already", path);
        path_ = path;
        toolchain_ = toolchain;
        // The file may have been replaced since the program looked.
        bool const is_there = toolchain_of(path) == toolchain || toolchain_of(path, builtins::beside) == toolchain;
        auto const opened = is_there ? open_compiler(path, toolchain) : opened_compiler{};
        if (!opened.is_watched) return fail(errc::unsupported, "{}: not the compiler that is meant", path);
        handle_ = opened.handle;
        return {};
    }
    [[nodiscard]] void* symbol(char const* name) override { return ::dlsym(handle_, name); }

private:
    std::string path_, toolchain_;
    void* handle_ = nullptr;
};

// A name of which every process has a file of its own: /proc/self/fd/3, /dev/stdin.
bool is_of_each_process(look const& one, look_roots const& roots) {
    auto const path = roots.locate(one).value_or("");
    return path.starts_with("/proc/") || path.starts_with("/dev/fd/") || path.starts_with("/dev/std");
}

result<base::bytes> product_of(base::byte_span job, only_library& library) {
    KILN_TRY(auto const work, decode_foreign_job(job));
    if (::chdir(work.directory.c_str()) != 0) return io_error(work.directory, errno);
    // By that name it may have come elsewhere: through /proc/self/cwd, or under something that was mounted later.
    if (auto const here = viewpoint::of_this_thread(); !here.is_known() || work.seen_from != here)
        return fail(errc::unsupported, "the program sees other files than this worker");
    (void)!::setenv("PWD", work.directory.c_str(), 1);  // what the compiler calls it
    KILN_CHECK(library.open(work.library, work.toolchain));
    real_program fresh{library};
    auto const made = compile_watched(fresh, work.program, work.call);
    for (auto const& one : made.entry.looks) {
        if (is_of_each_process(one, work.call.roots))
            return fail(errc::unsupported, "{}: of the program that is, not of this worker", one.path);
    }
    return encode(made);
}

result<void> serve(int socket) {
    compile::frame_parser parser;
    only_library library;
    compile::worker_hello const hello{compile::worker_protocol_version, static_cast<std::uint32_t>(::getpid()),
                                      std::string{kiln::version}};
    KILN_CHECK(compile::send_frame(socket, compile::frame_kind::hello, compile::encode(hello)));
    compile::end_with_peer_by_signal(socket);
    for (;;) {
        ::pollfd next{socket, POLLIN, 0};
        int ready = -1;
        do ready = ::poll(&next, 1, most_idle_ms);
        while (ready < 0 && errno == EINTR);  // by the signal that may mean the end
        if (ready == 0) return {};
        KILN_TRY(auto const request, compile::receive_frame(socket, parser));
        if (!request) return {};
        if (request->kind != compile::frame_kind::request)
            return fail(errc::corrupt, "worker protocol: a frame that is not a job");
        auto const made = product_of(request->body, library);
        KILN_CHECK(
            made ? compile::send_frame(socket, compile::frame_kind::reply, *made)
                 : compile::send_frame(socket, compile::frame_kind::failure, base::as_bytes(made.error().message())));
    }
}

}  // namespace

int serve_foreign(int socket) {
    compile::settle_in_as_worker();
    remember_compilers(base::config::load());
    try {
        (void)serve(socket);
    } catch (std::exception const&) {  // out of memory: the program compiles itself
        return 1;
    }
    return 0;
}

}  // namespace kiln::intercept
