// SPDX-License-Identifier: Apache-2.0
#include "audit/recording.hpp"

#include "audit/native_lines.hpp"
#include "audit/source_text.hpp"
#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::audit {

using format::chunk;

std::uint32_t string_table::intern(std::string_view text) {
    auto const [at, fresh] = ids_.try_emplace(std::string{text}, static_cast<std::uint32_t>(all_.size()));
    if (fresh) all_.push_back(&at->first);
    return at->second;
}

namespace {

unsigned char const* raw(base::byte_span data) { return reinterpret_cast<unsigned char const*>(data.data()); }

error newer(std::string const& version) {
    return {errc::unsupported,
            fmt::format("recording of format {}, and this Kiln reads {}: read it with the Kiln that made it", version,
                        format::version)};
}

// Bytes of a recording from anywhere on: at least the longest chunk, or all that is left.
class byte_source {
public:
    virtual ~byte_source() = default;
    [[nodiscard]] virtual std::size_t size() const = 0;
    // Good until the next one is asked for.
    [[nodiscard]] virtual base::byte_span from(std::size_t at) = 0;
};

class held_bytes final : public byte_source {
public:
    explicit held_bytes(base::byte_span data) : data_{data} {}
    [[nodiscard]] std::size_t size() const override { return data_.size(); }
    [[nodiscard]] base::byte_span from(std::size_t at) override { return data_.subspan(std::min(at, data_.size())); }

private:
    base::byte_span data_;
};

// A window that moves on through a file: a long recording is larger than what is made of it. What the file grows by meanwhile is left
// out, and where it has become shorter it ends.
class file_bytes final : public byte_source {
public:
    static result<file_bytes> open(std::filesystem::path const& file) {
        KILN_TRY(auto fd, base::open_file(file, O_RDONLY | O_NONBLOCK));  // a pipe would keep us waiting
        struct ::stat about {};
        if (::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode))
            return fail(errc::corrupt, "{}: it is no file", file.native());
        return file_bytes{std::move(fd), static_cast<std::size_t>(about.st_size)};
    }
    [[nodiscard]] std::size_t size() const override { return size_; }
    [[nodiscard]] base::byte_span from(std::size_t at) override {
        bool const is_held = at >= begin_ && (begin_ + held_ >= at + least || begin_ + held_ >= size_);
        if (!is_held) fill(at);
        return base::byte_span{window_}.subspan(std::min(at - begin_, held_), held_ - std::min(at - begin_, held_));
    }

private:
    static constexpr std::size_t least = format::chunk_header_bytes + format::most_chunk_bytes, window = 8 * least;

    file_bytes(base::file_descriptor fd, std::size_t size) : fd_{std::move(fd)}, size_{size} {}

    void fill(std::size_t at) {
        window_.resize(std::min(window, size_ - std::min(size_, at)));
        begin_ = at;
        held_ = 0;
        while (held_ < window_.size()) {
            auto const more = ::pread(fd_.get(), window_.data() + held_, window_.size() - held_,
                                      static_cast<::off_t>(begin_ + held_));
            if (more < 0 && errno == EINTR) continue;
            if (more <= 0) break;
            held_ += static_cast<std::size_t>(more);
        }
        if (held_ < window_.size()) size_ = begin_ + held_;
    }

    base::file_descriptor fd_;
    std::size_t size_ = 0, begin_ = 0, held_ = 0;
    std::vector<std::byte> window_;
};

// A file with more than that between two chunks has no next one: writers leave parts of a chunk behind, and a sparse file may be of any size.
constexpr std::size_t most_passed_over = std::size_t{64} << 20;

class file_parser {
public:
    file_parser(byte_source& data, string_table& strings, process_recording& to)
        : data_{data}, strings_{strings}, to_{to} {}

    result<void> parse() {
        KILN_CHECK(check_head());
        std::size_t at = format::file_header_bytes;
        while (at < data_.size()) at = next_chunk(at);
        to_.bytes += data_.size();
        return {};
    }

private:
    result<void> check_head() {
        auto const data = data_.from(0);
        if (data.size() < format::file_header_bytes ||
            std::memcmp(data.data(), format::file_magic.data(), format::file_magic.size()) != 0)
            return error{errc::corrupt, "not a recording of kiln audit"};
        base::byte_reader head{data.subspan(format::file_magic.size(), 4)};
        if (auto const version = head.get_u32(); version > format::version) return newer(std::to_string(version));
        return {};
    }

    // Where the next one may begin. After something unreadable: at the next magic number.
    std::size_t next_chunk(std::size_t at) {
        if (auto const size = take_chunk(data_.from(at)); size > 0) return at + size;
        auto next = at + 1;
        auto const end = std::min(data_.size(), at + most_passed_over);
        while (next + 4 <= end && !has_magic(next)) ++next;
        if (next + 4 > end) next = data_.size();
        to_.skipped_bytes += next - at;
        return next;
    }
    bool has_magic(std::size_t at) {
        auto const word = data_.from(at);
        return word.size() >= 4 && base::byte_reader{word.first(4)}.get_u32() == format::chunk_magic;
    }

