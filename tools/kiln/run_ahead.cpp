// SPDX-License-Identifier: Apache-2.0
#include "run_ahead.hpp"

#include "base/config.hpp"
#include "base/quick_replace.hpp"
#include "intercept/looks.hpp"
#include "store/disk_tier.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

// More than any program needs; a list that only grows would be read for ever.
constexpr std::size_t most_paths = 20'000, most_entries = 1'000;
constexpr int readers = 3;

std::vector<std::string> lines_of(fs::path const& file) {
    std::vector<std::string> out;
    auto const data = base::read_file(file);
    if (!data || !*data) return out;
    auto rest = base::as_text(**data);
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
        out.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
    return out;
}

std::optional<store::address> address_in(std::string_view line) {
    constexpr std::size_t digits = 64;
    if (line.size() != 3 * digits) return std::nullopt;
    auto const part = [&](std::size_t n) { return base::digest::from_hex(line.substr(n * digits, digits)); };
    auto const family = part(0), request = part(1), key = part(2);
    if (!family || !request || !key) return std::nullopt;
    return store::address{*family, *request, *key};
}

std::string line_of(store::address const& at) { return at.family.hex() + at.request.hex() + at.key.hex(); }

void read_entries(std::vector<store::address> const& all) {
    auto const options = store::options_from(base::config::load());
    if (!options.disk) return;
    store::disk_tier tier{{.root = options.disk->root, .mode = store::access::read_only},
                          std::make_shared<store::event_outlet>(nullptr)};
    for (auto const& at : all) (void)tier.find(at, {});
}

}  // namespace

run_ahead::run_ahead(fs::path const& folder, std::string_view program) {
    if (folder.empty()) return;
    auto const name = base::key_builder{"kiln.run.memory.v1"}.add("program", program).finish().hex().substr(0, 32);
    memory_ = folder / "memory" / name;
    known_ = folder / fmt::format("known-{}-{}", ::getpid(), base::random_name());
}

run_ahead::~run_ahead() {
    ended_.store(true);
    if (reader_.joinable()) reader_.join();
    if (has_list_.load()) ::unlink(known_.c_str());
}

void run_ahead::start() {
    if (memory_.empty()) return;
    for (auto& line : lines_of(memory_)) {
        if (line.starts_with('/')) paths_.push_back(std::move(line));
        else if (auto const at = address_in(line)) entries_.push_back(*at);
    }
    if (paths_.empty() && entries_.empty()) return;
    try {
        reader_ = std::thread{[this] { read_all(); }};
    } catch (std::system_error const&) {  // no thread to be had: the program reads for itself
        return;
    }
}

void run_ahead::read_all() {
    std::vector<std::optional<intercept::known_file>> found(paths_.size());
    std::atomic<std::size_t> next{0};
    auto const read = [&] {
        for (auto i = next.fetch_add(1); i < paths_.size() && !ended_.load(); i = next.fetch_add(1))
            found[i] = intercept::read_settled(paths_[i]);
    };
    {
        std::vector<std::jthread> others;
        try {
            for (int i = 1; i < readers; ++i) others.emplace_back(read);
        } catch (std::system_error const&) {  // then with fewer
        }
        read();
    }
    std::vector<intercept::known_file> known;
    for (auto& one : found) {
        if (one) known.push_back(*std::move(one));
    }
    if (ended_.load()) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) gone_.insert(paths_[i]);
    }
    if (!known.empty()) has_list_.store(base::replace_quickly(known_, intercept::encode(known)).has_value());
    read_entries(entries_);
}

void run_ahead::remember(intercept::run_log const& log) {
    ended_.store(true);
    if (reader_.joinable()) reader_.join();
    bool const nothing_new = log.happenings.empty() && log.headers.empty() && gone_.empty();
    if (memory_.empty() || nothing_new) return;
    std::set<std::string> paths, entries;
    std::ranges::copy_if(paths_, std::inserter(paths, paths.end()), [&](auto const& p) { return !gone_.contains(p); });
    paths.insert(log.headers.begin(), log.headers.end());
    for (auto const& h : log.happenings) {
        if (h.at && entries.size() < most_entries) entries.insert(line_of(*h.at));
    }
    std::set<std::string> before;
    for (auto const& at : entries_) before.insert(line_of(at));
    std::set<std::string> const known_before{paths_.begin(), paths_.end()};
    bool const is_new = paths != known_before || (!entries.empty() && entries != before);
    if (!is_new) return;
    std::string text;
    std::size_t count = 0;
    for (auto const& path : paths) {
        if (count++ == most_paths) break;
        text += path + '\n';
    }
    for (auto const& line : entries.empty() ? before : entries) text += line + '\n';
    if (base::make_directories(memory_.parent_path(), 0700)) (void)base::replace_quickly(memory_, base::as_bytes(text));
}

}  // namespace kiln::cli
