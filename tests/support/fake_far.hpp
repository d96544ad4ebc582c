// SPDX-License-Identifier: Apache-2.0
// A tier that answers later, when and what the test says.
#pragma once

#include "store/tier.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace kiln::test {

class fake_far final : public store::tier {
public:
    struct told_claim final : store::claim {
        explicit told_claim(fake_far& of) : of_{of} {}
        ~told_claim() override { of_.note("let go"); }
        void cannot_publish(std::string_view why) noexcept override { of_.note("open " + std::string{why}); }
        fake_far& of_;
    };

    [[nodiscard]] std::string_view name() const noexcept override { return "far"; }
    [[nodiscard]] store::tier_traits traits() const noexcept override {
        return {.where = store::location::fleet,
                .writable = true,
                .persistent = true,
                .headers_sealed = false,
                .any_compiler = false,
                .on_hit = store::fill::machine,
                .lists_families = false,
                .answers_later = true};
    }
    [[nodiscard]] result<store::lookup> find(store::address const&, store::expectation const&) override {
        return store::lookup{};
    }
    [[nodiscard]] result<std::vector<store::summary>> list(store::digest const&,
                                                           std::optional<store::digest> const&) override {
        return std::vector<store::summary>{};
    }
    [[nodiscard]] result<store::put_outcome> put(store::entry_ptr const& what) override {
        note("put " + what->about.name);
        std::lock_guard const lock{mutex_};
        kept_[what->about.at.request].push_back(what);
        return store::put_outcome{};
    }
    void reject(store::address const&) noexcept override {}
    void ask(store::question const& what, store::answered then) override {
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
    // What was put under a request, in order.
    [[nodiscard]] std::vector<store::entry_ptr> kept(store::digest const& request) {
        std::lock_guard const lock{mutex_};
        return kept_[request];
    }
    [[nodiscard]] std::vector<std::string> notes() const {
        std::lock_guard const lock{mutex_};
        return notes_;
    }
    void wait_for_notes(std::size_t count) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return notes_.size() >= count; });
    }

private:
    void note(std::string what) {
        std::lock_guard const lock{mutex_};
        notes_.push_back(std::move(what));
        changed_.notify_all();
    }
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<asked> asked_;
    std::map<store::digest, std::vector<store::entry_ptr>> kept_;
    std::vector<std::string> notes_;
};

}  // namespace kiln::test
