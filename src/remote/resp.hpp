// SPDX-License-Identifier: Apache-2.0
//
// What is needed of RESP2, the protocol of Redis: commands as arrays of strings, replies of bounded depth, size and number. A
// server that sends anything else is cut off. Pure: no socket here.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kiln::remote::resp {

enum class kind { simple, error, integer, bulk, null, array };

struct value {
    resp::kind kind = kind::null;
    base::bytes data{};  // of simple, error and bulk
    std::int64_t number = 0;
    std::vector<value> items{};
    [[nodiscard]] std::string_view text() const noexcept { return base::as_text(data); }
    [[nodiscard]] bool is_error() const noexcept { return kind == resp::kind::error; }
};

struct limits {
    std::size_t bulk = std::size_t{8} << 20;
    std::size_t whole = std::size_t{256} << 20;  // one reply with all that is in it
    std::size_t items = 1024;                    // of one reply, at all depths together
    std::size_t line = 4096;
    unsigned depth = 4;
};

// Appends one command.
void put_command(std::string& out, std::vector<std::string_view> const& words);

// Takes bytes as they come and gives replies as they are complete. After an error nothing more comes of it.
class decoder {
public:
    explicit decoder(limits most = {}) noexcept : most_{most} {}
    void feed(base::byte_span more) { buffer_.insert(buffer_.end(), more.begin(), more.end()); }
    // nullopt: not all of it is there yet. errc::corrupt: not the protocol; errc::out_of_memory: larger than the limits.
    [[nodiscard]] result<std::optional<value>> next();
    [[nodiscard]] std::size_t held() const noexcept { return buffer_.size() - used_; }

private:
    limits most_;
    base::bytes buffer_;
    std::size_t used_ = 0;
};

}  // namespace kiln::remote::resp
