// SPDX-License-Identifier: Apache-2.0
#include "compile/header_memory.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_header = std::size_t{64} << 20;
constexpr std::size_t most_known = 32768;
constexpr std::size_t content_length = 64;
constexpr std::string_view magic = "KILNSEEN2";

bool is_absence(int why) { return why == ENOENT || why == ENOTDIR; }

struct read_header_file {
    std::string content;
    file_state state{};
};

// An empty content: no regular file.
result<read_header_file> read_content(std::string const& path) {
    auto file = base::open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file && !is_absence(file.error().status())) return std::move(file).error();
    if (!file) return read_header_file{};
    base::file_look about;
    if (base::look_at(file->get(), about) != 0) return io_error(path, errno);
    if (!S_ISREG(about.mode)) return read_header_file{};
    auto const text = base::read_all(file->get(), largest_header);
    if (!text) return error{text.error()}.within(path);
    return read_header_file{base::sha256_of(base::byte_span{*text}).hex(), about.state};
}

std::string parent_of(std::string const& path) { return path.substr(0, path.rfind('/')); }

// Of a file that nobody else could have written.
bool is_trusted(fs::path const& file) {
    struct ::stat about {};
    return ::lstat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::geteuid() &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

base::bytes with_check(base::byte_writer w) {
    auto out = std::move(w).take();
    auto const check = base::sha256_of(base::byte_span{out});
    auto const raw = std::as_bytes(std::span{check.bytes});
    out.insert(out.end(), raw.begin(), raw.end());
    return out;
}

// Nothing where with_check() did not write it.
base::byte_span checked(base::byte_span data) {
    constexpr std::size_t size = sizeof(base::digest::bytes);
    if (data.size() < size) return {};
    auto const body = data.first(data.size() - size);
    auto const check = base::sha256_of(body);
    return std::ranges::equal(std::as_bytes(std::span{check.bytes}), data.last(size)) ? body : base::byte_span{};
}

}  // namespace

header_memory& header_memory::process() {
    static constinit base::made_once<header_memory> instance;
    return instance.get([] { return std::make_unique<header_memory>(); });
}

void header_memory::remember_in(fs::path file, access how) {
    std::scoped_lock const lock{mutex_};
    to_be_loaded_ = !file.empty();
    file_ = std::move(file);
    how_ = how;
}

void header_memory::trust_toolkits_for(base::clock::duration time) {
    std::scoped_lock const lock{mutex_};
    toolkit_trust_ = time;
}

std::uint64_t header_memory::reads() const {
    std::scoped_lock const lock{mutex_};
    return reads_;
}

result<std::string> header_memory::content_at(std::string const& path) {
    base::file_look about;
    if (base::look_at(path.c_str(), about) != 0) {
        if (is_absence(errno)) return std::string{};
        return io_error(path, errno);
    }
    if (!S_ISREG(about.mode)) return std::string{};
    auto const state = about.state;
    auto const recall = [&]() -> std::optional<std::string> {
        std::scoped_lock const lock{mutex_};
        if (auto const at = known_.find(path); at != known_.end() && at->second.state == state)
            return at->second.content;
        return std::nullopt;
    };
    if (auto content = recall()) return *std::move(content);
    if (load(); auto content = recall()) return *std::move(content);
    KILN_TRY(auto read, read_content(path));
    std::scoped_lock const lock{mutex_};
    ++reads_;
    if (!read.content.empty() && base::is_content_settled(read.state, path.c_str())) {
        if (known_.size() >= most_known) known_.clear();
        known_.insert_or_assign(path, known{read.state, read.content});
        to_be_kept_ = true;
    }
    return std::move(read.content);
}

file_state const& header_memory::question::state_of(std::string const& directory) {
    auto const [at, is_new] = directories_.try_emplace(directory);
    base::file_look about;
    if (is_new && base::look_at(directory.c_str(), about) == 0) at->second = about.state;
    return at->second;
}

