// SPDX-License-Identifier: Apache-2.0
//
// What threads of ours may use while the program ends. OpenSSL, and what libcurl stands on, clean up as the program exits; a thread that
// signs or speaks TLS at that moment, or that nobody waited for any longer, would use what is gone, and the program would end by a signal.
#pragma once

#include <cstdint>

namespace kiln::base {

// OpenSSL is told to leave its memory to the end of the process, as nobody else reads it then. A program that has initialised OpenSSL itself
// has decided already.
void keep_openssl() noexcept;
// For OPENSSL_init_crypto() of another copy.
inline constexpr std::uint64_t openssl_without_cleanup = 0x0008'0000;

// The same, and the gate below is closed at exit. Call it before anything is registered that stops threads at exit or waits for what they
// do: what was registered later runs earlier, so that all of that comes first, and what the program itself initialised before is cleaned up
// after the gate is closed.
void close_gate_at_exit() noexcept;

// Around every use of such a library by a thread that exit() does not wait for. Where it is false the gate is closed: leave the library alone.
// Who is inside when it closes is waited for, for a moment; and so he is by fork(), because the locks of these libraries are nobody's in
// the child. Not while waiting for anybody else.
enum class stay : std::uint8_t { a_moment, until_answered };  // by a server
class library_use {
public:
    explicit library_use(stay how = stay::a_moment) noexcept;
    ~library_use();
    library_use(library_use const&) = delete;
    library_use& operator=(library_use const&) = delete;
    [[nodiscard]] explicit operator bool() const noexcept { return is_inside_; }

private:
    stay how_;
    bool is_inside_;
};

[[nodiscard]] bool is_gate_closed() noexcept;

// For fork_guard: nobody comes in until fork() is over.
void wait_for_library_users() noexcept;
void let_library_users_go_on() noexcept;
void forget_library_users_of_parent() noexcept;

}  // namespace kiln::base
