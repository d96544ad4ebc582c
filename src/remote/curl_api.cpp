// SPDX-License-Identifier: Apache-2.0
#include "remote/curl_api.hpp"

#include "base/exit_gate.hpp"
#include "base/fork_guard.hpp"
#include "base/load_library.hpp"
#include "base/standard_streams.hpp"
#include "remote/curl_numbers.hpp"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

struct loaded_curl {
    curl_api api{};
    std::string why;
};

loaded_curl load() {
    loaded_curl out;
    void* library = nullptr;
    for (auto const* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"}) {
        library = base::load_library(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
    }
    if (library == nullptr) {
        out.why = "libcurl is not on this machine: install libcurl4";
        return out;
    }
    auto const get = [&](auto& entry, char const* name) {
        entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
        if (entry == nullptr && out.why.empty())
            out.why = fmt::format("libcurl has no {}: 7.80 or newer is needed", name);
    };
    int (*global_init)(long) = nullptr;
    get(global_init, "curl_global_init");
    get(out.api.easy_init, "curl_easy_init");
    get(out.api.easy_setopt, "curl_easy_setopt");
    get(out.api.easy_getinfo, "curl_easy_getinfo");
    get(out.api.easy_cleanup, "curl_easy_cleanup");
    get(out.api.easy_perform, "curl_easy_perform");
    get(out.api.easy_send, "curl_easy_send");
    get(out.api.easy_recv, "curl_easy_recv");
    get(out.api.easy_strerror, "curl_easy_strerror");
    get(out.api.slist_append, "curl_slist_append");
    get(out.api.slist_free_all, "curl_slist_free_all");
    get(out.api.multi_init, "curl_multi_init");
    get(out.api.multi_setopt, "curl_multi_setopt");
    get(out.api.multi_add_handle, "curl_multi_add_handle");
    get(out.api.multi_remove_handle, "curl_multi_remove_handle");
    get(out.api.multi_perform, "curl_multi_perform");
    get(out.api.multi_poll, "curl_multi_poll");
    get(out.api.multi_info_read, "curl_multi_info_read");
    get(out.api.multi_cleanup, "curl_multi_cleanup");
    if (!out.why.empty()) return out;
    // The OpenSSL that this libcurl stands on need not be ours.
    int (*init_openssl)(std::uint64_t, void const*) = nullptr;
    init_openssl = reinterpret_cast<decltype(init_openssl)>(::dlsym(library, "OPENSSL_init_crypto"));
    if (init_openssl != nullptr) init_openssl(base::openssl_without_cleanup, nullptr);
    global_init(3);
    return out;
}

// As libcurl hands it over.
struct wanted_socket {
    int family, type, protocol;
    unsigned address_bytes;
    ::sockaddr address;
};
int open_socket(void*, int, wanted_socket const* what) noexcept {
    int const fd =
        base::above_standard_streams([&] { return ::socket(what->family, what->type | SOCK_CLOEXEC, what->protocol); });
    if (fd >= 0) (void)base::close_in_child(fd);
    return fd;
}
int close_socket(void*, int fd) noexcept {
    base::forget_in_child(fd);
    return ::close(fd);
}

}  // namespace

// No mutex that fork() waits for: whoever forks may have the loader's lock, which the one that loads waits for. The child of a fork() that did not
// wait to the end has one of its own.
result<curl_api const*> load_curl() {
    struct only_one {
        std::mutex mutex;
        std::optional<loaded_curl> it;
    };
    using of_each_process = base::per_process<only_one>;
    static constinit base::made_once<of_each_process> all;
    auto& here =
        all.get([] { return std::make_unique<of_each_process>([] { return std::make_unique<only_one>(); }); }).get();
    std::lock_guard const lock{here.mutex};
    if (!here.it) {
        base::no_fork_meanwhile const whole;
        here.it.emplace(load());
    }
    if (!here.it->why.empty()) return fail(errc::not_found, "{}", here.it->why);
    return &here.it->api;
}

void close_in_children(curl_api const& a, curl_api::handle easy) {
    (void)a.easy_setopt(easy, curl::option::open_socket, &open_socket);
    (void)a.easy_setopt(easy, curl::option::close_socket, &close_socket);
}

// The first of the chain is the server's own.
std::string certificate_of(curl_api const& a, curl_api::handle easy) {
    constexpr std::string_view name = "Cert:";
    curl_api::certificates* all = nullptr;
    if (a.easy_getinfo(easy, curl::info::certificates, &all) != 0 || all == nullptr || all->count < 1) return {};
    for (auto const* line = all->each[0]; line != nullptr; line = line->next) {
        std::string_view const text{line->data};
        if (text.starts_with(name)) return std::string{text.substr(name.size())};
    }
    return {};
}

trouble trouble_of(int code) noexcept {
    constexpr std::array tls{35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98};
    if (std::ranges::find(tls, code) != tls.end()) return trouble::tls;
    switch (code) {
        case 5:
        case 6:
        case 7: return trouble::connect;
        case 28: return trouble::timeout;
        case 18:
        case 52:
        case 55:
        case 56: return trouble::cut;
        default: return trouble::protocol;
    }
}

}  // namespace kiln::remote