result<std::shared_ptr<header_memory::found const>> header_memory::question::in_toolkit(
    std::span<std::string const> directories, std::string const& path) {
    std::string key = path;
    for (auto const& directory : directories) key.append(1, '\0').append(directory);
    base::clock::duration trust{};
    auto const before = [&]() -> std::shared_ptr<toolkit_answer const> {
        std::scoped_lock const lock{from_.mutex_};
        trust = from_.toolkit_trust_;
        auto const at = from_.toolkit_.find(key);
        return at == from_.toolkit_.end() ? nullptr : at->second;
    }();
    auto const is_same = [&](auto const& seen) { return state_of(seen.first) == seen.second; };
    // Where it is found, if at all, is known from before; what it says may be another thing by now.
    if (before && std::ranges::all_of(before->directories, is_same)) {
        auto const& what = before->what;
        if (what.path.empty() || now_ - before->looked_at.load() < trust)
            return std::shared_ptr<found const>{before, &what};
        KILN_TRY(auto const content, from_.content_at(what.path));
        if (content == what.content) {
            before->looked_at = now_;
            return std::shared_ptr<found const>{before, &what};
        }
    }

    auto answer = std::make_shared<toolkit_answer>();
    answer->looked_at = now_;
    bool settled = true;
    for (auto const& directory : directories) {
        auto const file = directory + (directory.ends_with('/') ? "" : "/") + path;
        // The directory first: what comes to be in it afterwards makes it another.
        auto const parent = parent_of(file);
        auto const& state = state_of(parent);
        settled = settled && base::is_settled(state);
        answer->directories.emplace_back(parent, state);
        KILN_TRY(answer->what.content, from_.content_at(file));
        // A link to nothing, whose directory does not change when there is something.
        struct ::stat about {};
        if (answer->what.content.empty()) settled = settled && ::lstat(file.c_str(), &about) != 0 && is_absence(errno);
        if (answer->what.content.empty()) continue;
        answer->what.path = file;
        break;
    }
    if (settled) {
        std::scoped_lock const lock{from_.mutex_};
        if (from_.toolkit_.size() >= most_known) from_.toolkit_.clear();
        from_.toolkit_.insert_or_assign(std::move(key), answer);
    }
    return std::shared_ptr<found const>{answer, &answer->what};
}

void header_memory::load() {
    fs::path file;
    {
        std::scoped_lock const lock{mutex_};
        if (!std::exchange(to_be_loaded_, false)) return;
        file = file_;
    }
    if (!is_trusted(file)) return;
    auto const data = base::read_file(file, std::size_t{64} << 20);
    if (!data || !*data) return;
    base::byte_reader r{checked(**data)};
    std::unordered_map<std::string, known> kept;
    if (base::as_text(r.get_raw(magic.size())) != magic) return;
    for (auto n = r.get_count(4 + sizeof(file_state) + content_length); n > 0; --n) {
        auto path = r.get_text();
        known one;
        for (auto& number : one.state) number = r.get_u64();
        one.content = base::as_text(r.get_raw(content_length));
        kept.emplace(std::move(path), std::move(one));
    }
    if (!r.done()) return;
    std::scoped_lock const lock{mutex_};
    known_.merge(kept);
}

bool header_memory::has_unkept() const {
    std::scoped_lock const lock{mutex_};
    return to_be_kept_ && !file_.empty() && how_ != access::read_only;
}

void header_memory::keep() noexcept {
    try {
        if (!has_unkept()) return;
        load();
        base::byte_writer w;
        fs::path file;
        {
            std::scoped_lock const lock{mutex_};
            if (file_.empty() || how_ == access::read_only || !std::exchange(to_be_kept_, false)) return;
            file = file_;
            w.put_raw(base::as_bytes(magic));
            w.put_u32(static_cast<std::uint32_t>(known_.size()));
            for (auto const& [path, one] : known_) {
                w.put_text(path);
                for (auto const number : one.state) w.put_u64(number);
                w.put_raw(base::as_bytes(one.content));
            }
        }
        // Never the cache itself: whoever makes that decides who may read it.
        if (::mkdir(file.parent_path().c_str(), 0700) != 0 && errno != EEXIST) return;
        static_cast<void>(base::replace_file(file, with_check(std::move(w))));
    } catch (std::exception const&) {
    }
}

}  // namespace kiln::compile
