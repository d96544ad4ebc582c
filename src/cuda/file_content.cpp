// SPDX-License-Identifier: Apache-2.0
#include "cuda/file_content.hpp"

#include "base/caught.hpp"
#include "base/digest.hpp"
#include "base/file_state.hpp"
#include "base/fork_guard.hpp"
#include "base/locked_file.hpp"
#include "base/quick_replace.hpp"

#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <variant>
#include <vector>

namespace kiln::cuda {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t digest_length = 64;

using base::file_state;
using base::is_settled;

result<file_state> state_of(int fd, fs::path const& file) {
    base::file_look about;
    if (base::look_at(fd, about) != 0) return io_error(file.string(), errno);
    return about.state;
}

result<std::string> hash_to_the_end(int fd, fs::path const& file) {
    base::sha256 hash;
    base::bytes block(std::size_t{1} << 20);
    for (;;) {
        auto const got = base::sys().read(fd, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error(file.string(), errno);
        if (got == 0) return hash.finish().hex();
        hash.update({block.data(), static_cast<std::size_t>(got)});
    }
}

// One small file for each state of each file.
class directory_memory {
public:
    directory_memory(fs::path directory, memory_access how) : directory_{std::move(directory)}, how_{how} {}

    [[nodiscard]] std::string find(fs::path const& file, file_state const& state) const {
        if (!is_trusted(directory_, S_IFDIR) || !is_trusted(place_of(file, state), S_IFREG)) return {};
        auto const kept = base::read_file(place_of(file, state), 4 * digest_length);
        if (!kept || !*kept) return {};
        auto const text = base::as_text(**kept);
        auto const content = text.substr(0, digest_length);
        return text == line_of(file, state, content) ? std::string{content} : std::string{};
    }

    // Of processes that start at the same time one hashes and the others find what it kept. Nobody waits for long; who has the
    // turn may have been stopped.
    [[nodiscard]] base::locked_file turn() const {
        if (!is_made()) return {};
        auto out = base::open_file(directory_, O_RDONLY | O_DIRECTORY);
        if (!out) return {};
        for (int i = 0; i < 1000 && ::flock(out->get(), LOCK_EX | LOCK_NB) != 0; ++i) ::usleep(500);
        return base::locked_file{*std::move(out)};
    }

    // Whatever goes wrong costs a hash in the next process.
    bool keep(fs::path const& file, file_state const& state, std::string_view content) const {
        if (!is_made()) return false;
        return base::replace_quickly(place_of(file, state), base::as_bytes(line_of(file, state, content))).has_value();
    }

    [[nodiscard]] bool may_keep() const { return how_ == memory_access::read_write && !directory_.empty(); }

private:
    [[nodiscard]] bool is_made() const {
        if (!may_keep()) return false;
        // Never the cache itself: whoever makes that decides who may read it.
        if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return false;
        return is_trusted(directory_, S_IFDIR);
    }

    [[nodiscard]] static bool is_trusted(fs::path const& path, ::mode_t kind) {
        struct ::stat about {};
        return ::lstat(path.c_str(), &about) == 0 && (about.st_mode & S_IFMT) == kind && about.st_uid == ::geteuid() &&
               (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    }

    [[nodiscard]] static base::digest name_of(fs::path const& file, file_state const& state) {
        return base::key_builder{"kiln.content.v3"}
            .add("file", file.native())
            .add("state", fmt::format("{}", fmt::join(state, " ")))
            .finish();
    }
    [[nodiscard]] fs::path place_of(fs::path const& file, file_state const& state) const {
        return directory_ / name_of(file, state).hex().substr(0, 32);
    }
    // With a check of its own: a digit that flipped would make another compiler of this one, for ever.
    [[nodiscard]] static std::string line_of(fs::path const& file, file_state const& state, std::string_view content) {
        auto const check =
            base::key_builder{"kiln.content.v3"}.add("of", name_of(file, state)).add("content", content).finish();
        return fmt::format("{} {}\n", content, check.hex());
    }

    fs::path directory_;
    memory_access how_;
};

struct memory {
    base::forkable_mutex mutex;
    std::map<file_state, std::string> known;
    std::map<file_state, fs::path> unkept;
    directory_memory shared{{}, memory_access::read_only};
};
memory& process_memory() {
    static constinit base::made_once<memory> instance;
    return instance.get([] { return std::make_unique<memory>(); });
}

}  // namespace

void remember_contents_in(fs::path directory, memory_access how) {
    auto& m = process_memory();
    std::scoped_lock const lock{m.mutex};
    m.shared = directory_memory{std::move(directory), how};
}

result<std::string> content_of(fs::path const& file) {
    KILN_TRY(auto fd, base::open_file(file, O_RDONLY));
    KILN_TRY(auto const before, state_of(fd.get(), file));
    auto& m = process_memory();
    auto const shared = [&]() -> std::variant<std::string, directory_memory> {
        std::scoped_lock const lock{m.mutex};
        if (auto const at = m.known.find(before); at != m.known.end()) return at->second;
        return m.shared;
    }();
    if (auto const* const known = std::get_if<std::string>(&shared)) return *known;
    // Files are read and written without the lock: fork() waits for whoever holds it.
    auto const& directory = std::get<directory_memory>(shared);
    bool const settled = is_settled(before) && base::is_told_apart(before, file.c_str());
    auto content = settled ? directory.find(file, before) : std::string{};
    base::locked_file turn;
    if (settled && content.empty()) {
        turn = directory.turn();
        if (turn) content = directory.find(file, before);
    }
    bool kept = !content.empty();
    if (!kept) {
        KILN_TRY(content, hash_to_the_end(fd.get(), file));
        KILN_TRY(auto const after, state_of(fd.get(), file));
        // What changed just now may change again without a sign of it, and would be remembered as what it was.
        if (after != before || !settled) return content;
        kept = directory.keep(file, before, content);
    }
    std::scoped_lock const lock{m.mutex};
    m.known.emplace(before, content);
    if (!kept) m.unkept.emplace(before, file);
    return content;
}

namespace {

void keep_all(memory& m) {
    std::vector<std::tuple<file_state, fs::path, std::string>> left;
    auto const directory = [&] {
        std::scoped_lock const lock{m.mutex};
        for (auto const& [state, file] : std::exchange(m.unkept, {})) left.emplace_back(state, file, m.known[state]);
        return m.shared;
    }();
    std::erase_if(left, [&](auto const& one) {
        auto const& [state, file, content] = one;
        return directory.keep(file, state, content);
    });
    std::scoped_lock const lock{m.mutex};
    for (auto& [state, file, content] : left) m.unkept.emplace(state, std::move(file));
}

}  // namespace

bool has_unkept_contents() {
    auto& m = process_memory();
    std::scoped_lock const lock{m.mutex};
    return m.shared.may_keep() && !m.unkept.empty();
}

void keep_contents() noexcept {
    base::if_memory_allows([] { keep_all(process_memory()); });
}

}  // namespace kiln::cuda
