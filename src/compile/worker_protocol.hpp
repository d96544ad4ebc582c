// SPDX-License-Identifier: Apache-2.0
//
// What a pool and its workers say to each other over a socket pair: frames of a fixed header and a bounded body. The
// layout is written down in docs/formats/worker-protocol.md. Nothing here knows about processes or compilers.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "compile/job.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::compile {

// Raised with every change of a frame's body, the encodings of jobs, products and errors included.
inline constexpr std::uint32_t worker_protocol_version = 5;
inline constexpr std::size_t frame_header_bytes = 12;
inline constexpr std::size_t most_frame_body_bytes = std::size_t{256} << 20;

enum class frame_kind : std::uint16_t { hello = 1, configure, request, reply, failure };

struct frame {
    frame_kind kind = frame_kind::hello;
    base::bytes body;
};

// The worker's first frame. Later versions of the protocol may append fields, never change these.
struct worker_hello {
    std::uint32_t protocol = worker_protocol_version;
    std::uint32_t pid = 0;
    std::string kiln;  // the version of Kiln the worker was built from
};

// The pool's first frame.
struct worker_limits {
    std::uint64_t memory = 0;       // bytes; 0: no bound
    std::uint32_t parent = 0;       // pid of the pool's process: a worker with another parent is an orphan
    std::uint64_t precompiled = 0;  // bytes of precompiled headers it may keep, and one may have; 0: none are made
};

// Request, reply and failure: which job it is about, and the encoded job, artifact or failure. A request allows precompiled headers
// (reused) or none (plain); an answer tells what became of that. A request nobody waits for has the worker step back for everybody
// else, for good: a process cannot take that back.
struct numbered_body {
    std::uint64_t id = 0;
    header_use headers = header_use::plain;
    base::byte_span payload;  // borrowed
    std::uint8_t nice = 0;    // of a request; 0: as it is
};

[[nodiscard]] base::bytes encode(worker_hello const& h);
[[nodiscard]] base::bytes encode(worker_limits const& l);
[[nodiscard]] base::bytes encode(numbered_body const& b);
[[nodiscard]] result<worker_hello> decode_hello(base::byte_span body);
[[nodiscard]] result<worker_limits> decode_limits(base::byte_span body);
[[nodiscard]] result<numbered_body> decode_numbered(base::byte_span body);

// An error that names both versions, unless the worker speaks this library's protocol.
[[nodiscard]] result<void> check_protocol(worker_hello const& theirs);

// errc::invalid_argument if the body is larger than a frame may be.
[[nodiscard]] result<base::bytes> make_frame(frame_kind kind, base::byte_span body);

// Makes frames of bytes that come in any pieces. After an error the stream is lost: the reader repeats the error.
class frame_parser {
public:
    void feed(base::byte_span data) { pending_.insert(pending_.end(), data.begin(), data.end()); }
    // nullopt: more bytes are needed. errc::corrupt: this is not our protocol.
    [[nodiscard]] result<std::optional<frame>> next();
    [[nodiscard]] bool in_frame() const noexcept { return !pending_.empty(); }

private:
    base::bytes pending_;
};

// For a blocking socket. A peer that is gone is errc::io (EPIPE), never a signal.
[[nodiscard]] result<void> send_frame(int socket, frame_kind kind, base::byte_span body);
// nullopt: the peer closed between two frames.
[[nodiscard]] result<std::optional<frame>> receive_frame(int socket, frame_parser& parser);

}  // namespace kiln::compile
