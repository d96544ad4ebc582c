// SPDX-License-Identifier: Apache-2.0
//
// A recording, format 1, as bytes: what the recorder and the companion write inside other people's programs and the reader
// reads. Constants, records and a checksum, nothing to link: the writers link no module of Kiln's. docs/formats/recording.md
// describes the same in words. Each record names its fields once, in the order they are written; all are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln::audit::format {

inline constexpr std::array<char, 8> file_magic{'K', 'I', 'L', 'N', 'R', 'E', 'C', '\n'};
inline constexpr std::uint32_t version = 1;
inline constexpr std::size_t file_header_bytes = 16;  // magic, version u32, reserved u32
inline constexpr std::uint32_t chunk_magic = 0x4b43'4e4bu;
inline constexpr std::size_t chunk_header_bytes = 40;
inline constexpr std::size_t most_chunk_bytes = std::size_t{1} << 20;  // of contents
inline constexpr std::size_t most_string_bytes = 16384;
inline constexpr char link_suffix[] = ".event";  // of an event that is a link, until it is gathered

enum class chunk : std::uint16_t {
    strings = 1,  // {id u32, length u32, bytes}...
    process,
    device,
    context,
    stream,
    kernel,
    copy,
    set,
    call,
    wait,
    memory,
    jit,
    overhead,
    external,
    site,
    cpu,
    compile,
    child,
    range,
    dispatch,
    note,
    module_load,
    end,
    last = end,
};

