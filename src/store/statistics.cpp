// SPDX-License-Identifier: Apache-2.0
#include "store/statistics.hpp"

#include "base/digest.hpp"
#include "base/locked_file.hpp"
#include "base/quick_replace.hpp"
#include "store/wait_lock.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <utility>

namespace kiln::store {

namespace {

constexpr std::string_view magic = "KILNSTAT";
constexpr std::uint32_t version = 1;
constexpr std::size_t most_file_bytes = 64 << 10;
constexpr std::size_t most_name_bytes = 128;

using number = std::uint64_t statistics::*;
using group = counter_map statistics::*;

constexpr std::array<std::pair<std::string_view, number>, 10> numbers{{
    {"requests", &statistics::requests},
    {"compiled", &statistics::compiled},
    {"failed", &statistics::failed},
    {"blocked", &statistics::blocked},
    {"blocked_ms", &statistics::blocked_ms},
    {"published", &statistics::published},
    {"evicted", &statistics::evicted},
    {"evicted_bytes", &statistics::evicted_bytes},
    {"dropped", &statistics::dropped},
    {"divergent", &statistics::divergent},
}};
constexpr std::array<std::pair<std::string_view, group>, 4> groups{{
    {"hits.", &statistics::hits},
    {"rejected.", &statistics::rejected},
    {"errors.", &statistics::errors},
    {"fleet.", &statistics::fleet},
}};

void add_to(counter_map& sums, counter_map const& more) {
    for (auto const& [name, value] : more) sums[name] += value;
}

constexpr std::string_view since_name = "since";  // a time, not a number to add up

std::uint64_t seconds_since_1970() {
    using namespace std::chrono;
    return static_cast<std::uint64_t>(duration_cast<seconds>(system_clock::now().time_since_epoch()).count());
}

void set_by_name(statistics& s, std::string_view name, std::uint64_t value) {
    if (name == since_name) {
        s.since = value;
        return;
    }
    for (auto const& [known, member] : numbers) {
        if (name == known) {
            s.*member = value;
            return;
        }
    }
    for (auto const& [prefix, member] : groups) {
        if (name.starts_with(prefix)) {
            (s.*member)[std::string{name.substr(prefix.size())}] = value;
            return;
        }
    }
    s.other[std::string{name}] = value;
}

}  // namespace

void statistics::add(statistics const& more) {
    for (auto const& [name, member] : numbers) this->*member += more.*member;
    for (auto const& [prefix, member] : groups) add_to(this->*member, more.*member);
    add_to(other, more.other);
    if (since == 0 || (more.since != 0 && more.since < since)) since = more.since;
}

std::uint64_t statistics::found() const noexcept {
    std::uint64_t out = 0;
    for (auto const& [tier, n] : hits) out += n;
    return out;
}

bool statistics::empty() const noexcept { return *this == statistics{}; }

base::bytes encode_statistics(statistics const& s) {
    counter_map flat = s.other;
    for (auto const& [name, member] : numbers) flat[std::string{name}] = s.*member;
    for (auto const& [prefix, member] : groups) {
        for (auto const& [name, value] : s.*member) flat[std::string{prefix} + name] = value;
    }
    if (s.since != 0) flat[std::string{since_name}] = s.since;
    base::byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(version);
    w.put_u32(static_cast<std::uint32_t>(flat.size()));
    for (auto const& [name, value] : flat) {
        w.put_text(std::string_view{name}.substr(0, most_name_bytes));
        w.put_u64(value);
    }
    auto const check = base::sha256_of(w.view());
    w.put_raw(std::as_bytes(std::span{check.bytes}));
    return std::move(w).take();
}

result<statistics> decode_statistics(base::byte_span data) {
    constexpr std::size_t check_bytes = 32;
    auto const bad = [] { return fail(errc::corrupt, "statistics: damaged"); };
    if (data.size() < magic.size() + check_bytes) return bad();
    auto const covered = data.first(data.size() - check_bytes);
    if (std::memcmp(base::sha256_of(covered).bytes.data(), data.data() + covered.size(), check_bytes) != 0)
        return bad();
    base::byte_reader r{covered};
    if (base::as_text(r.get_raw(magic.size())) != magic || r.get_u32() != version) return bad();
    statistics out;
    for (auto left = r.get_count(12); left > 0; --left) {
        auto const name = base::as_text(r.get_blob());
        auto const value = r.get_u64();
        if (name.size() > most_name_bytes) return bad();
        set_by_name(out, name, value);
    }
    if (!r.done()) return bad();
    return out;
}

result<statistics> read_statistics(std::filesystem::path const& file) {
    KILN_TRY(auto const data, base::read_file(file, most_file_bytes));
    if (!data) return statistics{};
    auto sum = decode_statistics(*data);
    return sum ? *std::move(sum) : statistics{};
}

result<bool> add_statistics(std::filesystem::path const& file, std::filesystem::path const& lock,
                            statistics const& more) {
    KILN_TRY(auto file_of_lock, base::open_file(lock, O_RDWR | O_CREAT | O_NOFOLLOW));
    if (wait_flock(file_of_lock.get(), LOCK_EX, base::clock::now() + std::chrono::milliseconds{50}) ==
        lock_attempt::busy)
        return false;
    base::locked_file const held{std::move(file_of_lock)};
    KILN_TRY(auto sum, read_statistics(file));
    // Of a sum that an older version began, nobody knows.
    if (sum.empty()) sum.since = seconds_since_1970();
    sum.add(more);
    KILN_CHECK(base::replace_quickly(file, encode_statistics(sum)));
    return true;
}

}  // namespace kiln::store
