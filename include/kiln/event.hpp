// SPDX-License-Identifier: Apache-2.0
//
// Every decision Kiln takes leaves one event: found or missed, compiled, waited, loaded, rejected and so on. Whoever asks
// for an artifact is answered by one `found`, or by one `missed` and what came of it, however many tiers were asked.
// Events go into a bounded ring (the last few thousand, always on) and, with KILN_EVENTS=FILE, to FILE
// as JSON lines. The library never prints. Emitting into the ring is lock-free and off the heap, and safe from any thread; with a file
// it also writes a line, with a subscriber it calls it, one call at a time, on the emitting thread: be quick. Long text is cut.
#pragma once

#include <kiln/language.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_PUBLIC kiln {

enum class event_kind : std::uint8_t {
    demanded,        // somebody will need it; reason = priority, detail = who
    found,           // a tier had it; reason = tier
    missed,          // no tier had it; reason = why (absent, header-changed, recache, ...)
    rejected,        // an entry was there and failed a check; reason = which
    fault,           // a tier failed and was passed over; reason = tier, detail = error
    compiling,       // a process took it; value = pid
    compiled,        // the compiler made it; duration = compile time, reason = headers-made, headers-reused
    compile_failed,  // it, or a demand, came to nothing; reason = error's code
    linked,          // nvJitLink made it
    waited,          // a caller was blocked; duration = how long, reason = for what, detail = who and which miss
    published,       // written to a tier; reason = tier
    evicted,         // removed to keep the bound; value = bytes freed
    loading,         // the driver is about to get it
    loaded,          // handed to the driver; value = image bytes
    launched,        // a kernel was queued (KILN_TRACE_LAUNCHES); unit = kernel
    worker_started,  // value = pid
    worker_ended,    // value = pid, reason = retired, crashed, hung, memory, parent
    fell_back,       // a second choice was taken; reason = which, detail = why
    dispatched,      // an operation was given to a variant; target = where, reason = why, value = items
    transferred,     // bytes moved between host and device; target = direction, reason = site, value = bytes
    synchronised,    // the host waited for the device; reason = site
    allocated,       // device memory was taken; reason = site, value = bytes
    rewritten,       // a producer and its consumer were replaced by something cheaper; reason = rewrite
    warned,          // a thing a person should read once
    note,            // everything else; reason = deferred, cancelled, ...
};

[[nodiscard]] std::string_view name_of(event_kind kind) noexcept;

template <std::size_t N>
class inline_text {
public:
    inline_text() noexcept {}
    inline_text(std::string_view text) noexcept { append(text); }
    template <std::convertible_to<std::string_view> Text>
    inline_text(Text const& text) noexcept : inline_text{std::string_view{text}} {}
    // As much as there is room for.
    inline_text& append(std::string_view text) noexcept {
        auto const room = N - size_;
        auto const n = text.size() < room ? text.size() : room;
        copy(chars_.data() + size_, text.data(), n);
        size_ = static_cast<std::uint8_t>(size_ + n);
        return *this;
    }
    [[nodiscard]] std::string_view view() const noexcept { return {chars_.data(), size_}; }
    operator std::string_view() const noexcept { return view(); }

private:
    // Most texts are short: two moves that overlap, instead of a call that costs more than what it does.
    static void copy(char* to, char const* from, std::size_t n) noexcept {
        if (n > 32) std::memcpy(to, from, n);
        else if (N >= 16 && n >= 16) copy_ends<16>(to, from, n);
        else if (n >= 8) copy_ends<8>(to, from, n);
        else if (n >= 4) copy_ends<4>(to, from, n);
        else if (n >= 2) copy_ends<2>(to, from, n);
        else if (n == 1) *to = *from;  // an empty view may point nowhere
    }
    template <std::size_t Part>
    static void copy_ends(char* to, char const* from, std::size_t n) noexcept {
        std::array<char, Part> first;
        std::array<char, Part> last;
        std::memcpy(first.data(), from, Part);
        std::memcpy(last.data(), from + n - Part, Part);
        std::memcpy(to, first.data(), Part);
        std::memcpy(to + n - Part, last.data(), Part);
    }

    static_assert(N < 256);
    std::array<char, N> chars_;  // the first size_ of them have a value
    std::uint8_t size_ = 0;
};

struct event {
    event_kind kind = event_kind::note;
    inline_text<47> unit{};     // unit or spec name; empty where none is meant
    inline_text<15> target{};   // "sm_90", "compute_100", ...
    inline_text<31> reason{};   // a stable code, never prose
    inline_text<127> detail{};  // prose for people
    std::uint64_t key = 0;  // first eight bytes of the artifact's key; 0 while it is not known, and where none is meant
    std::uint64_t request =
        0;  // first eight bytes of the identity of what was asked for: tells units of one name apart
    std::int64_t duration_ns = 0;
    std::int64_t value = 0;  // bytes, pid, count: see event_kind
    // Filled in by emit():
    std::int64_t time_ns = 0;    // monotonic clock at the end of what is reported
    std::uint64_t sequence = 0;  // order of emission in this process
    std::uint32_t thread = 0;    // kernel thread id
};

// One line of JSON without the newline, as written to KILN_EVENTS.
[[nodiscard]] std::string to_json(event const& e);

class event_log {
public:
    // The process's log: configured from KILN_EVENTS at first use.
    [[nodiscard]] static event_log& process();

    event_log();
    ~event_log();
    event_log(event_log const&) = delete;
    event_log& operator=(event_log const&) = delete;

    void emit(event const& e) noexcept;

    // The newest events still in the ring, oldest first. Records being overwritten while read are left out.
    [[nodiscard]] std::vector<event> recent(std::size_t most = 4096) const;
    // How many events of this kind were emitted since the start; never wraps back with the ring.
    [[nodiscard]] std::uint64_t count(event_kind kind) const noexcept;

    // Appends to `path` from now on; an empty path stops. False if the file cannot be opened.
    bool write_to(std::string const& path) noexcept;

    // Called for each event until the returned token dies. The callback must not throw, emit, or end the program.
    using subscription = std::shared_ptr<void>;
    [[nodiscard]] subscription subscribe(std::function<void(event const&)> callback);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace kiln
