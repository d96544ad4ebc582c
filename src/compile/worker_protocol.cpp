// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_protocol.hpp"

#include <kiln/version.hpp>

#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace kiln::compile {

namespace {

constexpr std::uint32_t frame_magic = 0x57'4e'4c'4b;  // "KLNW"

bool is_known(std::uint16_t kind) noexcept {
    return kind >= static_cast<std::uint16_t>(frame_kind::hello) &&
           kind <= static_cast<std::uint16_t>(frame_kind::failure);
}

error malformed(std::string_view what) { return fail(errc::corrupt, "worker protocol: malformed {} frame", what); }

}  // namespace

base::bytes encode(worker_hello const& h) {
    base::byte_writer w;
    w.put_u32(h.protocol);
    w.put_u32(h.pid);
    w.put_text(h.kiln);
    return std::move(w).take();
}

base::bytes encode(worker_limits const& l) {
    base::byte_writer w;
    w.put_u64(l.memory);
    w.put_u32(l.parent);
    w.put_u64(l.precompiled);
    return std::move(w).take();
}

base::bytes encode(numbered_body const& b) {
    base::byte_writer w;
    w.put_u64(b.id);
    w.put_u8(static_cast<std::uint8_t>(b.headers));
    w.put_u8(b.nice);
    w.put_raw(b.payload);
    return std::move(w).take();
}

result<worker_hello> decode_hello(base::byte_span body) {
    base::byte_reader r{body};
    worker_hello h;
    h.protocol = r.get_u32();
    h.pid = r.get_u32();
    h.kiln = r.get_text();
    bool const complete = h.protocol == worker_protocol_version ? r.done() : r.ok();
    if (!complete || h.kiln.size() > 64) return malformed("hello");
    return h;
}

result<worker_limits> decode_limits(base::byte_span body) {
    base::byte_reader r{body};
    worker_limits l;
    l.memory = r.get_u64();
    l.parent = r.get_u32();
    l.precompiled = r.get_u64();
    if (!r.done()) return malformed("configure");
    return l;
}

result<numbered_body> decode_numbered(base::byte_span body) {
    base::byte_reader r{body};
    numbered_body b;
    b.id = r.get_u64();
    auto const headers = r.get_u8();
    b.nice = r.get_u8();
    b.payload = r.get_raw(r.left());
    if (!r.ok() || b.nice > 19 || headers > static_cast<std::uint8_t>(header_use::reused)) return malformed("numbered");
    b.headers = static_cast<header_use>(headers);
    return b;
}

result<void> check_protocol(worker_hello const& theirs) {
    if (theirs.protocol == worker_protocol_version) return {};
    return fail(
        errc::unsupported,
        "kiln-worker {} speaks worker protocol {}, this library ({}) speaks {}; install both from the same build",
        theirs.kiln, theirs.protocol, kiln::version, worker_protocol_version);
}

result<base::bytes> make_frame(frame_kind kind, base::byte_span body) {
    if (body.size() > most_frame_body_bytes) {
        return fail(errc::invalid_argument, "worker protocol: {} bytes in one message, more than the {} allowed",
                    body.size(), most_frame_body_bytes);
    }
    base::byte_writer w;
    w.put_u32(frame_magic);
    w.put_u16(static_cast<std::uint16_t>(kind));
    w.put_u16(0);
    w.put_u32(static_cast<std::uint32_t>(body.size()));
    w.put_raw(body);
    return std::move(w).take();
}

result<std::optional<frame>> frame_parser::next() {
    if (pending_.size() < frame_header_bytes) return std::optional<frame>{};
    base::byte_reader r{pending_};
    auto const magic = r.get_u32();
    auto const kind = r.get_u16();
    auto const reserved = r.get_u16();
    auto const size = r.get_u32();
    if (magic != frame_magic || !is_known(kind) || reserved != 0) return malformed("unknown");
    if (size > most_frame_body_bytes) {
        return fail(errc::corrupt, "worker protocol: a frame claims {} bytes, more than the {} allowed", size,
                    most_frame_body_bytes);
    }
    if (r.left() < size) return std::optional<frame>{};
    auto const body = r.get_raw(size);
    frame out{static_cast<frame_kind>(kind), {body.begin(), body.end()}};
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(frame_header_bytes + size));
    return std::optional<frame>{std::move(out)};
}

result<void> send_frame(int socket, frame_kind kind, base::byte_span body) {
    KILN_TRY(auto const whole, make_frame(kind, body));
    base::byte_span rest = whole;
    while (!rest.empty()) {
        auto const count = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (count >= 0) rest = rest.subspan(static_cast<std::size_t>(count));
        else if (errno != EINTR) return io_error("worker socket", errno);
    }
    return {};
}

result<std::optional<frame>> receive_frame(int socket, frame_parser& parser) {
    std::array<std::byte, 65536> buffer;
    for (;;) {
        auto got = parser.next();
        if (!got || *got) return got;
        auto const count = ::recv(socket, buffer.data(), buffer.size(), 0);
        if (count > 0) parser.feed({buffer.data(), static_cast<std::size_t>(count)});
        else if (count == 0 && parser.in_frame())
            return fail(errc::corrupt, "worker protocol: the stream ends inside a frame");
        else if (count == 0) return std::optional<frame>{};
        else if (errno != EINTR) return io_error("worker socket", errno);
    }
}

}  // namespace kiln::compile
