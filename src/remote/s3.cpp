// SPDX-License-Identifier: Apache-2.0
#include "remote/s3.hpp"

#include "base/files.hpp"

#include <cstdlib>
#include <sstream>

namespace kiln::remote {

namespace {

std::string variable(char const* name) {
    auto const* const value = ::secure_getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

std::string trimmed_value(std::string const& line) {
    auto const from = line.find_first_not_of(" \t", line.find('=') + 1);
    if (from == line.npos) return {};
    return line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
}

// The [default] section of a file as the AWS tools have it.
void read_credentials(std::filesystem::path const& file, s3_access& out) {
    auto const text = base::read_file(file, 64 << 10);
    if (!text || !*text) {
        out.why = fmt::format("{}: cannot be read", file.native());
        return;
    }
    std::istringstream lines{std::string{base::as_text(**text)}};
    bool wanted = true;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('[')) wanted = line.starts_with("[default]");
        if (!wanted) continue;
        if (line.starts_with("aws_access_key_id")) out.id = trimmed_value(line);
        if (line.starts_with("aws_secret_access_key")) out.secret = trimmed_value(line);
        if (line.starts_with("aws_session_token")) out.session = trimmed_value(line);
    }
}

}  // namespace

s3_access s3_place_of(remote_options const& o) {
    s3_access out;
    out.region = o.region.empty() ? variable("AWS_REGION") : o.region;
    if (out.region.empty()) out.region = variable("AWS_DEFAULT_REGION");
    if (out.region.empty()) out.region = "us-east-1";
    auto endpoint = o.endpoint.empty() ? variable("AWS_ENDPOINT_URL") : o.endpoint;
    if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", out.region);
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (!speaks_http(endpoint))
        out.why = fmt::format("{} is not where a server speaks HTTP; write for example https://minio.example:9000",
                              shown_url(endpoint));
    out.base = fmt::format("{}/{}{}", endpoint, o.at.host, o.at.path);
    return out;
}

s3_access s3_access_of(remote_options const& o) {
    auto out = s3_place_of(o);
    if (!o.credentials_file.empty()) read_credentials(o.credentials_file, out);
    else {
        out.id = variable("AWS_ACCESS_KEY_ID");
        out.secret = variable("AWS_SECRET_ACCESS_KEY");
        out.session = variable("AWS_SESSION_TOKEN");
    }
    if (out.why.empty() && (out.id.empty() || out.secret.empty()))
        out.why = "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or credentials-file=";
    return out;
}

std::string signing_scheme(s3_access const& who) { return fmt::format("aws:amz:{}:s3", who.region); }

void add_s3_headers(s3_access const& who, http_request& what) {
    auto const hash = what.body ? base::sha256_of(base::byte_span{*what.body}) : base::sha256_of("");
    what.headers.push_back("x-amz-content-sha256: " + hash.hex());
    if (!who.session.empty()) what.headers.push_back("x-amz-security-token: " + who.session);
}

void sign_with(s3_access const& who, curl_options& how, http_request& what) {
    how.aws = signing_scheme(who);
    how.user = who.id + ":" + who.secret;
    add_s3_headers(who, what);
}

std::string base64(std::string_view text) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += 3) {
        unsigned group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) out += i + k > text.size() ? '=' : letters[group >> (18 - 6 * k) & 63];
    }
    return out;
}

}  // namespace kiln::remote
