// SPDX-License-Identifier: Apache-2.0
// What a server says instead of RESP, in pieces of a size that the first byte chooses: bounded, and the same however it is cut.
#include "fuzz/fuzz.hpp"

#include "remote/resp.hpp"

#include <algorithm>

using namespace kiln;
using fuzz::must;

namespace {

constexpr remote::resp::limits most{.bulk = 4096, .whole = 1 << 16, .items = 64, .line = 128, .depth = 3};

std::size_t weight(remote::resp::value const& v, unsigned depth) {
    must(depth <= most.depth);
    std::size_t out = v.data.size();
    for (auto const& item : v.items) out += weight(item, depth + 1);
    return out;
}

struct outcome {
    std::size_t replies = 0, bytes = 0;
    bool refused = false;
};

outcome read(base::byte_span input, std::size_t step) {
    remote::resp::decoder d{most};
    outcome out;
    for (std::size_t at = 0; at < input.size() && !out.refused; at += step) {
        d.feed(input.subspan(at, std::min(step, input.size() - at)));
        for (;;) {
            auto const next = d.next();
            out.refused = !next;
            if (!next || !*next) break;
            ++out.replies;
            out.bytes += weight(**next, 0);
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const [which, rest] = fuzz::choose(fuzz::bytes_of(data, size), 32);
    if (rest.empty()) return 0;
    auto const whole = read(rest, rest.size());
    auto const pieces = read(rest, which + 1);
    must(whole.replies == pieces.replies && whole.bytes == pieces.bytes && whole.refused == pieces.refused);
    return 0;
}
