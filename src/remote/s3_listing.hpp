// SPDX-License-Identifier: Apache-2.0
// What a bucket has, page by page (ListObjectsV2). Of XML only what servers write there is read: elements and text, no comments, no types,
// no entities but the five that XML has and characters by their number.
#pragma once

#include "remote/http_caller.hpp"
#include "remote/s3.hpp"

namespace kiln::remote {

// Bounds on one page: S3 sends a thousand names of a kilobyte at most.
inline constexpr std::size_t most_page_bytes = std::size_t{8} << 20;
inline constexpr std::size_t most_page_objects = 10'000;
inline constexpr std::size_t most_page_token = std::size_t{4} << 10;

struct bucket_page {
    struct object {
        std::string key;
        std::optional<std::int64_t> written{};  // seconds since 1970, by the server's clock
        std::uint64_t bytes = 0;
    };
    std::vector<object> objects{};
    std::string next{};                 // what the next page is asked for by; empty: this is the last
    std::optional<std::int64_t> now{};  // by the server's clock, when it was sent
};

// errc::corrupt for anything else.
[[nodiscard]] result<bucket_page> decode_bucket_page(std::string_view xml);

// Everything below the prefix of a remote. Blocks, each time as long as a request may take.
class bucket_reader {
public:
    explicit bucket_reader(remote_options const& options);
    // What the names there begin with: "prefix/", or nothing.
    [[nodiscard]] std::string const& prefix() const noexcept { return prefix_; }
    // `token` of the page before; empty: the first.
    [[nodiscard]] result<bucket_page> page(std::string const& token);

private:
    s3_access access_;
    std::string shown_;   // for errors
    std::string bucket_;  // its URL
    std::string prefix_;
    http_caller caller_;
};

}  // namespace kiln::remote
