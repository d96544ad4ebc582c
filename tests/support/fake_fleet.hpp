// SPDX-License-Identifier: Apache-2.0
// A tier as a remote one is: far away, written to, filling the disk on a hit. It answers at once, or later when and what the test says.
// Nothing outside the tests knows of it.
#pragma once

#include "store/expectations.hpp"
#include "store/refusals.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace kiln::test {

class fake_fleet final : public store::tier {
public:
    enum class answers { at_once, later };
    explicit fake_fleet(answers when = answers::at_once) : when_{when} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "a server far away"; }
    [[nodiscard]] store::tier_traits traits() const noexcept override {
        bool const later = when_ == answers::later;
        return {.where = store::location::fleet,
                .writable = true,
                .persistent = true,
                .headers_sealed = false,
                .any_compiler = false,
                .on_hit = store::fill::machine,
                .lists_families = !later,
                .answers_later = later};
    }
    [[nodiscard]] result<store::lookup> find(store::address const& at, store::expectation const& expected) override {
        ++finds;
        if (on_find) on_find();
        std::lock_guard const lock{mutex_};
        auto const it = entries_.find(at.key);
        if (it == entries_.end() || it->second->about.at != at) return store::lookup{};
        if (auto const wrong = store::mismatch(it->second->about, at, expected))
            return store::lookup{.hit = {}, .why = *wrong};
        if (refused_.has(at.key, base::sha256_of(it->second->payload)))
            return store::lookup{.hit = {}, .why = store::miss::refused};
        return store::lookup{.hit = it->second};
    }
    [[nodiscard]] result<std::vector<store::summary>> list(store::digest const& family,
                                                           std::optional<store::digest> const& request) override {
        ++lists;
        std::vector<store::summary> out;
        std::lock_guard const lock{mutex_};
        for (auto const& [key, e] : entries_) {
            if (e->about.at.family != family || (request && e->about.at.request != *request)) continue;
            out.push_back({.about = e->about, .bytes = e->payload.size() + 1, .from = e->from});
        }
        return out;
    }
    [[nodiscard]] result<store::put_outcome> put(store::entry_ptr const& what) override {
        if (on_put) on_put();
        auto copy = std::make_shared<store::entry>(*what);
        copy->from = store::origin_of(traits());
        {
            std::lock_guard const lock{mutex_};
            entries_[copy->about.at.key] = copy;
        }
        note("put " + what->about.name);
        return store::put_outcome{};
    }
    void used(store::address const&) noexcept override { ++uses; }
    void reject(store::address const& at) noexcept override {
        std::lock_guard const lock{mutex_};
        auto const it = entries_.find(at.key);
        if (it != entries_.end()) refused_.add(at.key, base::sha256_of(it->second->payload));
    }

    std::atomic<int> finds{0}, lists{0}, uses{0};
    std::function<void()> on_find, on_put;
    std::atomic<bool> held_up{false};
    [[nodiscard]] bool is_held_up(store::urgency how) const noexcept override {
        return held_up && how != store::urgency::nothing_else_will_do;
    }

    // The rest is of answers that come later.
    void ask(store::question const& what, store::answered then) override {
        if (when_ == answers::at_once) return store::tier::ask(what, std::move(then));
        std::lock_guard const lock{mutex_};
        asked_.push_back({what, std::move(then)});
        changed_.notify_all();
    }
    struct asked {
        store::question what;
        store::answered then;
    };
    // The next question; blocks until there is one.
    [[nodiscard]] asked next() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return !asked_.empty(); });
        auto out = std::move(asked_.front());
        asked_.pop_front();
        return out;
    }
    [[nodiscard]] store::claim_ptr claim() { return std::make_shared<told_claim>(*this); }
    // What was put, and what became of claims, in order.
    [[nodiscard]] std::vector<std::string> notes() const {
        std::lock_guard const lock{mutex_};
        return notes_;
    }
    void wait_for_notes(std::size_t count) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return notes_.size() >= count; });
    }

private:
    struct told_claim final : store::claim {
        explicit told_claim(fake_fleet& of) : of_{of} {}
        ~told_claim() override { of_.note("let go"); }
        void made(std::chrono::nanoseconds) noexcept override { of_.note("made"); }
        void cannot_publish(std::string_view why) noexcept override { of_.note("open " + std::string{why}); }
        fake_fleet& of_;
    };
    void note(std::string what) {
        std::lock_guard const lock{mutex_};
        notes_.push_back(std::move(what));
        changed_.notify_all();
    }
    answers const when_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<store::digest, store::entry_ptr> entries_;
    store::refusals refused_;
    std::deque<asked> asked_;
    std::vector<std::string> notes_;
};

}  // namespace kiln::test
