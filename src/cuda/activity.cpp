// SPDX-License-Identifier: Apache-2.0
#include "cuda/activity.hpp"

#include <kiln/event.hpp>

#include <atomic>

namespace kiln {

namespace cuda {

enum class banned : std::uint8_t { transfers, waits };

struct activity_ban {
    banned what;
    activity_ban* outer = nullptr;
    std::vector<std::string> attempts = {};
};

namespace {

using counter = std::atomic<std::uint64_t>;

struct counters {
    struct moved {
        counter times{0}, bytes{0};
    };
    std::array<moved, 3> transfers;  // by transfer_direction
    counter pinned_bytes{0}, synchronisations{0}, allocations{0}, allocated_bytes{0};
    counter to_gpu{0}, to_cpu{0}, fallbacks{0};
};
constinit counters counts;

void add(counter& to, std::uint64_t n = 1) noexcept { to.fetch_add(n, std::memory_order_relaxed); }

struct thread_state {
    activity_ban* innermost = nullptr;
    std::string_view operation;
    moves allowed = moves::declared;
};
constinit thread_local thread_state here;

std::string_view operation_or_none() noexcept { return here.operation.empty() ? "no operation" : here.operation; }

// Written into every scope that forbids it, so that an inner scope hides nothing from an outer one.
result<void> refuse_if(banned what, std::string_view guard, auto const& describe) {
    bool refused = false;
    std::string text;
    for (auto* ban = here.innermost; ban != nullptr; ban = ban->outer) {
        if (ban->what != what) continue;
        if (!refused) text = describe();
        refused = true;
        ban->attempts.push_back(text);
    }
    if (!refused) return {};
    return fail(errc::forbidden, "{}: forbidden here by kiln::{}; move it out of the scope", text, guard);
}

void enter(activity_ban& ban) noexcept {
    ban.outer = here.innermost;
    here.innermost = &ban;
}

// Scopes die in any order the program likes.
void leave(activity_ban& ban) noexcept {
    for (auto** at = &here.innermost; *at != nullptr; at = &(*at)->outer) {
        if (*at != &ban) continue;
        *at = ban.outer;
        return;
    }
}

result<void> verdict(activity_ban const& ban, std::string_view guard) {
    if (ban.attempts.empty()) return {};
    std::string list;
    for (auto const& line : ban.attempts) (list += line) += '\n';
    return fail(errc::forbidden, "kiln::{}: {} tried: {}", guard, ban.attempts.size(), ban.attempts.front())
        .with_log(std::move(list));
}

}  // namespace

result<void> note_transfer(transfer const& what) {
    auto& moved = counts.transfers[static_cast<std::size_t>(what.way)];
    if (what.way != transfer_direction::on_device) {
        auto const describe = [&] {
            return fmt::format("{} bytes {} by {} in {}", what.bytes, name_of(what.way), what.site,
                               operation_or_none());
        };
        KILN_CHECK(refuse_if(banned::transfers, "no_transfers", describe));
        if (here.allowed == moves::undeclared && !here.operation.empty()) {
            return fail(errc::forbidden, "{}: KILN_STRICT allows no transfer the operation has not declared",
                        describe());
        }
        if (what.memory == host_memory::pinned) add(counts.pinned_bytes, what.bytes);
    }
    add(moved.times);
    add(moved.bytes, what.bytes);
    event_log::process().emit({.kind = event_kind::transferred,
                               .unit = here.operation,
                               .target = name_of(what.way),
                               .reason = what.site,
                               .detail = what.memory == host_memory::pinned ? "pinned" : "pageable",
                               .value = static_cast<std::int64_t>(what.bytes)});
    return {};
}

result<void> note_sync(std::string_view site) {
    KILN_CHECK(refuse_if(banned::waits, "no_sync",
                         [&] { return fmt::format("a wait for the device by {} in {}", site, operation_or_none()); }));
    add(counts.synchronisations);
    event_log::process().emit({.kind = event_kind::synchronised, .unit = here.operation, .reason = site});
    return {};
}

void note_allocation(std::size_t bytes, std::string_view site) noexcept {
    add(counts.allocations);
    add(counts.allocated_bytes, bytes);
    event_log::process().emit({.kind = event_kind::allocated,
                               .unit = here.operation,
                               .reason = site,
                               .value = static_cast<std::int64_t>(bytes)});
}

void count_dispatch(dispatch to) noexcept {
    add(to == dispatch::gpu ? counts.to_gpu : counts.to_cpu);
    if (to == dispatch::cpu_as_fallback) add(counts.fallbacks);
}

bool enter_operation(std::string_view name, moves allowed) noexcept {
    if (!here.operation.empty()) return false;
    here.operation = name;
    here.allowed = allowed;
    return true;
}
void leave_operation() noexcept {
    here.operation = {};
    here.allowed = moves::declared;
}

std::string_view current_operation() noexcept { return here.operation; }

}  // namespace cuda

std::string_view name_of(transfer_direction way) noexcept {
    switch (way) {
        case transfer_direction::to_device: return "to-device";
        case transfer_direction::to_host: return "to-host";
        case transfer_direction::on_device: return "on-device";
    }
    return "unknown";
}

activity activity_so_far() noexcept {
    auto const read = [](cuda::counter const& c) { return c.load(std::memory_order_relaxed); };
    auto const& c = cuda::counts;
    return {.transfers_to_device = read(c.transfers[0].times),
            .bytes_to_device = read(c.transfers[0].bytes),
            .transfers_to_host = read(c.transfers[1].times),
            .bytes_to_host = read(c.transfers[1].bytes),
            .transfers_on_device = read(c.transfers[2].times),
            .bytes_on_device = read(c.transfers[2].bytes),
            .pinned_bytes = read(c.pinned_bytes),
            .synchronisations = read(c.synchronisations),
            .allocations = read(c.allocations),
            .allocated_bytes = read(c.allocated_bytes),
            .dispatched_to_gpu = read(c.to_gpu),
            .dispatched_to_cpu = read(c.to_cpu),
            .fallbacks = read(c.fallbacks)};
}

activity activity::since(activity const& earlier) const noexcept {
    activity out = *this;
    out.transfers_to_device -= earlier.transfers_to_device;
    out.bytes_to_device -= earlier.bytes_to_device;
    out.transfers_to_host -= earlier.transfers_to_host;
    out.bytes_to_host -= earlier.bytes_to_host;
    out.transfers_on_device -= earlier.transfers_on_device;
    out.bytes_on_device -= earlier.bytes_on_device;
    out.pinned_bytes -= earlier.pinned_bytes;
    out.synchronisations -= earlier.synchronisations;
    out.allocations -= earlier.allocations;
    out.allocated_bytes -= earlier.allocated_bytes;
    out.dispatched_to_gpu -= earlier.dispatched_to_gpu;
    out.dispatched_to_cpu -= earlier.dispatched_to_cpu;
    out.fallbacks -= earlier.fallbacks;
    return out;
}

no_transfers::no_transfers()
    : ban_{std::make_unique<cuda::activity_ban>(cuda::activity_ban{.what = cuda::banned::transfers})} {
    cuda::enter(*ban_);
}
no_transfers::~no_transfers() { cuda::leave(*ban_); }
result<void> no_transfers::check() const { return cuda::verdict(*ban_, "no_transfers"); }
std::vector<std::string> const& no_transfers::attempts() const noexcept { return ban_->attempts; }

no_sync::no_sync() : ban_{std::make_unique<cuda::activity_ban>(cuda::activity_ban{.what = cuda::banned::waits})} {
    cuda::enter(*ban_);
}
no_sync::~no_sync() { cuda::leave(*ban_); }
result<void> no_sync::check() const { return cuda::verdict(*ban_, "no_sync"); }
std::vector<std::string> const& no_sync::attempts() const noexcept { return ban_->attempts; }

}  // namespace kiln
