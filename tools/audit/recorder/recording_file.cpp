// SPDX-License-Identifier: Apache-2.0
#include "recording_file.hpp"

#include "file_limit.hpp"
#include "raw_files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::recorder {

namespace {

constexpr std::uint64_t most_bytes_by_default = std::uint64_t{256} << 20;

std::uint64_t most_bytes() {
    static std::uint64_t const most = [] {
        auto const* const said = std::getenv("KILN_AUDIT_MOST_BYTES");
        auto const value = said == nullptr ? 0ULL : std::strtoull(said, nullptr, 10);
        return value == 0 ? most_bytes_by_default : std::uint64_t{value};
    }();
    return most;
}

// A part of a chunk is as good as none to the reader, but nothing of it must stand before the next one unseen: it is what the
// reader finds its way over.
bool write_whole(int fd, std::string_view data) {
    while (!data.empty()) {
        auto const n = audit::write_raw(fd, data.data(), data.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

bool recording_file::make(char const* directory, char const* prefix, unsigned pid) {
    int fd = -1;
    lock_ = audit::lock_of_process();
    for (unsigned again = 0; fd < 0 && again < 100; ++again) {  // a pid may come twice
        path_ = std::string{directory} + '/' + prefix + std::to_string(pid) + '.' + std::to_string(again) + ".kilnrec";
        fd = audit::open_raw(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST) return false;
    }
    if (fd < 0) return false;
    audit::close_raw(fd);
    mark_ = path_ + ".full";
    writer_.begin();
    unsigned char head[format::file_header_bytes];
    format::write_file_header(head);
    return append({reinterpret_cast<char const*>(head), sizeof head});
}

bool recording_file::is_locked_in() const { return audit::has_locked_itself_in(lock_); }

struct recording_file::piece {
    char const* path;
    std::string_view data;
    bool was_opened = false, is_whole = false;
};
void recording_file::write(void* what) {
    auto& p = *static_cast<piece*>(what);
    int const fd = audit::open_raw(p.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return;
    p.was_opened = true;
    p.is_whole = audit::may_grow(fd, p.data.size()) && write_whole(fd, p.data);
    audit::close_raw(fd);
}

bool recording_file::append(std::string_view data) {
    if (full_ || is_locked_in()) return false;
    piece p{path_.c_str(), data};
    if (writer_.is_there()) writer_.call(write, &p);
    else write(&p);
    if (!p.was_opened) return false;
    full_ = !p.is_whole;  // the recording stops, the program goes on
    if (full_) mark_full();
    return !full_;
}

void recording_file::mark_full() const noexcept {
    if (mark_.empty() || is_locked_in()) return;
    ::mknod(mark_.c_str(), S_IFREG | 0600, 0);  // needs no descriptor
}

std::uint32_t recording_file::intern(std::string_view text) {
    text = text.substr(0, format::most_string_bytes);
    if (auto const known = strings_.find(text); known != strings_.end()) return known->second;
    auto const id = static_cast<std::uint32_t>(strings_.size() + 1);
    strings_.emplace(text, id);
    auto& to = batches_[static_cast<std::size_t>(format::chunk::strings)].contents;
    if (to.size() + text.size() + 8 > format::most_chunk_bytes) flush();
    for (unsigned i = 0; i < 4; ++i) to += static_cast<char>(id >> (8 * i));
    for (unsigned i = 0; i < 4; ++i) to += static_cast<char>(text.size() >> (8 * i));
    to += text;
    return id;
}

void recording_file::write_chunk(format::chunk type, batch& b) {
    // How much was left out is said in any case.
    if (type != format::chunk::end && written_ + b.contents.size() > most_bytes()) {
        discarded_ += b.contents.size();
        return;
    }
    format::chunk_header head;
    head.type = static_cast<std::uint16_t>(type);
    head.sequence = sequence_;
    head.first = b.first;
    head.last = b.last;
    out_.assign(format::chunk_header_bytes, '\0');
    format::write_chunk_header(head, reinterpret_cast<unsigned char*>(out_.data()),
                               {b.contents.data(), b.contents.size()});
    out_ += b.contents;
    if (!append(out_)) {
        discarded_ += b.contents.size();
        return;
    }
    ++sequence_;
    written_ += out_.size();
}

void recording_file::flush() {
    // Strings are the first kind: what is named stands before who names it.
    for (std::size_t k = 0; k < batches_.size(); ++k) {
        auto& b = batches_[k];
        if (b.contents.empty()) continue;
        write_chunk(static_cast<format::chunk>(k), b);
        b.contents.clear();
        b.first = b.last = 0;
    }
}

}  // namespace kiln::recorder