// The layout of a record is the order in which each() names its fields.
#define KILN_RECORD_FIELDS(...)                                    \
    template <class Self, class Visit>                             \
    static constexpr void each(Self& self, Visit&& visit) {        \
        [&](auto&... field) { (visit(field), ...); }(__VA_ARGS__); \
    }

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The process a file is of. Times are CLOCK_MONOTONIC in nanoseconds everywhere.
struct process_record {
    static constexpr chunk kind = chunk::process;
    u32 pid = 0, parent = 0;
    u64 started = 0;                       // the process
    u64 begun = 0;                         // the recording, inside cuInit
    u64 set_up = 0;                        // how long our own beginning took
    u32 level = 0, cupti = 0, python = 0;  // python: 311, 312; 0: no stacks
    u32 program = 0, library = 0;          // strings
    KILN_RECORD_FIELDS(self.pid, self.parent, self.started, self.begun, self.set_up, self.level, self.cupti,
                       self.python, self.program, self.library)
};
struct device_record {
    static constexpr chunk kind = chunk::device;
    u32 id = 0, multiprocessors = 0, major = 0, minor = 0, most_warps = 0, most_registers = 0, shared_bytes = 0,
        name = 0;
    u64 memory = 0;
    KILN_RECORD_FIELDS(self.id, self.multiprocessors, self.major, self.minor, self.most_warps, self.most_registers,
                       self.shared_bytes, self.name, self.memory)
};
struct context_record {
    static constexpr chunk kind = chunk::context;
    u32 id = 0, device = 0, null_stream = 0;
    KILN_RECORD_FIELDS(self.id, self.device, self.null_stream)
};
struct stream_record {
    static constexpr chunk kind = chunk::stream;
    u32 context = 0, id = 0, flag = 0;  // flag as CUPTI has it: 1 blocking, 2 non-blocking, 3 null
    KILN_RECORD_FIELDS(self.context, self.id, self.flag)
};
struct kernel_record {
    static constexpr chunk kind = chunk::kernel;
    u32 correlation = 0, stream = 0;
    u64 start = 0, end = 0;
    u32 grid_x = 0, grid_y = 0, grid_z = 0;
    u16 block_x = 0, block_y = 0, block_z = 0, registers = 0;
    u32 static_shared = 0, dynamic_shared = 0, local = 0, graph = 0, name = 0;
    u16 context = 0, device = 0;
    KILN_RECORD_FIELDS(self.correlation, self.stream, self.start, self.end, self.grid_x, self.grid_y, self.grid_z,
                       self.block_x, self.block_y, self.block_z, self.registers, self.static_shared,
                       self.dynamic_shared, self.local, self.graph, self.name, self.context, self.device)
};
struct copy_record {
    static constexpr chunk kind = chunk::copy;
    u32 correlation = 0, stream = 0;
    u64 start = 0, end = 0, bytes = 0;
    u8 direction = 0, source = 0, target = 0, flags = 0;  // as CUPTI has them
    u32 graph = 0;
    KILN_RECORD_FIELDS(self.correlation, self.stream, self.start, self.end, self.bytes, self.direction, self.source,
                       self.target, self.flags, self.graph)
};
struct set_record {
    static constexpr chunk kind = chunk::set;
    u32 correlation = 0, stream = 0;
    u64 start = 0, end = 0, bytes = 0;
    KILN_RECORD_FIELDS(self.correlation, self.stream, self.start, self.end, self.bytes)
};
// A call of the runtime or driver API.
struct call_record {
    static constexpr chunk kind = chunk::call;
    u32 correlation = 0, thread = 0;
    u64 start = 0, end = 0;
    u32 status = 0, name = 0;
    KILN_RECORD_FIELDS(self.correlation, self.thread, self.start, self.end, self.status, self.name)
};
// May also be a query: the call of the same correlation decides.
struct wait_record {
    static constexpr chunk kind = chunk::wait;
    u32 correlation = 0, type = 0, stream = 0;  // type as CUPTI has it: 1 event, 2 stream waits, 3 stream, 4 context
    u64 start = 0, end = 0;
    u32 status = 0;
    KILN_RECORD_FIELDS(self.correlation, self.type, self.stream, self.start, self.end, self.status)
};
struct memory_record {
    static constexpr chunk kind = chunk::memory;
    u32 correlation = 0;
    u8 operation = 0, memory = 0, async = 0, pool = 0;
    u64 time = 0, bytes = 0, address = 0;
    KILN_RECORD_FIELDS(self.correlation, self.operation, self.memory, self.async, self.pool, self.time, self.bytes,
                       self.address)
};
struct jit_record {
    static constexpr chunk kind = chunk::jit;
    u32 correlation = 0, thread = 0;
    u8 entry = 0, operation = 0;  // operation as CUPTI has it: 1 cache load, 2 cache store, 3 compile
    u16 reserved = 0;
    u64 start = 0, end = 0;
    KILN_RECORD_FIELDS(self.correlation, self.thread, self.entry, self.operation, self.reserved, self.start, self.end)
};
struct overhead_record {
    static constexpr chunk kind = chunk::overhead;
    u32 what = 0, correlation = 0;  // what: CUPTI's kind without its shift
    u64 start = 0, end = 0;
    KILN_RECORD_FIELDS(self.what, self.correlation, self.start, self.end)
};
struct external_record {
    static constexpr chunk kind = chunk::external;
    u32 correlation = 0, source = 0;
    u64 id = 0;
    KILN_RECORD_FIELDS(self.correlation, self.source, self.id)
};
// Where a call came from and what it moved.
struct site_record {
    static constexpr chunk kind = chunk::site;
    u32 correlation = 0, thread = 0,
        stack = 0;  // stack: a string, one "file\tline\tfunction\n" per frame, innermost first
    u64 time = 0, pointer = 0, bytes = 0, hash = 0, cpu = 0;
    KILN_RECORD_FIELDS(self.correlation, self.thread, self.stack, self.time, self.pointer, self.bytes, self.hash,
                       self.cpu)
};
// How long a thread has been on a processor; thread 0: all of the process.
struct cpu_record {
    static constexpr chunk kind = chunk::cpu;
    u32 thread = 0, reserved = 0;
    u64 time = 0, used = 0;
    KILN_RECORD_FIELDS(self.thread, self.reserved, self.time, self.used)
};
enum class compiler : std::uint8_t { nvrtc = 1, nvjitlink, nvvm, driver_init, context, load, link };
struct compile_record {
    static constexpr chunk kind = chunk::compile;
    u8 what = 0, image = 0;  // image: 0 unknown, 1 cubin, 2 PTX, 3 fat binary
    u16 depth = 0;           // calls of ours around it
    u32 thread = 0, status = 0, name = 0;
    u64 start = 0, end = 0, bytes = 0, hash = 0;
    KILN_RECORD_FIELDS(self.what, self.image, self.depth, self.thread, self.status, self.name, self.start, self.end,
                       self.bytes, self.hash)
};
struct child_record {
    static constexpr chunk kind = chunk::child;
    u32 pid = 0, parent = 0, name = 0, event = 0;  // 1 began, 3 asked for, 4 waited for, 5 asked for out of our sight,
                                                   // 6 what it was asked to become it did not
    u64 time = 0;
    u32 status = 0;
    KILN_RECORD_FIELDS(self.pid, self.parent, self.name, self.event, self.time, self.status)
};
struct range_record {
    static constexpr chunk kind = chunk::range;
    u32 thread = 0, name = 0;
    u64 start = 0, end = 0;  // end 0: a mark
    KILN_RECORD_FIELDS(self.thread, self.name, self.start, self.end)
};
// One word of Kiln's own: a dispatch or an event, as JSON in a string.
struct dispatch_record {
    static constexpr chunk kind = chunk::dispatch;
    u64 id = 0, time = 0;
    u32 thread = 0, text = 0;
    KILN_RECORD_FIELDS(self.id, self.time, self.thread, self.text)
};
struct note_record {
    static constexpr chunk kind = chunk::note;
    u32 what = 0, text = 0;  // what: see note_kind
    u64 time = 0;
    KILN_RECORD_FIELDS(self.what, self.text, self.time)
};
enum class note_kind : u32 { not_recording = 1, other_profiler, no_stacks, environment, kind_refused };
struct module_record {
    static constexpr chunk kind = chunk::module_load;
    u64 time = 0, bytes = 0;
    KILN_RECORD_FIELDS(self.time, self.bytes)
};
struct end_record {
    static constexpr chunk kind = chunk::end;
    u64 time = 0, dropped = 0, timeless = 0, sites_lost = 0, discarded = 0;
    KILN_RECORD_FIELDS(self.time, self.dropped, self.timeless, self.sites_lost, self.discarded)
};
#undef KILN_RECORD_FIELDS

