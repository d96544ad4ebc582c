// SPDX-License-Identifier: Apache-2.0
#include "remote/settings.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint64_t most_redis_entry = std::uint64_t{8} << 20;

struct known_scheme {
    std::string_view prefix;
    scheme by;
    std::uint16_t port;
};
constexpr std::array known_schemes{
    known_scheme{"redis://", scheme::redis, redis_port}, known_scheme{"rediss://", scheme::redis_tls, redis_port},
    known_scheme{"redis+unix:", scheme::redis_unix, 0},  known_scheme{"http://", scheme::http, 80},
    known_scheme{"https://", scheme::https, 443},        known_scheme{"s3://", scheme::s3, 0}};

bool looks_like_url(std::string_view word) {
    auto const at = word.find("://");
    return word.starts_with("redis+unix:") || (at != word.npos && word.find('=') > at);
}

template <class What>
void for_each_word(std::string_view text, What const& what) {
    constexpr std::string_view spaces = " \t\r\n";
    for (auto at = text.find_first_not_of(spaces); at != text.npos; at = text.find_first_not_of(spaces, at)) {
        auto const end = std::min(text.find_first_of(spaces, at), text.size());
        what(text.substr(at, end - at));
        at = end;
    }
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number out{};
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (why != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return out;
}

// "250ms", "10s", "5m", "12h", "30d".
std::optional<std::chrono::milliseconds> duration_of(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> units{
        {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
    auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
    auto const number = number_of<std::int64_t>(text.substr(0, digits));
    auto const unit = std::ranges::find(units, text.substr(digits), [](auto const& u) { return u.first; });
    if (!number || unit == units.end() || *number > 1'000'000'000) return std::nullopt;
    return std::chrono::milliseconds{*number * unit->second};
}

struct attribute_error {
    std::string why;
    std::string remedy;
};
using verdict = std::optional<attribute_error>;

attribute_error not_a(std::string_view name, std::string_view value, std::string_view what, std::string_view example) {
    return {fmt::format("{}={} is not {}", name, value, what), fmt::format("write for example {}={}", name, example)};
}

// One remote while its words are read.
struct reading {
    remote_options out;
    bool entry_said = false;
    std::vector<std::string_view> said{};  // names of attributes

    [[nodiscard]] bool has(std::string_view name) const { return std::ranges::find(said, name) != said.end(); }

    verdict take(std::string_view word);
    verdict take_choice(std::string_view name, std::string_view value);
    verdict take_number(std::string_view name, std::string_view value);
    verdict take_text(std::string_view name, std::string_view value);
    verdict finish(circumstances const& around);
    [[nodiscard]] verdict doubtful_belief() const;
};

std::vector<std::filesystem::path> paths_of(std::string_view list) {
    std::vector<std::filesystem::path> out;
    while (!list.empty()) {
        auto const comma = std::min(list.find(','), list.size());
        if (comma > 0) out.emplace_back(list.substr(0, comma));
        list.remove_prefix(std::min(list.size(), comma + 1));
    }
    return out;
}

bool is_plain_name(std::string_view text) {
    return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
}

constexpr std::array all_attributes{"read-only",
                                    "trust",
                                    "keys",
                                    "min-epoch",
                                    "sign",
                                    "epoch",
                                    "namespace",
                                    "layout",
                                    "lease",
                                    "patience",
                                    "connect-timeout",
                                    "timeout",
                                    "max-entry",
                                    "ttl",
                                    "token-file",
                                    "ca",
                                    "cert",
                                    "key",
                                    "region",
                                    "endpoint",
                                    "credentials-file",
                                    "lease-token-file"};

// Of a word that is not what belongs there: its name alone, and nothing of it that may be a password.
std::string shown_name(std::string_view word) {
    return word.find('@') == word.npos ? std::string{word.substr(0, word.find('='))} : shown_url(word);
}

std::string_view nearest(std::string_view name) {
    for (std::string_view const known : all_attributes) {
        if (known.size() > 3 && (known.starts_with(name.substr(0, 4)) || name.starts_with(known.substr(0, 4))))
            return known;
    }
    return {};
}

verdict reading::take_choice(std::string_view name, std::string_view value) {
    if (name == "trust") {
        if (value != "signed" && value != "server") return not_a(name, value, "signed or server", "server");
        out.in = value == "server" ? belief::server : belief::signatures;
    } else if (name == "layout") {
        if (value != "subdirs" && value != "bazel") return not_a(name, value, "subdirs or bazel", "bazel");
        out.layout = value == "bazel" ? layout::bazel : layout::subdirs;
    } else if (value == "none") {
        out.leases = leasing::none;
    } else {
        auto url = parse_url(value);
        if (!url) return attribute_error{"lease=: " + std::string{url.error().message()}, "lease=redis://host:6379"};
        if (!url->is_redis())
            return attribute_error{"lease=: only Redis and Valkey keep leases",
                                   "lease=redis://host:6379, or lease=none"};
        out.leases = leasing::elsewhere;
        out.lease_at = *std::move(url);
    }
    return std::nullopt;
}

// Where S3 is spoken: a guess at what was meant would send requests in clear text.
verdict bad_endpoint(std::string_view value) {
    if (speaks_http(value)) return std::nullopt;
    return attribute_error{fmt::format("endpoint={} is not where a server speaks HTTP{}", shown_url(value),
                                       value.find('@') != value.npos ? ", or has a secret in it" : ""),
                           "write for example endpoint=https://minio.example:9000"};
}

verdict reading::take_number(std::string_view name, std::string_view value) {
    if (name == "epoch" || name == "min-epoch") {
        auto const number = number_of<std::uint32_t>(value);
        if (!number) return not_a(name, value, "a number", "3");
        (name == "epoch" ? out.epoch : out.least_epoch) = *number;
        return std::nullopt;
    }
    if (name == "max-entry") {
        auto const size = base::parse_size(value);
        if (!size || *size == 0 || *size > store::most_payload_bytes)
            return not_a(name, value, "a size up to 256M", "64M");
        out.most_entry = *size;
        entry_said = true;
        return std::nullopt;
    }
    auto const time = duration_of(value);
    bool const is_life = name == "ttl";
    if (!time) return not_a(name, value, "a time", is_life ? "30d" : "10s");
    // Longer, and it is no time that a clock can be set to.
    if (*time > (is_life ? std::chrono::days{36'500} : std::chrono::days{1}))
        return not_a(name, value, is_life ? "a time up to 36500d" : "a time up to 1d", is_life ? "30d" : "10s");
    // To libcurl nothing is for ever.
    bool const bounds = name == "timeout" || name == "connect-timeout";
    if (bounds && time->count() == 0) return not_a(name, value, "a millisecond or more", "10s");
    if (name == "patience") out.patience = *time;
    else if (name == "connect-timeout") out.connect_timeout = *time;
    else if (name == "timeout") out.timeout = *time;
    else if (time->count() < 1'000) return not_a(name, value, "a second or more", "30d");
    else out.life = std::chrono::duration_cast<std::chrono::seconds>(*time);
    return std::nullopt;
}

verdict reading::take_text(std::string_view name, std::string_view value) {
    if (value.empty()) return attribute_error{fmt::format("{}= says nothing", name), "give it a value or leave it out"};
    if (name == "namespace") {
        if (!is_plain_name(value)) return not_a(name, value, "a name of letters, digits, '-', '_' and '.'", "nodes");
        out.space = value;
    } else if (name == "keys") {
        out.keys = paths_of(value);
    } else if (name == "sign") out.sign = value;
    else if (name == "token-file") out.token_file = value;
    else if (name == "lease-token-file") out.lease_token_file = value;
    else if (name == "ca") out.ca = value;
    else if (name == "cert") out.certificate = value;
    else if (name == "key") out.certificate_key = value;
    else if (name == "region") out.region = value;
    else if (name == "endpoint") {
        out.endpoint = value;
        return bad_endpoint(value);
    } else out.credentials_file = value;
    return std::nullopt;
}

verdict reading::take(std::string_view word) {
    if (word == "read-only") {
        out.writes = writing::never;
        return std::nullopt;
    }
    auto const equals = std::min(word.find('='), word.size());
    auto const name = word.substr(0, equals);
    auto const value = word.substr(std::min(word.size(), equals + 1));
    if (name == "read-only")
        return attribute_error{"read-only takes no value", "write read-only alone, or leave it out"};
    bool const known = equals < word.size() && std::ranges::find(all_attributes, name) != all_attributes.end();
    if (!known) {
        auto const near = nearest(name);
        return attribute_error{fmt::format("'{}' is no attribute of a remote", shown_name(word)),
                               near.empty() ? "the attributes are in the guide, 'Many machines'"
                                            : fmt::format("did you mean '{}'?", near)};
    }
    // Which of the two was meant nobody can know.
    if (has(name))
        return attribute_error{fmt::format("{}= is said twice", name),
                               name == "keys" ? "name several as keys=A.pub,B.pub" : "leave one of them out"};
    said.push_back(name);
    if (name == "trust" || name == "layout" || name == "lease") return take_choice(name, value);
    if (name == "epoch" || name == "min-epoch" || name == "max-entry" || name == "patience" || name == "ttl" ||
        name == "connect-timeout" || name == "timeout")
        return take_number(name, value);
    return take_text(name, value);
}

// What is said of whom to believe, and does not go together: nobody is to think that signatures count where they do not.
verdict reading::doubtful_belief() const {
    if (out.in == belief::server && has("keys"))
        return attribute_error{"with trust=server nobody looks at keys=",
                               "leave out trust=server to believe only what is signed, or keys="};
    if (out.in == belief::server && has("min-epoch"))
        return attribute_error{"with trust=server nobody looks at min-epoch=",
                               "add keys=FILE.pub instead of trust=server, or leave min-epoch= out"};
    if (out.writes == writing::allowed && !out.sign.empty() && out.epoch < out.least_epoch)
        return attribute_error{
            fmt::format("it signs with epoch {}, and believes what has {} or more: nobody would use what it writes",
                        out.epoch, out.least_epoch),
            fmt::format("add epoch={}", out.least_epoch)};
    return std::nullopt;
}

verdict reading::finish(circumstances const& around) {
    if (around.is_read_only) out.writes = writing::never;
    if (!entry_said && out.at.is_redis()) out.most_entry = most_redis_entry;
    if (!has("trust") && !has("keys"))
        return attribute_error{
            "nothing says who is believed",
            "add keys=FILE.pub to believe what is signed by it, or trust=server to believe whoever may write there"};
    if (out.in == belief::signatures && out.keys.empty())
        return attribute_error{"trust=signed without keys=", "add keys=FILE.pub, or a folder of such files"};
    if (out.in == belief::signatures && out.sign.empty() && out.writes == writing::allowed &&
        around.what_for == purpose::sharing)
        return attribute_error{
            "it would be written to, and nothing signs",
            "add sign=FILE ('kiln key FILE' makes one), or read-only; 'kiln remote' takes it as it is"};
    if (auto doubt = doubtful_belief()) return doubt;
    if (out.layout == layout::bazel && out.at.by != scheme::http && out.at.by != scheme::https)
        return attribute_error{"layout=bazel is for servers over HTTP", "leave it out, or write https://"};
    bool const token = around.has_token || !out.token_file.empty();
    if (token && out.at.is_overheard())
        return attribute_error{"a token would cross the network in clear text",
                               fmt::format("use {}", out.at.is_redis() ? "rediss://" : "https://")};
    if (out.lease_token_file.empty()) return std::nullopt;
    if (out.leases != leasing::elsewhere)
        return attribute_error{"lease-token-file= without lease=", "the server's own token is token-file=FILE"};
    if (out.lease_at->is_overheard())
        return attribute_error{"the token for leases would cross the network in clear text", "use lease=rediss://..."};
    return std::nullopt;
}

}  // namespace

std::string_view name_of(scheme s) noexcept {
    for (auto const& known : known_schemes) {
        if (known.by == s) return known.prefix;
    }
    return "?";
}

std::string server_url::text() const {
    if (by == scheme::redis_unix) return fmt::format("redis+unix:{}", path);
    if (by == scheme::s3) return fmt::format("s3://{}{}", host, path);
    auto const known = std::ranges::find(known_schemes, by, &known_scheme::by);
    auto const port_text = port == known->port ? std::string{} : fmt::format(":{}", port);
    bool const bare_six = host.find(':') != host.npos;
    return fmt::format("{}{}{}{}{}{}", known->prefix, bare_six ? "[" : "", host, bare_six ? "]" : "", port_text, path);
}

bool server_url::is_overheard() const noexcept {
    if (by != scheme::redis && by != scheme::http) return false;
    return !is_this_machine(host);
}

bool is_this_machine(std::string const& host) noexcept {
    // Whole addresses only: 127.example.org is somebody else.
    ::in_addr address{};
    bool const loopback = ::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
    return loopback || host == "localhost" || host == "::1";
}

// Secrets have no place in a URL; what may be one is not repeated to anybody.
std::string shown_url(std::string_view url) {
    auto const scheme_end = url.find("://");
    auto const host = scheme_end == url.npos ? 0 : scheme_end + 3;
    auto const query = url.find_first_of("?#");
    auto at = url.rfind('@');
    // oci://host/repository@sha256:...
    if (at != url.npos && at > 0 && url.substr(at).starts_with("@sha256:")) at = url.rfind('@', at - 1);
    if (at == url.npos || at < host) return std::string{url.substr(0, query)};
    // A password with a '?' in it, or a query with an '@': either way nothing of it.
    auto const rest = query != url.npos && query < at ? std::string_view{} : url.substr(at, query - at);
    return fmt::format("{}...{}", url.substr(0, host), rest);
}

bool speaks_http(std::string_view url) {
    auto const place = parse_url(url);
    return place && (place->by == scheme::http || place->by == scheme::https);
}

std::string shown_value(base::knob const& of, base::setting const& is) {
    return of.variable == "KILN_REMOTE" ? shown_remotes(is.value) : is.value;
}

std::string shown_remotes(std::string_view text) {
    std::string out;
    for_each_word(text, [&](std::string_view word) {
        if (!out.empty()) out += ' ';
        auto const equals = word.find('=');
        if (looks_like_url(word) || equals == word.npos) {
            out += shown_url(word);
            return;
        }
        auto const name = word.substr(0, equals);
        bool const known = std::ranges::find(all_attributes, name) != all_attributes.end();
        if (known) out += fmt::format("{}={}", name, shown_url(word.substr(equals + 1)));
        else out += word.find('@') == word.npos ? fmt::format("{}=...", name) : shown_url(word);
    });
    return out;
}

result<server_url> parse_url(std::string_view text) {
    auto const known = std::ranges::find_if(known_schemes, [&](auto const& k) { return text.starts_with(k.prefix); });
    if (known == known_schemes.end())
        return fail(errc::invalid_argument, "'{}': only redis, rediss, redis+unix, http, https and s3 are spoken",
                    shown_url(text));
    auto rest = text.substr(known->prefix.size());
    server_url out{.by = known->by, .port = known->port};
    if (known->by == scheme::redis_unix) {
        if (!rest.starts_with('/')) return fail(errc::invalid_argument, "'{}': not an absolute path", shown_url(text));
        out.path = rest;
        return out;
    }
    auto const end = std::min(rest.find('/'), rest.size());
    auto place = rest.substr(0, end);
    // A password may hold a '/' or a '?', and a Redis has no '@' elsewhere.
    if (place.find('@') != place.npos || (out.is_redis() && rest.find('@') != rest.npos))
        return fail(errc::invalid_argument, "'{}': a secret in a URL is seen by everybody; use token-file=FILE",
                    shown_url(text));
    if (rest.find('?') != rest.npos || rest.find('#') != rest.npos)
        return fail(errc::invalid_argument, "'{}': a query in the URL; attributes follow it after a space",
                    shown_url(text));
    out.path = rest.substr(end);
    while (out.path.ends_with('/')) out.path.pop_back();
    auto const bracket = place.starts_with('[') ? place.find(']') : place.npos;
    auto const behind = bracket != place.npos ? place.substr(bracket + 1) : std::string_view{};
    if (place.starts_with('[') && (bracket == place.npos || (!behind.empty() && behind.front() != ':')))
        return fail(errc::invalid_argument, "'{}': an address in brackets is written [2001:db8::1]:6379",
                    shown_url(text));
    auto const colon = bracket != place.npos ? place.find(':', bracket) : place.find(':');
    if (colon != place.npos && known->by != scheme::s3) {
        auto const port = number_of<std::uint16_t>(place.substr(colon + 1));
        if (!port || *port == 0) return fail(errc::invalid_argument, "'{}': the port is no number", shown_url(text));
        out.port = *port;
    }
    bool const numbered =
        number_of<std::uint32_t>(std::string_view{out.path}.substr(std::min<std::size_t>(1, out.path.size())))
            .has_value();
    if (out.is_redis() && !out.path.empty() && !numbered)
        return fail(errc::invalid_argument,
                    "'{}': what follows the host is the number of a database, as in redis://cache:6379/2",
                    shown_url(text));
    out.host = bracket != place.npos ? place.substr(1, bracket - 1) : place.substr(0, colon);
    if (out.host.empty()) return fail(errc::invalid_argument, "'{}': no host is named", shown_url(text));
    return out;
}

remote_list parse_remotes(std::string_view text, circumstances const& around) {
    remote_list out;
    std::optional<reading> now;
    std::string url;
    verdict trouble;
    auto const close = [&] {
        if (url.empty()) return;
        if (!trouble && now) trouble = now->finish(around);
        if (!trouble && out.usable.size() + out.off.size() >= most_remotes)
            trouble = attribute_error{fmt::format("{} remotes are asked at most", most_remotes), "remove one"};
        if (trouble) out.off.push_back({url, trouble->why, trouble->remedy});
        else out.usable.push_back(std::move(now->out));
        now.reset();
        trouble.reset();
        url.clear();
    };
    if (text == "off") return out;
    for_each_word(text, [&](std::string_view word) {
        if (!looks_like_url(word)) {
            if (url.empty()) {
                url = shown_name(word);
                trouble = attribute_error{"a remote begins with its URL",
                                          "write for example redis://cache:6379 trust=server, or off alone for none"};
            } else if (!trouble) trouble = now->take(word);
            return;
        }
        close();
        url = shown_url(word);
        auto parsed = parse_url(word);
        if (!parsed) trouble = attribute_error{std::string{parsed.error().message()}, "correct the URL"};
        else now.emplace().out.at = *std::move(parsed);
    });
    close();
    return out;
}

remote_list remotes_of(base::config const& config, purpose what_for) {
    auto const& setting = config.get("KILN_REMOTE");
    if (setting.value.empty() || setting.value == "off" || config.secure()) return {};
    if (setting.from == base::origin::file) {
        struct ::stat about {};
        bool const seen = ::stat(setting.file.c_str(), &about) == 0;
        bool const ours = seen && (about.st_uid == ::geteuid() || about.st_uid == 0) && (about.st_mode & 022) == 0;
        if (!ours)
            return {.usable = {},
                    .off = {{"remote",
                             fmt::format("{} can be written by others: what it says of remotes does not count",
                                         setting.file),
                             fmt::format("chmod go-w {}", setting.file)}}};
    }
    auto const* const token = ::secure_getenv("KILN_REMOTE_TOKEN");
    return parse_remotes(setting.value, {.has_token = token != nullptr && *token != '\0',
                                         .is_read_only = config.flag("KILN_READONLY"),
                                         .what_for = what_for});
}

}  // namespace kiln::remote
