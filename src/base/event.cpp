// SPDX-License-Identifier: Apache-2.0
//
// The ring is an array of slots, each guarded by a sequence number: odd while it is written, even and equal to
// twice its turn when it may be read. Writers never wait; a reader that meets a slot in motion leaves it out.
// A slot holds an event's numbers and then its texts, each as long as it is: most events touch two cache lines of five.
#include <kiln/event.hpp>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/fork_guard.hpp"
#include "base/quiet_writes.hpp"
#include "base/standard_streams.hpp"
#include "base/text.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <new>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln {

namespace {

constexpr std::size_t slot_count = 4096;
constexpr std::size_t kind_count = static_cast<std::size_t>(event_kind::note) + 1;

// Numbers: time, key, request, duration, value, thread and kind, lengths. Texts begin at a word each.
constexpr std::size_t number_words = 7;
constexpr std::size_t text_words =
    (sizeof(event::unit) + sizeof(event::target) + sizeof(event::reason) + sizeof(event::detail)) / 8;

// Copied in and out word by word through atomics: a torn read is discarded, never a data race.
struct alignas(64) slot {
    std::atomic<std::uint64_t> turn{0};
    std::array<std::atomic<std::uint64_t>, number_words + text_words> words{};
};

// Places words into a slot, one after the other.
class slot_writer {
public:
    explicit slot_writer(slot& to) noexcept : next_{to.words.data()} {}
    void put(std::uint64_t word) noexcept { (next_++)->store(word, std::memory_order_relaxed); }
    template <std::size_t N>
    void put(inline_text<N> const& text) noexcept {
        static_assert((N + 1) % 8 == 0 && sizeof text == N + 1);
        // Whole words: what follows the text inside its object is copied and never read.
        auto const* from = reinterpret_cast<std::byte const*>(&text);
        for (std::size_t at = 0; at < text.view().size(); at += 8) {
            std::uint64_t word;
            std::memcpy(&word, from + at, 8);
            put(word);
        }
    }

private:
    std::atomic<std::uint64_t>* next_;
};

void write_slot(slot& to, event const& e, std::int64_t time_ns, std::uint32_t thread) noexcept {
    slot_writer w{to};
    w.put(static_cast<std::uint64_t>(time_ns));
    w.put(e.key);
    w.put(e.request);
    w.put(static_cast<std::uint64_t>(e.duration_ns));
    w.put(static_cast<std::uint64_t>(e.value));
    w.put(std::uint64_t{thread} << 32 | static_cast<std::uint64_t>(e.kind));
    w.put(std::uint64_t{e.unit.view().size()} << 24 | std::uint64_t{e.target.view().size()} << 16 |
          std::uint64_t{e.reason.view().size()} << 8 | std::uint64_t{e.detail.view().size()});
    w.put(e.unit);
    w.put(e.target);
    w.put(e.reason);
    w.put(e.detail);
}

using slot_words = std::array<std::uint64_t, number_words + text_words>;

event read_words(slot_words const& words) noexcept {
    event e;
    e.time_ns = static_cast<std::int64_t>(words[0]);
    e.key = words[1];
    e.request = words[2];
    e.duration_ns = static_cast<std::int64_t>(words[3]);
    e.value = static_cast<std::int64_t>(words[4]);
    e.thread = static_cast<std::uint32_t>(words[5] >> 32);
    e.kind = static_cast<event_kind>(words[5] & 0xff);
    auto const* from = reinterpret_cast<char const*>(words.data() + number_words);
    auto const take = [&](auto& text, unsigned shift) {
        auto const size = static_cast<std::size_t>(words[6] >> shift & 0xff);
        text.append({from, size});
        from += (size + 7) / 8 * 8;
    };
    take(e.unit, 24);
    take(e.target, 16);
    take(e.reason, 8);
    take(e.detail, 0);
    return e;
}

std::uint32_t thread_id() noexcept {
    constinit thread_local std::uint32_t id = 0;
    if (id == 0) id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    return id;
}

void append_text(std::string& out, std::string_view name, std::string_view value) {
    if (!value.empty()) out += fmt::format(",\"{}\":{}", name, base::json_quoted(value));
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
    if (e.request != 0) out += fmt::format(",\"request\":\"{:016x}\"", e.request);
    if (e.duration_ns != 0) out += fmt::format(",\"ns\":{}", e.duration_ns);
    if (e.value != 0) out += fmt::format(",\"value\":{}", e.value);
    return out += '}';
}

namespace {

// A megabyte that is zero and mostly stays so: the kernel's pages, which cost nothing until they are written.
class slot_array {
public:
    slot_array() : memory_{std::calloc(slot_count + 1, sizeof(slot))} {
        static_assert(std::is_trivially_destructible_v<slot>);
        if (!memory_) throw std::bad_alloc{};
        auto room = (slot_count + 1) * sizeof(slot);
        void* at = memory_.get();
        first_ = static_cast<slot*>(std::align(alignof(slot), slot_count * sizeof(slot), at, room));
    }
    [[nodiscard]] slot& operator[](std::uint64_t turn) const noexcept { return first_[turn % slot_count]; }

private:
    struct release {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<void, release> memory_;
    slot* first_ = nullptr;
};

}  // namespace

namespace {

// How long a full pipe may hold up the program, once: who reads it has stopped.
constexpr int patience_ms = 1000;

// One write per line: O_APPEND keeps lines of several processes whole in a file, and a pipe takes so short ones whole or
// not at all. False where nobody will ever read another.
bool write_line(int fd, std::string_view line) noexcept {
    for (;;) {
        if (::write(fd, line.data(), line.size()) >= 0) return true;
        if (errno == EPIPE) return false;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return true;  // a full disk may have room again
        ::pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
        if (::poll(&room, 1, patience_ms) == 0) return false;
    }
}

}  // namespace

namespace {

// Where events are written. A program may close descriptors it does not know and open files of its own in their places: what is not
// our file any more is not written to.
struct event_file {
    int fd = -1;
    ::dev_t device = 0;
    ::ino_t inode = 0;
    bool is_regular = true;
    std::string path;
    std::unique_ptr<event_file> before;

