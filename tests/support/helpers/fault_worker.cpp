// SPDX-License-Identifier: Apache-2.0
//
// A worker whose "compiler" does what the unit's source text says: the first word is the command, the rest its argument.
//   echo TEXT     succeeds with TEXT as the image
//   hold DIR      writes its pid into DIR, then waits for the file DIR/go
//   turn DIR      the same, and never lets go of the processor
//   quick         succeeds with something an engine believes, as nap does
//   nap FILE      takes 5 ms to compile, until there is the file
//   once FILE     dies by SIGSEGV unless FILE exists, and makes it
//   signal N, exit N, hang, spin, recurse, allocate, abort-for-memory, garbage, wrong-id, hang-up, throw
//   shout N       writes N MiB to its standard error, and succeeds with how many bytes were taken
//   surroundings  succeeds with a description of the process as the image
// The name it is started by selects how it starts: wrong-version, silent, early-exit; anything else is a good start.
#include "compile/precompiled_headers.hpp"
#include "compile/worker_pool.hpp"
#include "compile/worker_process.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <span>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::compile;
namespace fs = std::filesystem;

int number_in(std::string const& text) {
    int out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

[[noreturn]] void hang() {
    for (;;) ::pause();
}

[[noreturn]] void spin() {
    for (int volatile turns = 0;;) turns = turns + 1;
}

void hold(fs::path const& directory) {
    std::ofstream{directory / std::to_string(::getpid())}.put('\n');
    while (!fs::exists(directory / "go")) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

void turn(fs::path const& directory) {
    std::ofstream{directory / std::to_string(::getpid())}.put('\n');
    while (!fs::exists(directory / "go")) continue;
}

[[noreturn]] void allocate() {
    constexpr std::size_t piece = std::size_t{8} << 20;
    for (std::size_t total = 0; total < std::size_t{8} << 30; total += piece) {
        if (::mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            throw std::bad_alloc{};
    }
    throw std::runtime_error{"8 GiB were to be had"};
}

int recurse(int volatile* depth) {
    int volatile here[1024] = {*depth + 1};
    return here[0] < 0 ? 0 : recurse(here) + here[0];
}

void send_bytes(base::byte_span data) {
    static_cast<void>(::send(worker_socket, data.data(), data.size(), MSG_NOSIGNAL));
}

std::string shout(int mebibytes) {
    std::vector<char> const words(std::size_t{1} << 20, '!');
    std::size_t taken = 0;
    for (int i = 0; i < mebibytes; ++i) {
        if (auto const count = ::write(STDERR_FILENO, words.data(), words.size()); count > 0)
            taken += static_cast<std::size_t>(count);
    }
    return std::to_string(taken);
}

std::string surroundings() {
    std::string out =
        fmt::format("cwd={} nice={} sigint={}", fs::current_path().native(), ::getpriority(PRIO_PROCESS, 0),
                    std::signal(SIGINT, SIG_IGN) == SIG_IGN ? "ignored" : "heard");
    ::rlimit core{}, data{};
    ::getrlimit(RLIMIT_CORE, &core);
    ::getrlimit(RLIMIT_DATA, &data);
    auto const mask = ::umask(0);
    out += fmt::format(" core={} data={} umask={:o} fds=", core.rlim_cur,
                       data.rlim_cur == RLIM_INFINITY ? "any" : "bound", mask);
    std::vector<int> fds;
    for (int fd = 0; fd < 256; ++fd) {
        struct ::stat about {};
        if (::fstat(fd, &about) == 0) fds.push_back(fd);
    }
    return out += fmt::format("{}", fmt::join(fds, ","));
}

result<product> with_image(job const& work, std::string_view text) {
    product out{.unit = work.name(), .target = std::get<compile_job>(work.task).target};
    auto const data = base::as_bytes(text);
    out.image.assign(data.begin(), data.end());
    return out;
}

// What an engine believes: the smallest cubin, by a compiler, with the kernels asked for.
result<product> credible(job const& work) {
    auto const& asked = std::get<compile_job>(work.task);
    product out{.unit = work.name(), .target = asked.target, .toolchain = "nvrtc of the fault worker"};
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    auto const bytes = std::as_bytes(std::span{&head, 1});
    out.image.assign(bytes.begin(), bytes.end());
    for (auto const& name : asked.unit.kernels) out.kernels.push_back({name, name});
    return out;
}

result<product> obey(precompiled_headers& kept, job const& work) {
    auto const& text = std::get<compile_job>(work.task).unit.source;
    auto const blank = std::min(text.find(' '), text.size());
    auto const command = text.substr(0, blank);
    auto const argument = text.substr(std::min(text.size(), blank + 1));
    if (command == "hold") hold(argument);
    else if (command == "turn") turn(argument);
    else if (command == "nap" && !fs::exists(argument)) std::this_thread::sleep_for(std::chrono::milliseconds{5});
    else if (command == "once" && !fs::exists(argument)) std::ofstream{argument}.put('\n'), std::raise(SIGSEGV);
    else if (command == "signal") std::raise(number_in(argument));
    else if (command == "exit") ::_exit(number_in(argument));
    else if (command == "hang") hang();
    else if (command == "spin") spin();
    else if (command == "recurse") {
        int volatile zero = 0;
        recurse(&zero);
    } else if (command == "allocate") allocate();
    else if (command == "abort-for-memory") std::fputs("LLVM ERROR: out of memory\n", stderr), std::abort();
    else if (command == "garbage") send_bytes(base::as_bytes("this is not a frame at all")), hang();
    else if (command == "wrong-id")
        send_bytes(*make_frame(frame_kind::failure, encode(numbered_body{.id = ~std::uint64_t{0}, .payload = {}}))),
            hang();
    else if (command == "hang-up") ::shutdown(worker_socket, SHUT_RDWR), hang();
    else if (command == "throw") throw std::runtime_error{argument};
    else if (command == "refuse") {
        auto const missing = argument.substr(0, argument.find(" "));
        kept.read = std::vector<dependency>{{dependency::root::include_directory, 0, missing, {}}};
        return error{errc::compile_failed, argument}.with_log("the log");
    } else if (command == "shout") return with_image(work, shout(number_in(argument)));
    else if (command == "surroundings") return with_image(work, surroundings());
    if (command == "quick" || command == "nap") return credible(work);
    return with_image(work, argument);
}

}  // namespace

int main(int, char** argv) {
    // A death by signal must look like one, not like a sanitizer's report.
    for (int const fatal : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE}) std::signal(fatal, SIG_DFL);
    auto const name = fs::path{argv[0]}.filename();
    if (name == "early-exit") std::fputs("cannot load libexample.so\n", stderr), ::_exit(127);
    if (name == "silent") hang();
    if (name == "wrong-version") {
        send_bytes(
            *make_frame(frame_kind::hello, encode(worker_hello{99, static_cast<std::uint32_t>(::getpid()), "9.9.9"})));
        hang();
    }
    ::_exit(serve_worker(worker_socket, obey));
}
