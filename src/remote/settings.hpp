// SPDX-License-Identifier: Apache-2.0
//
// KILN_REMOTE: URLs, each followed by its attributes, separated by spaces. Whatever is not understood takes its remote out of
// use and says what to write instead: a misspelt `read-only` must not write, and nobody is believed who was not named.
#pragma once

#include "base/config.hpp"
#include "remote/packet.hpp"

#include <chrono>
#include <filesystem>

namespace kiln::remote {

enum class scheme { redis, redis_tls, redis_unix, http, https, s3 };
[[nodiscard]] std::string_view name_of(scheme s) noexcept;

// Never holds a secret: what is shown to people is this.
struct server_url {
    scheme by = scheme::http;
    std::string host{};  // of s3: the bucket
    std::uint16_t port = 0;
    std::string path{};  // without the slash at its end; of redis_unix: the socket
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool is_redis() const noexcept { return by <= scheme::redis_unix; }
    // Bytes on their way to it can be read by others: no TLS, and another machine.
    [[nodiscard]] bool is_overheard() const noexcept;
};
// By its address or as localhost: what goes there leaves no machine.
[[nodiscard]] bool is_this_machine(std::string const& host) noexcept;
// What may be shown of a URL: no query, nobody's password.
[[nodiscard]] std::string shown_url(std::string_view url);
// invalid_argument with the reason and what to write.
[[nodiscard]] result<server_url> parse_url(std::string_view text);

[[nodiscard]] bool speaks_http(std::string_view url);

enum class layout { subdirs, bazel };
enum class leasing { by_the_server, elsewhere, none };
enum class writing { allowed, never };

struct remote_options {
    server_url at;
    writing writes = writing::allowed;
    belief in = belief::signatures;
    std::vector<std::filesystem::path> keys{};
    std::uint32_t least_epoch = 0;
    std::filesystem::path sign{};
    std::uint32_t epoch = 0;
    std::string space = "default";
    remote::layout layout = layout::subdirs;
    leasing leases = leasing::by_the_server;
    std::optional<server_url> lease_at{};
    std::optional<std::chrono::milliseconds> patience{};
    std::chrono::milliseconds connect_timeout{1'000};
    std::chrono::milliseconds timeout{10'000};
    std::uint64_t most_entry = std::uint64_t{64} << 20;
    std::optional<std::chrono::seconds> life{};  // ttl
    std::filesystem::path token_file{}, ca{}, certificate{}, certificate_key{};
    std::filesystem::path
        lease_token_file{};  // for whoever keeps the leases elsewhere; the other token is not told there
    std::string region{}, endpoint{};
    std::filesystem::path credentials_file{};
};

struct unusable_remote {
    std::string url;  // as written, without what may be a secret
    std::string why;
    std::string remedy;
};

struct remote_list {
    std::vector<remote_options> usable;
    std::vector<unusable_remote> off;
};

inline constexpr std::size_t most_remotes = 4;

// Who looks after a server removes and checks what others wrote: he signs nothing, and need not say that he only reads.
enum class purpose { sharing, upkeep };

struct circumstances {
    bool has_token = false;     // KILN_REMOTE_TOKEN is set
    bool is_read_only = false;  // KILN_READONLY
    purpose what_for = purpose::sharing;
};
// KILN_REMOTE as people may see it: somebody may have written into it what does not belong there.
[[nodiscard]] std::string shown_remotes(std::string_view text);
// The same of any setting.
[[nodiscard]] std::string shown_value(base::knob const& of, base::setting const& is);
[[nodiscard]] remote_list parse_remotes(std::string_view text, circumstances const& around);
// From the settings; nothing where the setting is in a file that others can write.
[[nodiscard]] remote_list remotes_of(base::config const& config, purpose what_for = purpose::sharing);

}  // namespace kiln::remote
