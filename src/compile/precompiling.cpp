// SPDX-License-Identifier: Apache-2.0
#include "compile/precompiling.hpp"

#include "base/standard_streams.hpp"
#include "compile/source_prefix.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr std::string_view file_name = "/.kiln/p/headers.pch";
// "could not create PCH file because": of headers with errors, which are told anyway.
constexpr char not_made[] = "--diag-suppress=20283";
constexpr std::string_view remark =
    "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n";

// What a compile takes of the machine, however busy that is.
double cpu_ms() {
    ::timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
}

bool names_toolkit_header(std::string_view source, include_roots const& roots) {
    auto const names = included_names(leading_directives(source));
    return std::ranges::any_of(names, [&](std::string_view name) {
        return !roots.locate({dependency::root::toolkit, 0, std::string{name}, {}}).empty();
    });
}

base::file_descriptor make_memory(char const* name) {
    return base::file_descriptor{base::memory_file(name, MFD_CLOEXEC)};
}

// Another descriptor of it, from its beginning.
std::FILE* stream_of(int fd, char const* mode) {
    base::file_descriptor again{::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
    if (!again || ::lseek(again.get(), 0, SEEK_SET) != 0) return nullptr;
    auto* const stream = ::fdopen(again.get(), mode);
    if (stream != nullptr) again.release();
    return stream;
}

// The line in which the compiler tells that it makes or uses one: where it begins and ends.
struct told {
    std::size_t from = std::string::npos;
    std::size_t to = std::string::npos;
    explicit operator bool() const noexcept { return from != std::string::npos; }
};

told find_line(std::string_view log, std::string_view verb) {
    auto const words = fmt::format("\": {} precompiled header file \"{}\"\n", verb, file_name);
    auto const at = log.find(words);
    if (at == log.npos) return {};
    auto const before = log.rfind('\n', at);
    return {before == log.npos ? 0 : before + 1, at + words.size()};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

std::string without_blank_end(std::string text) {
    return text.find_first_not_of('\n') == text.npos ? std::string{} : text;
}

}  // namespace

precompiling::precompiling(precompiled_headers* kept, subject const& of, include_capture& headers)
    : kept_{kept}, api_{of.api}, headers_{headers}, source_{of.source}, begun_ms_{cpu_ms()} {
    if (kept_ == nullptr) return;
    kept_->last = header_use::plain;
    if (!kept_->works_with(api_)) return;
    prefix_ = prefix_of(of.work);
    if (!prefix_) return;
    used_ = kept_->find(*prefix_);
    if (used_ != nullptr && headers_.take_over(used_->looks)) {
        role_ = header_use::reused;
        return;
    }
    using kind = precompiled_headers::headers;
    auto const& text = std::get<compile_job>(of.work.task).unit.source;
    bool const is_worth =
        used_ != nullptr ||
        kept_->is_worth_making(*prefix_, names_toolkit_header(text, of.roots) ? kind::of_toolkit : kind::of_others);
    used_ = nullptr;
    kept_->drop(*prefix_);
    if (!is_worth) return;
    made_.file = make_memory("kiln-precompiled-header");
    if (!made_.file) return;
    role_ = header_use::made;
    auto const& unit = std::get<compile_job>(of.work.task).unit;
    own_.add(leading_directives(unit.source));
    for (auto const& option : unit.options) own_.add(option);
    for (auto const& h : unit.headers) own_.add(h.text);
}

std::vector<std::string> precompiling::arguments() const {
    if (role_ == header_use::plain) return {};
    // Instantiated early, templates come out in another order than without a precompiled header: other bytes, of the same meaning.
    return {fmt::format("--{}-pch={}", role_ == header_use::made ? "create" : "use", file_name),
            "--instantiate-templates-in-pch=false", "--pch-messages=true", not_made};
}

std::FILE* precompiling::open(std::string const& path) {
    if (path != file_name) return headers_.open(path);
    if (used_ == nullptr) return errno = ENOENT, nullptr;
    return stream_of(used_->file.get(), "r");
}

std::FILE* precompiling::create(std::string const& path, char const* mode) {
    if (role_ == header_use::plain) return header_answers::create(path, mode);
    if (path == file_name) {
        // Here the header ends, and with it what it is made from.
        made_.looks = headers_.looks();
        return stream_of(made_.file.get(), mode);
    }
    // EDG's memory while a precompiled header takes part: a file with a name anybody can foresee, in a directory for all.
    auto const name = std::string_view{path}.substr(path.rfind('/') + 1);
    if (!name.starts_with("edg") || blank_ >= 0) return header_answers::create(path, mode);
    auto const memory = make_memory("kiln-compiler-memory");
    auto* const stream = memory ? stream_of(memory.get(), mode) : nullptr;
    if (stream == nullptr) return header_answers::create(path, mode);
    blank_ = ::fileno(stream);
    return stream;
}

int precompiling::stat(std::string const& path, struct ::stat* out) {
    if (path != file_name) return headers_.stat(path, out);
    int const fd = used_ != nullptr ? used_->file.get() : made_.looks.empty() ? -1 : made_.file.get();
    return fd < 0 ? (errno = ENOENT, -1) : ::fstat(fd, out);
}

bool precompiling::is_blank(int fd) const { return blank_ >= 0 && fd == blank_; }

std::optional<std::string> precompiling::finish(nvrtcProgram of, nvrtcResult status, std::string log) {
    if (role_ == header_use::plain) {
        if (prefix_) kept_->took(*prefix_, cpu_ms() - begun_ms_);
        return log;
    }
    if (role_ == header_use::reused && headers_.has_read_again()) return std::nullopt;
    auto const line = find_line(log, role_ == header_use::made ? "creating" : "using");
    if (!line) {
        // The memory is a file's, which may not grow to any size (ulimit -f).
        bool const is_about_this = role_ == header_use::reused || log.find("precompiled header") != log.npos ||
                                   log.find("PCH file") != log.npos ||
                                   log.find("unable to obtain mapped memory") != log.npos;
        // An error in a header is the header's; a compiler that says nothing at all will not say more the next time.
        if (is_about_this || status == NVRTC_SUCCESS) kept_->refuse(*prefix_);
        return is_about_this ? std::nullopt : std::optional{std::move(log)};
    }
    auto before = log.substr(0, line.from);
    auto after = log.substr(line.to);
    if (role_ == header_use::made) {
        finish_making(of, before);
        return without_blank_end(before + after);
    }
    kept_->last = header_use::reused;
    auto told_of_headers = replaced(used_->log, used_->source, source_);
    // It stands behind the first warning, wherever that is.
    if (told_of_headers.find(remark) != std::string::npos) after = replaced(std::move(after), remark, "");
    return without_blank_end(before + told_of_headers + after);
}

void precompiling::finish_making(nvrtcProgram of, std::string_view log) {
    struct ::stat about {};
    bool const made = api_.get_pch_create_status(of) == NVRTC_SUCCESS && ::fstat(made_.file.get(), &about) == 0;
    if (!made || headers_.may_name_the_source(own_)) return kept_->refuse(*prefix_);
    made_.bytes = static_cast<std::uint64_t>(about.st_size);
    made_.log = log;
    made_.source = source_;
    kept_->keep(*prefix_, std::move(made_));
    kept_->last = header_use::made;
}

}  // namespace kiln::compile