template <class Record>
constexpr std::size_t bytes_of() {
    std::size_t out = 0;
    Record r{};
    Record::each(r, [&](auto& field) { out += sizeof field; });
    return out;
}

template <class Record>
void write_record(Record const& r, unsigned char* to) {
    Record::each(r, [&](auto const& field) {
        for (std::size_t i = 0; i < sizeof field; ++i)
            *to++ = static_cast<unsigned char>(static_cast<std::uint64_t>(field) >> (8 * i));
    });
}

template <class Record>
Record read_record(unsigned char const* from) {
    Record r{};
    Record::each(r, [&]<class Field>(Field& field) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < sizeof field; ++i) value |= static_cast<std::uint64_t>(*from++) << (8 * i);
        field = static_cast<Field>(value);
    });
    return r;
}

// Castagnoli's polynomial, as in storage everywhere. Eight bytes at a time: table n has what a byte comes to when n more follow.
inline std::uint32_t crc32c(void const* data, std::size_t bytes, std::uint32_t before = 0) {
    static constexpr auto tables = [] {
        std::array<std::array<std::uint32_t, 256>, 8> out{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            auto c = i;
            for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0x82f6'3b78u ^ (c >> 1) : c >> 1;
            out[0][i] = c;
        }
        for (std::size_t n = 1; n < 8; ++n)
            for (std::size_t i = 0; i < 256; ++i) out[n][i] = out[0][out[n - 1][i] & 0xffu] ^ (out[n - 1][i] >> 8);
        return out;
    }();
    auto crc = ~before;
    auto const* p = static_cast<unsigned char const*>(data);
    for (; bytes >= 8; bytes -= 8, p += 8) {
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < 4; ++i) next ^= tables[7 - i][((crc >> (8 * i)) ^ p[i]) & 0xffu];
        for (std::size_t i = 4; i < 8; ++i) next ^= tables[7 - i][p[i]];
        crc = next;
    }
    for (; bytes > 0; --bytes, ++p) crc = tables[0][(crc ^ *p) & 0xffu] ^ (crc >> 8);
    return ~crc;
}

// The checksum covers the header (with the checksum as zero) and the contents.
struct chunk_header {
    u32 magic = chunk_magic;
    u16 type = 0, flags = 0;
    u32 length = 0, crc = 0;
    u64 sequence = 0, first = 0, last = 0;  // first and last time in it; 0 where there are none
    template <class Self, class Visit>
    static constexpr void each(Self& self, Visit&& visit) {
        [&](auto&... field) { (visit(field), ...); }(self.magic, self.type, self.flags, self.length, self.crc,
                                                     self.sequence, self.first, self.last);
    }
};
static_assert(bytes_of<chunk_header>() == chunk_header_bytes);

struct piece {
    void const* data = nullptr;
    std::size_t bytes = 0;
};
// Its length and checksum are those of the contents, which are in two pieces at most.
inline void write_chunk_header(chunk_header head, unsigned char* to, piece one, piece other = {}) {
    head.length = static_cast<u32>(one.bytes + other.bytes);
    head.crc = 0;
    write_record(head, to);
    head.crc = crc32c(to, chunk_header_bytes);
    head.crc = crc32c(one.data, one.bytes, head.crc);
    head.crc = crc32c(other.data, other.bytes, head.crc);
    write_record(head, to);
}

inline void write_file_header(unsigned char* to) {
    for (std::size_t i = 0; i < file_header_bytes; ++i) to[i] = 0;
    for (std::size_t i = 0; i < file_magic.size(); ++i) to[i] = static_cast<unsigned char>(file_magic[i]);
    for (std::size_t i = 0; i < 4; ++i) to[file_magic.size() + i] = static_cast<unsigned char>(version >> (8 * i));
}

static_assert(bytes_of<kernel_record>() + bytes_of<call_record>() + bytes_of<external_record>() <= 130);

}  // namespace kiln::audit::format