    // The size of the chunk that stands there; 0: there is none, or not all of it.
    std::size_t take_chunk(base::byte_span rest) {
        if (rest.size() < format::chunk_header_bytes) return 0;
        auto head = format::read_record<format::chunk_header>(raw(rest));
        if (head.magic != format::chunk_magic || head.length > format::most_chunk_bytes ||
            head.length > rest.size() - format::chunk_header_bytes)
            return 0;
        auto const crc = std::exchange(head.crc, 0);
        unsigned char packed[format::chunk_header_bytes];
        format::write_record(head, packed);
        auto const contents = rest.subspan(format::chunk_header_bytes, head.length);
        if (format::crc32c(contents.data(), contents.size(), format::crc32c(packed, sizeof packed)) != crc) return 0;
        if (head.sequence > next_sequence_) to_.missing_chunks += head.sequence - next_sequence_;
        next_sequence_ = head.sequence + 1;
        ++to_.chunks;
        take_contents(static_cast<chunk>(head.type), contents);
        return format::chunk_header_bytes + head.length;
    }

    void take_strings(base::byte_span contents) {
        base::byte_reader in{contents};
        while (in.ok() && in.left() >= 8) {
            auto const id = in.get_u32();
            auto const text = in.get_blob();
            if (in.ok()) ids_[id] = strings_.intern(base::as_text(text));
        }
    }
    std::uint32_t known(std::uint32_t id) const {
        auto const at = ids_.find(id);
        return at == ids_.end() ? 0 : at->second;
    }

    template <class Records, class Each>
    void take(base::byte_span contents, Records& to, Each const& each) {
        using record = std::remove_cvref_t<decltype(to.back())>;
        constexpr auto size = format::bytes_of<record>();
        for (; contents.size() >= size; contents = contents.subspan(size)) {
            auto r = format::read_record<record>(raw(contents));
            each(r);
            to.push_back(r);
        }
        to_.skipped_bytes += contents.size();
    }

    void take_contents(chunk type, base::byte_span contents) {
        auto const as_is = [](auto&) {};
        auto const named = [&](auto& r) { r.name = known(r.name); };
        auto const texted = [&](auto& r) { r.text = known(r.text); };
        switch (type) {
            case chunk::strings: take_strings(contents); break;
            case chunk::process: {
                std::vector<format::process_record> all;
                take(contents, all, as_is);
                for (auto const& r : all) to_.about = r;
                to_.about.program = known(to_.about.program);
                to_.about.library = known(to_.about.library);
                break;
            }
            case chunk::device: take(contents, to_.devices, named); break;
            case chunk::context: take(contents, to_.contexts, as_is); break;
            case chunk::stream: take(contents, to_.streams, as_is); break;
            case chunk::kernel: take(contents, to_.kernels, named); break;
            case chunk::copy: take(contents, to_.copies, as_is); break;
            case chunk::set: take(contents, to_.sets, as_is); break;
            case chunk::call: take(contents, to_.calls, named); break;
            case chunk::wait: take(contents, to_.waits, as_is); break;
            case chunk::memory: take(contents, to_.memory, as_is); break;
            case chunk::jit: take(contents, to_.jits, as_is); break;
            case chunk::overhead: take(contents, to_.overheads, as_is); break;
            case chunk::external: take(contents, to_.externals, as_is); break;
            case chunk::site: take(contents, to_.sites, [&](auto& r) { r.stack = known(r.stack); }); break;
            case chunk::cpu: take(contents, to_.cpu, as_is); break;
            case chunk::compile: take(contents, to_.compiles, named); break;
            case chunk::child: take(contents, to_.children, named); break;
            case chunk::range: take(contents, to_.ranges, named); break;
            case chunk::dispatch: take(contents, to_.dispatches, texted); break;
            case chunk::note: take(contents, to_.notes, texted); break;
            case chunk::module_load: take(contents, to_.modules, as_is); break;
            case chunk::end: take(contents, to_.ends, as_is); break;
            default: ++to_.unknown_chunks; break;
        }
    }

    byte_source& data_;
    string_table& strings_;
    process_recording& to_;
    std::unordered_map<std::uint32_t, std::uint32_t> ids_;
    std::uint64_t next_sequence_ = 0;
};

// Empties what is not ours.
result<void> check_about(recording& to) {
    auto const about = nlohmann::json::parse(to.about, nullptr, false);
    if (!about.is_object()) return {};  // who makes a model of it says so
    if (auto const format = about.find("format"); format != about.end() && *format != "kiln-recording") {
        to.about.clear();  // somebody else's
        return {};
    }
    auto const version = about.find("version");
    if (version == about.end() || !version->is_number() || version->get<double>() <= format::version) return {};
    return newer(version->dump());
}

// "p123.0.kilnrec" and "c123.kilnrec": 123. 0 for another file.
std::uint32_t pid_of(std::string const& name) {
    if (name.size() < 9 || (name[0] != 'p' && name[0] != 'c') || !name.ends_with(".kilnrec")) return 0;
    return static_cast<std::uint32_t>(std::strtoul(name.c_str() + 1, nullptr, 10));
}

