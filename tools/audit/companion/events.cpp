// SPDX-License-Identifier: Apache-2.0
#include "events.hpp"

#include "file_limit.hpp"
#include "raw_files.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::companion {

// By the system call itself: the library reads the processor's counter, which a program may have forbidden (PR_SET_TSC).
uint64_t now_ns() {
    ::timespec t{};
    ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}
uint32_t thread_id() { return static_cast<uint32_t>(::syscall(SYS_gettid)); }

namespace {

char directory[PATH_MAX];
std::size_t directory_length = 0;
::dev_t device = 0;
::ino_t inode = 0;

constexpr char end_mark[] = "/run.json";  // written when the program has ended
char end_of_recording[PATH_MAX + sizeof end_mark];

constexpr std::size_t most_file_name = 24, most_suffix = 24;
// As the process was when it began: children that it forks give that file names, too.
char first_file[PATH_MAX + most_file_name];

char* put_file(char* to) {
    return put(put(put(put(to, directory), "/c"), static_cast<uint32_t>(::getpid())), ".kilnrec");
}

// What somebody put into its place gets nothing of ours. Nor does a recording that has ended, which processes outlive.
[[gnu::noinline]] bool is_recorded() {
    struct ::stat about {};
    if (::stat(directory, &about) != 0) return errno == EACCES;  // for now
    return about.st_dev == device && about.st_ino == inode && ::lstat(end_of_recording, &about) != 0;
}

}  // namespace

bool set_directory(char const* path) {
    directory_length = std::strlen(path);
    if (directory_length >= sizeof directory) return false;
    std::strcpy(directory, path);
    put(put(end_of_recording, directory), end_mark);
    put_file(first_file);
    struct ::stat about {};
    if (::stat(directory, &about) == 0) {
        device = about.st_dev;
        inode = about.st_ino;
    }
    return true;
}

bool is_directory(char const* path) { return std::strcmp(path, directory) == 0; }

// A number comes again, and is another process's in another namespace: when it began, and where it has that number.
uint32_t identity() {
    char text[1024];
    int const fd = kiln::audit::open_raw("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    auto const read = fd < 0 ? 0 : kiln::audit::read_raw(fd, text, sizeof text - 1);
    if (fd >= 0) kiln::audit::close_raw(fd);
    text[read > 0 ? read : 0] = '\0';
    auto const* at = std::strrchr(text, ')');  // its name may hold anything
    for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return 0;
    uint32_t out = 2166136261u;
    auto const add = [&](char const* from, char const* to) {
        for (; from < to; ++from) out = (out ^ static_cast<unsigned char>(*from)) * 16777619u;
    };
    auto const* const end = std::strchr(at + 1, ' ');
    add(at, end == nullptr ? at + std::strlen(at) : end);
    char space[64];
    auto const length = ::readlink("/proc/self/ns/pid", space, sizeof space);
    if (length > 0) add(space, space + length);
    return out != 0 ? out : 1;
}

char* put(char* to, char const* text) { return ::stpcpy(to, text); }
char* put(char* to, uint32_t number) {
    char digits[10];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0) *to++ = digits[--n];
    *to = '\0';
    return to;
}

