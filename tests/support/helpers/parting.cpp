// SPDX-License-Identifier: Apache-2.0
//
// A program that ends while what it made is being signed and sent to KILN_REMOTE:
//
//     parting process|static|late [first|later|asks|forks]
//
// It uses the process's engine, one that is a static of a function, or one that is destroyed after everything else. With `first` it
// initialises OpenSSL before there is an engine, with `later` as soon as there is one. With `asks` it asks for one more at the very end,
// when the engine has ended; with `forks` a child of it does all this with its engine. Its compiler is none.
#include "support/pretended_compiler.hpp"

#include <openssl/crypto.h>

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;

constexpr int units = 40;

std::unique_ptr<engine> last_of_all;

engine& engine_of(std::string_view kind) {
    if (kind == "process") return engine::process();
    if (kind == "late") return *(last_of_all = std::make_unique<engine>());
    static engine one;
    return one;
}

engine* asked = nullptr;
void ask_for_one_more() { (void)test::get_sync(*asked, test::unit_called("one_more")); }

void use_openssl() { (void)OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, nullptr); }

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    std::string_view const when = count > 2 ? arguments[2] : "";
    // Registered first, it runs after all that is registered from now on: threads that were left behind go on meanwhile.
    std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds{300}); });
    ::alarm(60);
    if (when == "asks") std::atexit(ask_for_one_more);
    if (when == "first") use_openssl();
    auto& e = engine_of(arguments[1]);
    asked = &e;
    if (when == "later") use_openssl();
    test::compile_by(e, event_log::process(), [](compile::job const& j) { return test::product_of(j, "image"); });
    if (auto const child = when == "forks" ? ::fork() : 0; child != 0) {
        int status = -1;
        return ::waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
    }
    // All at once, so that there is much to be sent at the end.
    std::vector<pending<obtained>> all;
    auto const t = target::parse("sm_90").value();
    for (int i = 0; i < units; ++i) {
        auto const u = test::unit_called("k" + std::to_string(i));
        all.push_back(e.internals().requests->ask(test::order_of(u, t), priority::declared).answer);
    }
    int wrong = 0;
    for (auto const& one : all) wrong += one.wait_sync() ? 0 : 1;
    std::printf("%d wrong\n", wrong);
    std::fflush(stdout);
    (void)std::getchar();  // until something is being sent
    return wrong;
}
