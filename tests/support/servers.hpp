// SPDX-License-Identifier: Apache-2.0
// Real servers on loopback, on ports that were free, ended by their process. Where a program is not installed its name is in
// missing().
#pragma once

#include "base/files.hpp"
#include "support/actor.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <sys/socket.h>

namespace kiln::test {

inline std::optional<std::string> program_named(std::string const& name) {
    std::stringstream path{std::string{std::getenv("PATH") != nullptr ? std::getenv("PATH") : ""} +
                           ":/usr/sbin:/usr/bin"};
    for (std::string folder; std::getline(path, folder, ':');) {
        auto file = folder + "/" + name;
        if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
    }
    return std::nullopt;
}

// Free a moment ago: whoever listens there next is us, or the test fails to start its server and says so. Below those that
// Linux gives to who connects, so that no client of another test sits on it by the time the server is there.
inline std::uint16_t free_port() {
    unsigned lowest_of_clients = 32768;
    std::ifstream{"/proc/sys/net/ipv4/ip_local_port_range"} >> lowest_of_clients;
    lowest_of_clients = std::max(lowest_of_clients, 4096u);
    std::random_device any;
    for (int tries = 0; tries < 1000; ++tries) {
        auto const port = static_cast<std::uint16_t>(lowest_of_clients / 2 + any() % (lowest_of_clients / 2));
        base::file_descriptor const s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ::sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(port);
        if (::bind(s.get(), reinterpret_cast<::sockaddr*>(&a), sizeof a) == 0) return port;
    }
    return 0;
}

inline base::file_descriptor connect_to(std::uint16_t port) {
    base::file_descriptor s{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(port);
    if (::connect(s.get(), reinterpret_cast<::sockaddr*>(&a), sizeof a) != 0) s.reset();
    return s;
}

// Until somebody listens there; a server has no other way of saying so.
inline bool wait_for_port(std::uint16_t port) {
    auto const end = base::clock::now() + std::chrono::seconds{20};
    while (base::clock::now() < end) {
        if (connect_to(port)) return true;
        ::usleep(2'000);
    }
    return false;
}

class redis_process {
public:
    static std::string missing() { return program_named("redis-server") ? "" : "redis-server"; }

    explicit redis_process(std::vector<std::string> more = {}, std::uint16_t port = free_port(),
                           std::vector<std::string> variables = {})
        : port_{port} {
        std::vector<std::string> arguments{"--port", std::to_string(port_), "--bind", "127.0.0.1",   "--save",
                                           "",       "--appendonly",        "no",     "--daemonize", "no",
                                           "--dir",  scratch_.path()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        process_.emplace(arguments, std::move(variables), *program_named("redis-server"));
        // Its log is read up to here; what follows fits into the pipe.
        for (auto line = process_->line(); !line.empty() || process_->pid() > 0; line = process_->line()) {
            if (line.find("Ready to accept") != line.npos) break;
            if (line.empty() && ++empty_ > 200) break;
        }
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] ::pid_t pid() const { return process_->pid(); }
    void signal(int number) { process_->signal(number); }
    void kill() { process_.reset(); }

    // What it says to one command written by hand; "+OK", "$5...", as on the wire.
    std::string say(std::string const& command) {
        auto const s = connect_to(port_);
        auto const line = command + "\r\n";
        (void)!::write(s.get(), line.data(), line.size());
        std::string out(1 << 16, '\0');
        auto const n = ::read(s.get(), out.data(), out.size());
        out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return out;
    }

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-redis").value();
    std::uint16_t port_;
    std::optional<actor> process_;
    int empty_ = 0;
};

// nginx that takes PUT below /k/, as many people have it.
class nginx_process {
public:
    static std::string missing() { return program_named("nginx") ? "" : "nginx"; }

    explicit nginx_process(std::string const& more = {}) {
        auto const root = scratch_.path();
        base::make_directories(root / "www" / "k").value();
        base::make_directories(root / "tmp").value();
        std::string const user = ::geteuid() == 0 ? "user root;" : "";
        auto const conf = user + "daemon off; master_process off; pid " + (root / "pid").native() + "; error_log " +
                          (root / "error.log").native() +
                          ";\nevents {}\nhttp { access_log off; client_max_body_size 64m; client_body_temp_path " +
                          (root / "tmp").native() + "; proxy_temp_path " + (root / "tmp").native() +
                          "; fastcgi_temp_path " + (root / "tmp").native() + "; uwsgi_temp_path " +
                          (root / "tmp").native() + "; scgi_temp_path " + (root / "tmp").native() +
                          "; server { listen 127.0.0.1:" + std::to_string(port_) + "; root " + (root / "www").native() +
                          "; location /k/ { dav_methods PUT DELETE; create_full_put_path on; " + more + " } } }\n";
        base::replace_file(root / "nginx.conf", base::as_bytes(conf)).value();
        process_.emplace(std::vector<std::string>{"-c", (root / "nginx.conf").native(), "-p", root.native()},
                         std::vector<std::string>{}, *program_named("nginx"));
        (void)wait_for_port(port_);
    }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/k"; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::filesystem::path files() const { return scratch_.path() / "www" / "k"; }
    void signal(int number) { process_->signal(number); }
    void kill() { process_.reset(); }

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-nginx").value();
    std::uint16_t port_ = free_port();
    std::optional<actor> process_;
};

// A server with the rules of bazel-remote that matter here: tests/support/bazel_like.py. KILN_TEST_BAZEL_REMOTE names a real one.
class bazel_like {
public:
    static std::string missing() { return program_named("python3") ? "" : "python3"; }

    bazel_like() {
        auto const* const real = std::getenv("KILN_TEST_BAZEL_REMOTE");
        if (real != nullptr)
            process_.emplace(
                std::vector<std::string>{"--dir", scratch_.path().native(), "--max_size", "1", "--http_address",
                                         "127.0.0.1:" + std::to_string(port_), "--grpc_address", "none"},
                std::vector<std::string>{}, real);
        else
            process_.emplace(
                std::vector<std::string>{KILN_TEST_SOURCE_DIR "/tests/support/bazel_like.py", std::to_string(port_)},
                std::vector<std::string>{}, *program_named("python3"));
        (void)wait_for_port(port_);
    }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] static std::string attributes() { return "layout=bazel"; }
    static constexpr unsigned many = 50;  // written in Python

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-bazel").value();
    std::uint16_t port_ = free_port();
    std::optional<actor> process_;
};

// S3 as moto plays it, with every signature checked: tests/support/s3_checked.py.
class moto_process {
public:
    static std::string missing() { return program_named("moto_server") ? "" : "moto_server"; }

    explicit moto_process(std::vector<std::string> variables = {})
        : process_{{KILN_TEST_SOURCE_DIR "/tests/support/s3_checked.py", std::to_string(port_)},
                   std::move(variables),
                   *program_named("python3")} {
        auto const said = process_.line();
        auto const space = said.find(' ');
        write_credentials(credentials(), said.substr(0, space), said.substr(space + 1));
        // The right name and another's secret.
        write_credentials(wrong_credentials(), said.substr(0, space), "hunter2");
    }
    [[nodiscard]] static std::string url() { return "s3://bucket/kiln"; }
    static constexpr unsigned many = 50;
    [[nodiscard]] std::string attributes() const { return place() + " credentials-file=" + credentials().native(); }
    [[nodiscard]] std::string place() const { return "endpoint=http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::filesystem::path credentials() const { return scratch_.path() / "credentials"; }
    [[nodiscard]] std::filesystem::path wrong_credentials() const { return scratch_.path() / "wrong"; }

private:
    static void write_credentials(std::filesystem::path const& file, std::string const& id, std::string const& secret) {
        auto const text = "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = " + secret + "\n";
        base::replace_file(file, base::as_bytes(text)).value();
    }
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-s3").value();
    std::uint16_t port_ = free_port();
    actor process_;
};

// Keeps whole bundles, as images are kept.
class registry_process {
public:
    static std::string missing() { return program_named("docker-registry") ? "" : "docker-registry"; }

    registry_process() {
        auto const root = scratch_.path();
        auto const conf =
            "version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: " + (root / "kept").native() +
            "}}\nhttp: {addr: '127.0.0.1:" + std::to_string(port_) + "'}\n";
        base::replace_file(root / "config.yml", base::as_bytes(conf)).value();
        process_.emplace(std::vector<std::string>{"serve", (root / "config.yml").native()}, std::vector<std::string>{},
                         *program_named("docker-registry"));
        (void)wait_for_port(port_);
    }
    [[nodiscard]] std::string url(std::string const& name) const {
        return "oci://127.0.0.1:" + std::to_string(port_) + "/" + name;
    }
    [[nodiscard]] std::filesystem::path files() const { return scratch_.path() / "kept"; }

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-registry").value();
    std::uint16_t port_ = free_port();
    std::optional<actor> process_;
};

}  // namespace kiln::test