    event_file() = default;
    event_file(event_file const&) = delete;
    event_file& operator=(event_file const&) = delete;
    ~event_file() {
        if (is_there()) ::close(fd);
    }

    [[nodiscard]] bool is_there() const noexcept {
        struct ::stat about {};
        return fd >= 0 && ::fstat(fd, &about) == 0 && about.st_dev == device && about.st_ino == inode;
    }
};

// Null: it cannot be opened.
std::unique_ptr<event_file> open_events(std::string const& path, int how) {
    // Without waiting: a FIFO that nobody reads is an error, and a full one is waited for in write_line().
    int const flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | how;
    auto out = std::make_unique<event_file>();
    std::error_code failed;
    out->path = std::filesystem::absolute(path, failed).native();  // a program may change its directory
    out->fd = base::above_standard_streams([&] { return ::open(path.c_str(), flags, 0600); });
    struct ::stat about {};
    if (out->fd < 0 || ::fstat(out->fd, &about) != 0) return nullptr;
    out->device = about.st_dev;
    out->inode = about.st_ino;
    out->is_regular = S_ISREG(about.st_mode);
    return out;
}

}  // namespace

struct event_log::state {
    std::atomic<std::uint64_t> next{0};
    slot_array slots;
    std::array<std::atomic<std::uint64_t>, kind_count> counts{};
    std::atomic<event_file const*> file{nullptr};
    // Files change at most a few times in a process's life, and another thread may be writing to an old one: closing that could hand
    // its number to somebody else's file.
    std::atomic<event_file*> all{nullptr};

    ~state() { delete all.load(); }

    event_file const* keep(std::unique_ptr<event_file> opened) noexcept {
        auto* const kept = opened.release();
        auto* before = all.load();
        do {
            (void)kept->before.release();
            kept->before.reset(before);
        } while (!all.compare_exchange_weak(before, kept));
        return kept;
    }

    // Subscribers are few and rare; emit() looks at the flag first and takes the lock only when there are some.
    using callback = std::function<void(event const&)>;
    std::atomic<bool> has_subscribers{false};
    base::forkable_mutex subscribers_mutex;  // never held over a callback, which may take locks and fork
    std::vector<std::weak_ptr<callback>> subscribers;
    // One call at a time. A child of fork() has one of its own: its parent's may be held by a thread it does not have.
    std::shared_ptr<std::mutex> one_at_a_time = std::make_shared<std::mutex>();
    std::uint64_t generation = base::fork_generation();

