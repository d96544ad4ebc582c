// SPDX-License-Identifier: Apache-2.0
//
// Where answers to foreign requests are kept: the same cache directories as everything else of Kiln, asked by the
// program's own thread. Unlike kiln::store it has no memory tier, no bundles and no thread of its own but the one that shows
// that a leader is at work: it lives in programs that know nothing of Kiln. Never fails: what cannot be read is a miss, what
// cannot be written is not kept. Safe from any thread and after fork().
#pragma once

#include "base/config.hpp"
#include "intercept/foreign_entry.hpp"
#include "intercept/foreign_request.hpp"
#include "store/disk_tier.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

namespace kiln::intercept {

// Labels of what is kept: store::label::kind.
inline constexpr std::string_view kind_nvrtc = "nvrtc";
inline constexpr std::string_view kind_nvjitlink = "nvjitlink";
inline constexpr std::string_view kind_step = "nvjitlink-step";  // an option or input of a link that was once accepted
inline constexpr std::string_view kind_facts = "facts";          // what a compiler says of itself
inline constexpr std::string_view foreign_kinds[] = {kind_nvrtc, kind_nvjitlink, kind_step, kind_facts};

// What an answer is kept under, and what people see of it.
struct foreign_id {
    request_digests digests;
    std::string kind;
    std::string name;
    std::string target;
    std::string toolchain;
    std::string by = {};  // the program that asked
};

struct foreign_hit {
    store::address at;
    foreign_answer answer;
    std::chrono::milliseconds cost{};  // that making it took
    std::size_t looks = 0;
};

struct foreign_search {
    std::optional<foreign_hit> hit;
    std::string why;  // of a miss: "new", "q.h changed", ...
};

class foreign_store {
public:
    // From KILN_CACHE_DIR, KILN_CACHE_PATH_RO, KILN_READONLY, ... as everywhere.
    // `capsule`: one more directory to read from.
    explicit foreign_store(base::config const& settings, std::filesystem::path const& capsule = {});
    // Adds the counters to those of the directory.
    ~foreign_store();

    // Is told of every entry that was there and is damaged. Before the first lookup.
    using rejection_listener = std::function<void(store::address const&, store::miss)>;
    void tell_rejections_to(rejection_listener listener) { listener_ = std::move(listener); }

    // Nothing is kept anywhere: a lookup cannot hit.
    [[nodiscard]] bool empty() const noexcept { return tiers_.empty(); }

    [[nodiscard]] foreign_search find(foreign_id const& id, look_roots const& roots);
    // Whether this very thing was kept: one without looks.
    [[nodiscard]] bool has(foreign_id const& id);

    // Whether an answer is there, whatever it was made from.
    [[nodiscard]] bool holds(store::address const& at);

    // Of all processes and threads that miss the same thing, one makes it. Blocks while another is at work on it; look again
    // after `leader` and `finished`, another may have made it meanwhile.
    [[nodiscard]] store::flight lead(base::digest const& request);
    // Declared before a flight: there is no thread of ours any more when that has ended.
    class thread_end {
    public:
        explicit thread_end(foreign_store& of) noexcept : of_{of} {}
        ~thread_end();
        thread_end(thread_end const&) = delete;
        thread_end& operator=(thread_end const&) = delete;

    private:
        foreign_store& of_;
    };

    // Where it was kept; an error that says why not, where it was not.
    result<store::address> keep(foreign_id const& id, foreign_entry const& what, std::chrono::milliseconds cost);

    // An answer that is not what its compiler says: nobody gets it any more. False: it is also where nothing may be written.
    [[nodiscard]] bool remove(store::address const& at);

    // Headers that somebody else reads meanwhile: see header_contents.
    header_contents& headers() noexcept { return contents_; }

    // A program that stood still while something was made.
    void count_wait(std::chrono::milliseconds time);
    void count_failure();
    // Now, instead of at the end.
    void flush();

private:
    [[nodiscard]] std::optional<foreign_hit> take(store::disk_tier& tier, store::address const& at,
                                                  foreign_id const& id, look_roots const& roots, std::string& why);

    void note_rejection(store::address const& at, store::miss why);

    std::vector<std::unique_ptr<store::disk_tier>> tiers_;  // the writable one first
    bool remake_ = false;                                   // KILN_RECACHE
    header_contents contents_;
    rejection_listener listener_;
    base::forkable_mutex mutex_;
    store::statistics counts_;
};

// "kiln 0.1.0 for python train.py, 1915 ms": who made an answer, for whom, and how long that took. Not part of what is compared
// when two made the same.
[[nodiscard]] std::string producer_text(std::string_view program, std::chrono::milliseconds cost);
[[nodiscard]] std::chrono::milliseconds cost_in(std::string_view producer);
// Empty where it does not say.
[[nodiscard]] std::string_view program_in(std::string_view producer);

}  // namespace kiln::intercept
