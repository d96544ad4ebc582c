// SPDX-License-Identifier: Apache-2.0
#include "remote/secrets.hpp"

#include "base/files.hpp"

#include <cstdlib>
#include <sys/stat.h>

namespace kiln::remote {

namespace {

constexpr std::size_t most_token = 16 << 10;

}  // namespace

result<std::string> token_source::read() const {
    std::string text;
    if (file.empty()) {
        auto const* const said = ::secure_getenv("KILN_REMOTE_TOKEN");
        text = said == nullptr ? "" : said;
    } else {
        KILN_TRY(auto const data, base::read_file(file, most_token));
        if (!data) return fail(errc::not_found, "{}: no such token file", file.native());
        text = std::string{base::as_text(*data)};
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
    // Would end a header line and begin another.
    if (text.find_first_of("\r\n") != text.npos)
        return fail(errc::invalid_argument, "{}: a token is one line",
                    file.empty() ? "KILN_REMOTE_TOKEN" : file.native());
    return text;
}

std::uint64_t token_source::stamp() const noexcept {
    struct ::stat about {};
    if (file.empty() || ::stat(file.c_str(), &about) != 0) return 0;
    auto const ns = static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000u +
                    static_cast<std::uint64_t>(about.st_mtim.tv_nsec);
    return ns ^ (static_cast<std::uint64_t>(about.st_ino) << 1) ^ static_cast<std::uint64_t>(about.st_size);
}

}  // namespace kiln::remote