    struct audience {
        std::vector<std::shared_ptr<callback>> all;
        std::shared_ptr<std::mutex> one_at_a_time;
    };
    [[nodiscard]] audience who_listens() {
        audience out;
        std::lock_guard const lock{subscribers_mutex};
        if (auto const now = base::fork_generation(); generation != now) {
            generation = now;
            one_at_a_time = std::make_shared<std::mutex>();
        }
        out.one_at_a_time = one_at_a_time;
        std::erase_if(subscribers, [&](auto const& weak) {
            auto live = weak.lock();
            if (!live) return true;
            out.all.push_back(std::move(live));
            return false;
        });
        has_subscribers.store(!subscribers.empty(), std::memory_order_relaxed);
        return out;
    }

    void write_event(std::string_view line, event_file const* to) {
        if (!to->is_there() && (to = opened_again(to)) == nullptr) return;
        if (to->is_regular && !base::has_bound_on_files()) {
            write_line(to->fd, line);
            return;
        }
        base::quiet_writes const quiet;
        if (!write_line(to->fd, line)) file.compare_exchange_strong(to, nullptr);
    }

    // The same file under the name it had; null, from then on, where there is another or none.
    [[nodiscard]] event_file const* opened_again(event_file const* lost) {
        auto again = lost->is_regular && lost->path.starts_with('/') ? open_events(lost->path, 0) : nullptr;
        bool const is_same = again && again->device == lost->device && again->inode == lost->inode;
        event_file const* const instead = is_same ? keep(std::move(again)) : nullptr;
        auto const* seen = lost;
        return file.compare_exchange_strong(seen, instead) ? instead : seen;
    }

    void tell(event const& e, event_file const* to_file) {
        if (to_file != nullptr) write_event(to_json(e) + '\n', to_file);
        if (!has_subscribers.load(std::memory_order_relaxed)) return;
        auto const listening = who_listens();
        std::lock_guard const lock{*listening.one_at_a_time};
        for (auto const& one : listening.all) (*one)(e);
    }
};

event_log& event_log::process() {
    // Never destroyed: threads may still emit while the process exits.
    static constinit base::made_once<event_log> log;
    return log.get([] {
        auto made = std::make_unique<event_log>();
        // Not for a program with raised privileges: its user would choose what it writes to.
        if (auto const* path = ::secure_getenv("KILN_EVENTS"); path != nullptr && *path != '\0') made->write_to(path);
        return made;
    });
}

event_log::event_log() : state_{std::make_unique<state>()} {}
event_log::~event_log() { write_to(""); }

void event_log::emit(event const& e) noexcept {
    auto& s = *state_;
    auto const turn = s.next.fetch_add(1, std::memory_order_relaxed);
    auto const thread = thread_id();
    auto const time_ns = e.time_ns == 0 ? base::now_ns() : e.time_ns;
    s.counts[static_cast<std::size_t>(e.kind)].fetch_add(1, std::memory_order_relaxed);

    auto& slot = s.slots[turn];
    slot.turn.store(2 * turn + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    write_slot(slot, e, time_ns, thread);
    slot.turn.store(2 * turn + 2, std::memory_order_release);

    auto const* const file = s.file.load(std::memory_order_acquire);
    if (file == nullptr && !s.has_subscribers.load(std::memory_order_relaxed)) return;
    try {
        event told = e;
        told.time_ns = time_ns;
        told.sequence = turn;
        told.thread = thread;
        s.tell(told, file);
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
        auto const& slot = s.slots[turn];
        if (slot.turn.load(std::memory_order_acquire) != 2 * turn + 2) continue;
        slot_words words;
        for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (slot.turn.load(std::memory_order_relaxed) != 2 * turn + 2) continue;
        out.push_back(read_words(words));
        out.back().sequence = turn;
    }
    return out;
}

std::uint64_t event_log::count(event_kind kind) const noexcept {
    return state_->counts[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
}

bool event_log::write_to(std::string const& path) noexcept {
    try {
        auto opened = path.empty() ? nullptr : open_events(path, O_CREAT);
        state_->file.store(opened ? state_->keep(std::move(opened)) : nullptr, std::memory_order_release);
    } catch (...) {  // out of memory
        state_->file.store(nullptr, std::memory_order_release);
    }
    return path.empty() || state_->file.load(std::memory_order_acquire) != nullptr;
}

event_log::subscription event_log::subscribe(std::function<void(event const&)> callback) {
    auto shared = std::make_shared<std::function<void(event const&)>>(std::move(callback));
    std::lock_guard const lock{state_->subscribers_mutex};
    state_->subscribers.push_back(shared);
    state_->has_subscribers.store(true, std::memory_order_relaxed);
    return shared;
}

}  // namespace kiln
