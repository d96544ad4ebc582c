// SPDX-License-Identifier: Apache-2.0
//
// A worker's life: say hello, take its limits, then run one job after the other until the parent hangs up. The main
// thread reads and compiles; a second thread does nothing but wait for the hang-up, because a compile cannot be
// interrupted and must not outlive whoever asked for it.
#include "compile/precompiled_headers.hpp"
#include "compile/worker_life.hpp"
#include "compile/worker_pool.hpp"
#include "compile/worker_protocol.hpp"
#include "cuda/nvrtc_api.hpp"

#include <kiln/version.hpp>

#include <cerrno>
#include <cstdio>
#include <malloc.h>
#include <new>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr int exit_done = 0, exit_protocol = 2;
constexpr int idle_before_trim_ms = 250;

// Bytes of private writable memory mapped now, which is what RLIMIT_DATA counts.
std::uint64_t mapped_data() {
    unsigned long long pages = 0;
    if (auto* const file = std::fopen("/proc/self/statm", "re")) {
        if (std::fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void apply(worker_limits const& limits) {
    // 0 is a parent in another pid namespace, which cannot be told from here.
    if (auto const parent = ::getppid(); parent != 0 && parent != static_cast<pid_t>(limits.parent)) ::_exit(exit_done);
    if (limits.memory == 0) return;
    // RLIMIT_DATA, not RLIMIT_AS: reserving addresses is free, and the compiler, the driver and the sanitizers do it
    // lavishly. Counted from what is mapped already, because a sanitizer's shadow is terabytes of it.
    auto const bound = mapped_data() + limits.memory;
    ::rlimit const data{bound, bound};
    ::setrlimit(RLIMIT_DATA, &data);
}

// NVRTC passes a lack of memory off as an error in the source: with these words in its log, or with no log at all. Believed,
// it would be the caller's fault for ever.
bool lacked_memory(error const& why) {
    if (why.log().find("catastrophic error: out of memory") != std::string::npos) return true;
    return why.code() == errc::compile_failed && why.status() == NVRTC_ERROR_COMPILATION && why.log().empty();
}

result<product> run_guarded(job const& work, precompiled_headers& kept, worker_runner const& run) {
    try {
        auto outcome = run(kept, work);
        if (outcome || !lacked_memory(outcome.error())) return outcome;
        return fail(errc::out_of_memory, "{}: the compiler ran out of memory", work.name())
            .with_log(outcome.error().log());
    } catch (std::bad_alloc const&) {
        return fail(errc::out_of_memory, "{}: the compiler ran out of memory", work.name());
    } catch (std::exception const& e) {
        return fail(errc::internal, "{}: {}", work.name(), e.what());
    }
}

struct answered {
    std::uint64_t id = 0;
    header_use headers = header_use::plain;
    std::optional<std::vector<dependency>> read = {};  // by what failed
};

result<void> answer(int socket, answered const& what, result<product> const& made) {
    if (made) {
        auto const payload = encode(*made);
        auto sent = send_frame(socket, frame_kind::reply, encode(numbered_body{what.id, what.headers, payload}));
        if (sent || sent.error().code() != errc::invalid_argument) return sent;
        return answer(socket, what, std::move(sent).error());
    }
    auto const payload = encode(failure{made.error(), what.read});
    return send_frame(socket, frame_kind::failure, encode(numbered_body{what.id, what.headers, payload}));
}

result<void> serve_job(int socket, frame const& request, precompiled_headers& kept, worker_runner const& run) {
    KILN_TRY(auto const body, decode_numbered(request.body));
    if (body.nice > 0) ::setpriority(PRIO_PROCESS, 0, body.nice);
    auto work = decode_job(body.payload);
    if (!work) return answer(socket, {body.id}, std::move(work).error());
    precompiled_headers none{0};
    auto& used = body.headers == header_use::plain ? none : kept;
    auto const made = run_guarded(*work, used, run);
    return answer(socket, {body.id, used.last, made ? std::nullopt : std::exchange(used.read, {})}, made);
}

// A front end leaves hundreds of megabytes of free lists behind; they go back once no job has come for a while.
void trim_when_idle(int socket) {
    ::pollfd next{socket, POLLIN, 0};
    if (::poll(&next, 1, idle_before_trim_ms) == 0) ::malloc_trim(0);
}

result<void> serve(int socket, worker_runner const& run) {
    frame_parser parser;
    KILN_CHECK(send_frame(socket, frame_kind::hello,
                          encode(worker_hello{worker_protocol_version, static_cast<std::uint32_t>(::getpid()),
                                              std::string{kiln::version}})));
    KILN_TRY(auto const first, receive_frame(socket, parser));
    if (!first) return {};
    if (first->kind != frame_kind::configure)
        return fail(errc::corrupt, "worker protocol: the first frame is not 'configure'");
    KILN_TRY(auto const limits, decode_limits(first->body));
    apply(limits);
    end_with_peer(socket);
    precompiled_headers kept{limits.precompiled};
    for (;;) {
        KILN_TRY(auto const request, receive_frame(socket, parser));
        if (!request) return {};
        if (request->kind != frame_kind::request)
            return fail(errc::corrupt, "worker protocol: a frame that is not a job");
        KILN_CHECK(serve_job(socket, *request, kept, run));
        trim_when_idle(socket);
    }
}

}  // namespace

int serve_worker(int socket, worker_runner const& run) {
    settle_in_as_worker();
    auto const served = serve(socket, run);
    // A parent that went away is the usual end; anything else goes where the parent looks for last words.
    if (served || served.error().code() == errc::io) return exit_done;
    std::fprintf(stderr, "kiln-worker: %s\n", served.error().message().c_str());
    return exit_protocol;
}

}  // namespace kiln::compile
