// SPDX-License-Identifier: Apache-2.0
//
// The ring is an array of slots, each guarded by a sequence number: odd while it is written, even and equal to
// twice its turn when it may be read. Writers never wait; a reader that meets a slot in motion leaves it out.
#include <kiln/event.hpp>

#include "base/check.hpp"
#include "base/clock.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln {

namespace {

constexpr std::size_t slot_count = 4096;
constexpr std::size_t kind_count = static_cast<std::size_t>(event_kind::note) + 1;
constexpr std::size_t event_words = sizeof(event) / 8;
static_assert(sizeof(event) % 8 == 0 && std::is_trivially_copyable_v<event>);

// Events are copied in and out word by word through atomics: a torn read is discarded, never a data race.
struct slot {
    std::atomic<std::uint64_t> turn{0};
    std::array<std::atomic<std::uint64_t>, event_words> words{};
};

std::uint32_t thread_id() noexcept {
    thread_local auto const id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    return id;
}

void append_text(std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += ",\"";
    out += name;
    out += "\":\"";
    for (char const c : value) {
        auto const u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') (out += '\\') += c;
        else if (c == '\n') out += "\\n";
        else if (u < 0x20) out += fmt::format("\\u{:04x}", u);
        else out += c;
    }
    out += '"';
}

}  // namespace

std::string_view name_of(event_kind kind) noexcept {
    static constexpr std::string_view names[kind_count] = {
        "demanded",       "found",          "missed",       "rejected",  "fault",      "compiling",   "compiled",
        "compile_failed", "linked",         "waited",       "published", "evicted",    "loading",     "loaded",
        "launched",       "worker_started", "worker_ended", "fell_back", "dispatched", "transferred", "synchronised",
        "allocated",      "rewritten",      "warned",       "note"};
    return names[static_cast<std::size_t>(kind)];
}

std::string to_json(event const& e) {
    auto out = fmt::format("{{\"t\":{},\"seq\":{},\"pid\":{},\"tid\":{},\"kind\":\"{}\"", e.time_ns, e.sequence,
                           ::getpid(), e.thread, name_of(e.kind));
    append_text(out, "unit", e.unit);
    append_text(out, "target", e.target);
    append_text(out, "reason", e.reason);
    append_text(out, "detail", e.detail);
    if (e.key != 0) out += fmt::format(",\"key\":\"{:016x}\"", e.key);
    if (e.duration_ns != 0) out += fmt::format(",\"ns\":{}", e.duration_ns);
    if (e.value != 0) out += fmt::format(",\"value\":{}", e.value);
    return out += '}';
}

namespace {

// A megabyte that is zero and mostly stays so: the kernel's pages, which cost nothing until they are written.
struct zero_pages {
    void operator()(slot* s) const noexcept { std::free(s); }
};
std::unique_ptr<slot[], zero_pages> make_slots() {
    static_assert(std::is_trivially_destructible_v<slot>);
    auto* const memory = std::calloc(slot_count, sizeof(slot));
    if (memory == nullptr) throw std::bad_alloc{};
    return std::unique_ptr<slot[], zero_pages>{static_cast<slot*>(memory)};
}

}  // namespace

struct event_log::state {
    std::atomic<std::uint64_t> next{0};
    std::unique_ptr<slot[], zero_pages> slots = make_slots();
    std::array<std::atomic<std::uint64_t>, kind_count> counts{};
    std::atomic<int> file{-1};

    // Subscribers are few and rare; emit() looks at the flag first and takes the lock only when there are some.
    std::atomic<bool> has_subscribers{false};
    std::mutex subscribers_mutex;
    std::vector<std::weak_ptr<std::function<void(event const&)>>> subscribers;

    void tell(event const& e) {
        std::lock_guard const lock{subscribers_mutex};
        std::erase_if(subscribers, [&](auto const& weak) {
            auto const callback = weak.lock();
            if (callback) (*callback)(e);
            return !callback;
        });
        has_subscribers.store(!subscribers.empty(), std::memory_order_relaxed);
    }
};

event_log& event_log::process() {
    // Never destroyed: threads may still emit while the process exits.
    static event_log& log = *[] {
        auto* made = new event_log;
        if (auto const* path = std::getenv("KILN_EVENTS"); path != nullptr && *path != '\0') made->write_to(path);
        return made;
    }();
    return log;
}

event_log::event_log() : state_{std::make_unique<state>()} {}
event_log::~event_log() { write_to(""); }

void event_log::emit(event e) noexcept {
    auto& s = *state_;
    auto const turn = s.next.fetch_add(1, std::memory_order_relaxed);
    e.sequence = turn;
    e.thread = thread_id();
    if (e.time_ns == 0) e.time_ns = base::now_ns();
    s.counts[static_cast<std::size_t>(e.kind)].fetch_add(1, std::memory_order_relaxed);

    std::array<std::uint64_t, event_words> words;
    std::memcpy(words.data(), &e, sizeof e);
    auto& slot = s.slots[turn % slot_count];
    slot.turn.store(2 * turn + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < event_words; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
    slot.turn.store(2 * turn + 2, std::memory_order_release);

    try {
        if (int const fd = s.file.load(std::memory_order_acquire); fd >= 0) {
            // One write per line: O_APPEND keeps lines of several processes whole.
            auto const line = to_json(e) + '\n';
            [[maybe_unused]] auto const written = ::write(fd, line.data(), line.size());
        }
        if (s.has_subscribers.load(std::memory_order_relaxed)) s.tell(e);
    } catch (...) {
        // Out of memory while describing an event must not disturb what is described.
    }
}

std::vector<event> event_log::recent(std::size_t most) const {
    auto const& s = *state_;
    auto const end = s.next.load(std::memory_order_acquire);
    auto const count = std::min<std::uint64_t>({end, slot_count, most});
    std::vector<event> out;
    out.reserve(count);
    for (auto turn = end - count; turn < end; ++turn) {
        auto const& slot = s.slots[turn % slot_count];
        if (slot.turn.load(std::memory_order_acquire) != 2 * turn + 2) continue;
        std::array<std::uint64_t, event_words> words;
        for (std::size_t i = 0; i < event_words; ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (slot.turn.load(std::memory_order_relaxed) != 2 * turn + 2) continue;
        std::memcpy(static_cast<void*>(&out.emplace_back()), words.data(), sizeof(event));
    }
    return out;
}

std::uint64_t event_log::count(event_kind kind) const noexcept {
    return state_->counts[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
}

bool event_log::write_to(std::string const& path) noexcept {
    int const fd = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // The old descriptor stays open if another thread may be writing to it: closing it could hand its number
    // to somebody else's file. Files change at most a few times in a process's life.
    state_->file.store(fd, std::memory_order_release);
    return path.empty() || fd >= 0;
}

event_log::subscription event_log::subscribe(std::function<void(event const&)> callback) {
    auto shared = std::make_shared<std::function<void(event const&)>>(std::move(callback));
    std::lock_guard const lock{state_->subscribers_mutex};
    state_->subscribers.push_back(shared);
    state_->has_subscribers.store(true, std::memory_order_relaxed);
    return shared;
}

}  // namespace kiln