namespace {

std::atomic<uint32_t> strings_used{0};
std::atomic<uint64_t> chunks_written{0};

// Programs call us on stacks of a few KiB, a signal's or a clone's: names lie in as many bytes as they have, texts stay where they are, and
// nothing here prints.
constexpr int appending = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;

// The file gets its name when it has its head, so that who comes second finds it whole.
[[gnu::noinline]] void make_events(char const* path) {
    unsigned char head[format::file_header_bytes];
    format::write_file_header(head);
    static std::atomic<uint32_t> made{0};
    auto* const nameless = static_cast<char*>(__builtin_alloca(directory_length + most_file_name + most_suffix));
    put(put(put(put(put(nameless, path), "."), thread_id()), "."), made++);
    int const fresh = kiln::audit::open_raw(nameless, appending | O_CREAT | O_EXCL, 0600);
    if (fresh < 0) return;
    bool const is_whole = kiln::audit::may_grow(fresh, sizeof head) &&
                          kiln::audit::write_raw(fresh, head, sizeof head) == static_cast<ssize_t>(sizeof head);
    kiln::audit::close_raw(fresh);
    // Unless somebody was first. Not every file system has links.
    if (is_whole && ::link(nameless, path) != 0 && errno != EEXIST) ::rename(nameless, path);
    ::unlink(nameless);
}

// Beside the file, that something is missing in it: no descriptor is needed for that, of which there may be none left. Who has other rights
// for now cannot: that is made up for with the next event.
std::atomic<bool> has_unmarked_loss{false};
[[gnu::noinline]] void mark_loss() {
    auto* const mark = static_cast<char*>(__builtin_alloca(directory_length + most_file_name + most_suffix));
    put(put_file(mark), ".full");
    has_unmarked_loss = ::mknod(mark, S_IFREG | 0600, 0) != 0 && errno != EEXIST;
}

// Without a lock: who forks, or takes a signal, while another event is written would wait for it forever.
[[gnu::noinline]] bool append(::iovec const* parts, int count) {
    auto* const path = static_cast<char*>(__builtin_alloca(directory_length + most_file_name));
    put_file(path);
    int fd = kiln::audit::open_raw(path, appending);
    if (fd < 0 && errno == ENOENT) {
        make_events(path);
        fd = kiln::audit::open_raw(path, appending);
    }
    if (fd < 0) return false;
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    bool const is_whole =
        kiln::audit::may_grow(fd, bytes) && kiln::audit::write_raw(fd, parts, count) == static_cast<::ssize_t>(bytes);
    kiln::audit::close_raw(fd);
    return is_whole;
}

char* put_hex(char* to, void const* from, std::size_t bytes) {
    for (auto const* at = static_cast<unsigned char const*>(from); bytes > 0; --bytes, ++at) {
        *to++ = "0123456789abcdef"[*at >> 4];
        *to++ = "0123456789abcdef"[*at & 15];
    }
    *to = '\0';
    return to;
}

// A descriptor of ours would be the lowest for a moment: what other threads, and processes that share the table, open then has another number
// than it had alone, and what they close is ours, or theirs in our hands. So an event is a link, which needs none: another name of a file,
// in which the event stands, or, where it is too long for a name, a symbolic one that points to it, which is much slower. `kiln audit` puts them
// into the file. False: there can be no links here.
constexpr std::size_t most_link_name = 64, most_in_name = 90, most_link_text = 800;
[[gnu::noinline]] bool leave_link(format::chunk type, unsigned char const* record, std::size_t bytes, char const* text,
                                  uint64_t time) {
    static std::atomic<uint32_t> left{0};
    auto const kind = static_cast<unsigned char>(type);
    auto const length = ::strnlen(text, most_link_text);
    bool const fits = bytes + length <= most_in_name;
    auto* const name =
        static_cast<char*>(__builtin_alloca(directory_length + most_link_name + (fits ? 2 * (1 + bytes + length) : 0)));
    auto* at = put(put(put(name, directory), "/c"), static_cast<uint32_t>(::getpid()));
    at = put(put(at, "."), static_cast<uint32_t>(time / 1'000'000'000u));
    at = put(put(put(put(at, "."), static_cast<uint32_t>(time % 1'000'000'000u)), "."), left++);
    if (fits) {
        auto* const to = put_hex(put_hex(put(at, "."), &kind, 1), record, bytes);
        put(put_hex(to, text, length), format::link_suffix);
        if (::link(first_file, name) == 0) return true;  // else it is gone, or has as many names as it can have
    }
    put(at, format::link_suffix);
    auto* const target = static_cast<char*>(__builtin_alloca(2 + 2 * bytes + length + 1));
    auto* const to = put_hex(put_hex(target, &kind, 1), record, bytes);
    std::memcpy(to, text, length);
    to[length] = '\0';
    return ::symlink(target, name) == 0;
}

// The head of a chunk whose contents are two pieces.
void put_head(unsigned char* to, format::chunk type, uint64_t time, ::iovec const& one, ::iovec const& other) {
    format::chunk_header head;
    head.type = static_cast<uint16_t>(type);
    head.sequence = chunks_written++;
    head.first = head.last = time;
    format::write_chunk_header(head, to, {one.iov_base, one.iov_len}, {other.iov_base, other.iov_len});
}

// Before the program begins: exec gave the process a table of descriptors of its own, and there are no threads yet.
bool is_alone = true;

// Apart from who leaves a link, who has no room for this.
[[gnu::noinline]] bool append_event(format::chunk type, ::iovec const& record, uint32_t name, char const* text,
                                    uint64_t time) {
    auto const length = static_cast<uint32_t>(::strnlen(text, most_text));
    unsigned char name_head[format::chunk_header_bytes], name_bytes[8], record_head[format::chunk_header_bytes];
    for (unsigned i = 0; i < 4; ++i) name_bytes[i] = static_cast<unsigned char>(name >> (8 * i));
    for (unsigned i = 0; i < 4; ++i) name_bytes[4 + i] = static_cast<unsigned char>(length >> (8 * i));
    ::iovec const parts[] = {{name_head, sizeof name_head},
                             {name_bytes, sizeof name_bytes},
                             {const_cast<char*>(text), length},
                             {record_head, sizeof record_head},
                             record};
    put_head(name_head, format::chunk::strings, 0, parts[1], parts[2]);
    put_head(record_head, type, time, record, {nullptr, 0});
    return append(parts, 5);
}

template <class Record>
[[gnu::noinline]] bool write_event(Record r, char const* text, uint64_t time) {
    r.name = 0x4000'0000u + strings_used++;
    unsigned char record[format::bytes_of<Record>()];
    format::write_record(r, record);
    return (!is_alone && leave_link(Record::kind, record, sizeof record, text, time)) ||
           append_event(Record::kind, {record, sizeof record}, r.name, text, time);
}

template <class Record>
void note_any(Record const& r, char const* text, uint64_t time) {
    if (is_recorded() && (!write_event(r, text, time) || has_unmarked_loss)) mark_loss();
}

}  // namespace

void program_begins() { is_alone = false; }

void note(format::compile_record r, char const* text, uint64_t time) { note_any(r, text, time); }
void note(format::child_record r, char const* text, uint64_t time) { note_any(r, text, time); }

[[gnu::noinline]] void note_process(uint32_t pid, uint32_t parent, uint32_t what, char const* name, uint32_t status) {
    format::child_record r;
    r.pid = pid;
    r.parent = parent;
    r.event = what;
    r.status = status;
    r.time = now_ns();
    note(r, name, r.time);
}

}  // namespace kiln::companion