// A number may have come twice, or at once in two namespaces of processes: then each file of the recorder's is another process, and what
// the companion saw in that number goes to whoever lived at the time. What is nobody's was seen in one that left no recording.
void add_processes(std::uint32_t pid, std::vector<process_recording> recorded, process_recording seen,
                   std::vector<process_recording>& to) {
    constexpr std::uint64_t resolution = 50'000'000;  // of when a process began
    std::set<std::uint32_t> identities;
    for (auto const& c : seen.children)
        if (c.event == 1 && c.pid == pid && c.status != 0) identities.insert(c.status);
    bool const is_one = recorded.size() == 1 && identities.size() <= 1;
    std::ranges::stable_sort(recorded, {}, [](process_recording const& r) { return r.about.begun; });
    auto const owner = [&](format::compile_record const& c) -> process_recording* {
        for (std::size_t i = 0; i < recorded.size(); ++i) {
            auto const& r = recorded[i];
            auto end = i + 1 < recorded.size() ? recorded[i + 1].about.begun : ~std::uint64_t{0};
            for (auto const& e : r.ends) end = std::min(end, e.time + resolution);
            if (is_one || (c.start + resolution >= r.about.started && c.start <= end)) return &recorded[i];
        }
        return nullptr;
    };
    std::vector<format::compile_record> nobodys;
    for (auto const& c : seen.compiles)
        if (auto* const whose = owner(c)) whose->compiles.push_back(c);
        else nobodys.push_back(c);
    seen.compiles = std::move(nobodys);
    bool const is_empty = seen.compiles.empty() && !recorded.empty();
    if (is_empty) {
        auto& first = recorded.front();
        first.children.insert(first.children.end(), seen.children.begin(), seen.children.end());
        first.bytes += seen.bytes;
        first.chunks += seen.chunks;
        first.skipped_bytes += seen.skipped_bytes;
        first.unknown_chunks += seen.unknown_chunks;
    } else {
        recorded.push_back(std::move(seen));
    }
    for (auto& r : recorded) {
        r.pid = pid;
        to.push_back(std::move(r));
    }
}

}  // namespace

result<void> parse_process(base::byte_span data, string_table& strings, process_recording& to) {
    held_bytes source{data};
    return file_parser{source, strings, to}.parse();
}

result<recording> read_recording(std::filesystem::path const& from) {
    recording out;
    std::error_code ignored;
    std::vector<std::filesystem::path> files;
    bool const is_folder = std::filesystem::is_directory(from, ignored);
    if (is_folder) {
        for (auto const& entry : std::filesystem::directory_iterator{from, ignored}) {
            auto const name = entry.path().filename().native();
            if (pid_of(name) != 0) files.push_back(entry.path());
            if (name.ends_with(".kilnrec.full")) ++out.spoilt_files;
        }
    } else {
        files.push_back(from);
    }
    std::ranges::sort(files);
    out.has_end = false;
    if (is_folder) {
        KILN_TRY(auto const about, base::read_file(from / "run.json", std::size_t{1} << 20));
        if (about) out.about = base::as_text(*about);
        if (auto const read = check_about(out); !read) return error{read.error()}.within((from / "run.json").native());
        out.has_end = !out.about.empty();
        if (files.empty() && !about)
            return fail(errc::not_found, "{}: no recording in it; 'kiln audit --keep DIR -- PROGRAM' makes one",
                        from.native());
    }
    if (!out.has_end) ++out.spoilt_files;  // one file of it, or whoever ran the program was killed, or the disk is full
    // What the recorder and the companion saw of one process belongs together.
    struct of_one_number {
        std::vector<process_recording> recorded;
        process_recording seen;
    };
    std::map<std::uint32_t, of_one_number> by_pid;
    for (auto const& file : files) {
        auto data = file_bytes::open(file);
        if (!data && is_folder) {  // what can be read of the others is
            ++out.spoilt_files;
            continue;
        }
        if (!data) return data.error();
        auto const name = file.filename().native();
        auto& of = by_pid[pid_of(name)];
        auto& to = name.starts_with('c') ? of.seen : of.recorded.emplace_back();
        if (auto const read = file_parser{*data, out.strings, to}.parse(); !read) {
            if (read.error().code() == errc::unsupported || !is_folder)
                return error{read.error()}.within(file.native());
            ++out.spoilt_files;
        }
        // The recorder counts what it writes into a file. The companion's events come from several hands, and a fork counts on.
        if (name.starts_with('c')) to.missing_chunks = 0;
    }
    for (auto& [pid, of] : by_pid) add_processes(pid, std::move(of.recorded), std::move(of.seen), out.processes);
    if (is_folder) {
        auto const lines = base::read_file(from / "lines.txt", std::size_t{64} << 20);
        if (lines && *lines) put_lines(native_lines_from(base::as_text(**lines)), out);
        auto const sources = base::read_file(from / "sources.txt", std::size_t{4} << 20);
        if (sources && *sources) out.sources = kept_sources_from(base::as_text(**sources));
    }
    return out;
}

}  // namespace kiln::audit
