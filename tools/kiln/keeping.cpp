// SPDX-License-Identifier: Apache-2.0
#include "keeping.hpp"

#include "engine/engine_state.hpp"

#include <algorithm>

namespace kiln::cli {

namespace {

// The counters know codes; people read words.
std::string in_words(std::string_view code) {
    if (code == "enospc") return "no space left on the device";
    if (code == "edquot") return "the disk quota is used up";
    if (code == "erofs") return "the file system is read-only";
    if (code == "full") return "no room could be made within KILN_MAX_SIZE";
    if (code == "too-large") return "larger than KILN_MAX_SIZE allows";
    return std::string{code};
}

bool is_by_choice(engine::state& s) { return s.config.flag("KILN_DISABLE") || s.config.flag("KILN_READONLY"); }

std::string reason_of(engine::state& s) {
    if (s.config.flag("KILN_DISABLE")) return "KILN_DISABLE=1";
    if (s.config.flag("KILN_READONLY")) return "KILN_READONLY=1";
    auto const directory = s.store->directory();
    if (!directory) return s.store->options().no_disk_reason;
    if (!directory->reason.empty()) return directory->reason;
    auto const counts = s.store->counts();
    for (auto const code : {"enospc", "edquot", "erofs", "full", "too-large"}) {
        if (counts.errors.contains(code)) return in_words(code);
    }
    if (counts.evicted > 0) return "KILN_MAX_SIZE is too small for all of it";
    if (!counts.errors.empty()) return in_words(counts.errors.begin()->first);
    return "'kiln doctor' tries out the directory";
}

}  // namespace

void keeping::expect(store::address const& at, artifact const& made) {
    auto const key = base::digest::from_hex(made.key);
    if (key) made_.push_back({at.family, at.request, *key});
}

void keeping::expect(engine& e, unit const& u, obtained const& got) {
    if (got.from != provenance::compiled) return;
    auto const order = e.internals().order_for(u, got.what->target);
    if (order && !order->goes_around_the_cache())
        expect({order->subject.id.family, order->subject.id.request, {}}, *got.what);
}

void write_all(engine& e) {
    e.flush_sync();
    for (auto const& u : e.internals().store->flush(base::clock::now()).unsent)
        complain(fmt::format("{}: {} not sent: {}", u.place, count_of(u.count, "artifact"), u.why));
}

std::size_t keeping::complain_of_lost(engine& e, chosen how) const {
    write_all(e);
    auto& s = e.internals();
    auto const& disk = s.store->options().disk;
    auto const is_lost = [&](store::address const& at) {
        std::error_code ignored;
        return !disk || !std::filesystem::exists(store::disk_layout{disk->root}.entry(at), ignored);
    };
    auto const lost = static_cast<std::size_t>(std::ranges::count_if(made_, is_lost));
    if (lost > 0 && (how == chosen::told || !is_by_choice(s)))
        complain(fmt::format("{} of {} compiled {} not kept for the next process{}: {}", lost, made_.size(),
                             lost == 1 ? "is" : "are", disk ? " in " + disk->root.native() : "", reason_of(s)));
    return lost;
}

}  // namespace kiln::cli
