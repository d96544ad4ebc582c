// SPDX-License-Identifier: Apache-2.0
//
// Brings in what was demanded of one engine. A demand only appends to a list; three kinds of threads do the rest, each
// started when it first has something to do:
//
//     intake   turns wants into items (one per thing and target), asks the engine for units, without waiting
//     loader   loads what was found or made, and tries what packs have without compiling: quick things, one after the other
//     drivers  as many as compile processes: take a pack's specialisation through its compiles
//
// All of them take the most urgent first. Errors stay with the item and in the engine's ledger.
#pragma once

#include "base/caught.hpp"
#include "engine/engine_state.hpp"
#include "engine/pack.hpp"
#include "warmup/progress_board.hpp"

#include <kiln/demand.hpp>
#include <kiln/plan.hpp>

#include <condition_variable>
#include <map>
#include <thread>

namespace kiln::warmup {

// One thing for one target, or on one device.
struct item {
    std::string name;
    std::string label;  // of the target, as in the ledger; empty while there is none
    // One of the two: a unit's order, derived once, or what a pack makes it from.
    std::shared_ptr<engine_detail::order const> order;
    std::optional<engine_detail::recipe> made_by;
    base::digest identity;                   // a unit's; zero for a pack's
    std::optional<kiln::target> for_target;  // an artifact; else loaded on `device`
    int device = 0;

    [[nodiscard]] bool is_unit() const noexcept { return !made_by; }
    [[nodiscard]] engine_detail::known_as line() const { return {name, identity}; }

    // With the director's lock:
    priority how = priority::predicted;
    std::uint64_t sequence = 0;
    std::size_t wanted_by = 0;
    bool started = false;    // somebody took it in hand
    bool in_engine = false;  // a unit: the engine was asked, and that was not taken back
    bool running = false;    // a driver has it
    work_state state = work_state::queued;
    std::int64_t since_ns = 0;
    progress_board::expectation expected = {};
    std::optional<error> why = {};
    std::shared_ptr<void const> kept = {};  // keeps it loaded
};
using item_ptr = std::shared_ptr<item>;

class director;

}  // namespace kiln::warmup

struct kiln::demanded::state {
    std::weak_ptr<warmup::director> by;
    std::vector<want> what;
    demand_options how;
    // With the director's lock:
    bool taken = false;  // the intake has made its items
    bool cancelled = false;
    std::vector<warmup::item_ptr> items;
    std::vector<cold_item> hopeless;  // names nobody knows, machines without a GPU
};

namespace kiln::warmup {

using batch_ptr = std::shared_ptr<demanded::state>;

// The engine that a demand is for.
[[nodiscard]] inline engine& engine_of(demand_options const& how) {
    return how.engine != nullptr ? *how.engine : engine::process();
}

class director final : public engine_detail::attachment, public std::enable_shared_from_this<director> {
public:
    explicit director(engine& e) : engine_{e} {}
    ~director() override;

    // Made at the first call.
    [[nodiscard]] static std::shared_ptr<director> of(engine& e);

    void add(batch_ptr const& batch);
    void raise(batch_ptr const& batch, priority how);
    void cancel(batch_ptr const& batch);
    // True when nothing of it will change any more: all ready, failed, cancelled or deferred.
    [[nodiscard]] bool wait_until(demanded::state const& batch, base::time_point deadline);
    [[nodiscard]] warm_report cold(demanded::state const& batch);

    [[nodiscard]] progress_board& progress() noexcept { return progress_; }
    // Runs once on the intake thread, before what is demanded later.
    void first(std::function<void()> task);

    void stop() noexcept override;
    void join() noexcept override;

private:
    enum class task_kind { load, try_pack };
    struct work_item {
        item_ptr what;
        task_kind kind = task_kind::load;
    };

    void start_intake();
    void run_intake();
    void run_loader();
    void run_driver();
    void take(batch_ptr const& batch);
    void place(batch_ptr const& batch, want const& w, std::optional<kiln::target> const& t);
    void try_to_place(batch_ptr const& batch, want const& w, std::optional<kiln::target> const& t) noexcept;
    [[nodiscard]] std::optional<item_ptr> item_for(batch_ptr const& batch, want const& w,
                                                   std::optional<kiln::target> const& t);
    // What becomes of an item that a batch wants: `nothing` where the batch was cancelled meanwhile.
    enum class placement { nothing, started, raised };
    [[nodiscard]] placement join(batch_ptr const& batch, item_ptr const& i, priority& how);
    void ask_for_unit(item_ptr const& i);
    void unit_answered(item_ptr const& i, result<obtained> const& got);
    [[nodiscard]] bool is_wanted_again(item const& i);
    void load_unit(item_ptr const& i);
    void try_pack(item_ptr const& i);
    void drive_pack(item_ptr const& i);
    [[nodiscard]] result<std::shared_ptr<void const>> bring_in(item const& i);

    void queue_load(item_ptr const& i, task_kind kind);
    void queue_drive(item_ptr const& i);
    void settle(item_ptr const& i, result<std::shared_ptr<void const>> how) noexcept;
    // `body` settles it, or sees that it will be; what it throws settles it, too.
    template <class Body>
    void settling(item_ptr const& i, Body&& body) noexcept {
        try {
            body();
        } catch (std::exception const&) {
            settle(i, base::caught_error(i->name));
        }
    }
    void withdraw_untouched(item_ptr const& i);
    void refuse(batch_ptr const& batch, want const& w, work_state state, error const& why);
    void write_down_demand(demanded::state const& batch, engine_detail::known_as thing, std::string_view target,
                           priority how);
    void write_down_deferred(std::string_view name, std::string_view why);
    void write_down_failure(std::string_view name, std::string_view target, error const& why);
    void set_state(item& i, work_state state);
    [[nodiscard]] std::string label_of(int device);
    template <class Body>
    void start(std::thread& thread, Body body);
    [[nodiscard]] static error no_thread(std::string const& name);
    void take_nothing_more(batch_ptr const& batch);

    engine& engine_;
    mutable std::mutex mutex_;
    std::condition_variable work_;     // for the threads
    std::condition_variable changed_;  // for those who wait for items
    bool stopping_ = false;
    bool joined_ = false;
    std::uint64_t last_sequence_ = 0;
    std::vector<std::function<void()>> first_;
    std::vector<batch_ptr> incoming_;
    std::map<std::pair<base::digest, std::string>, item_ptr> items_;
    std::vector<work_item> to_load_;
    std::vector<item_ptr> to_drive_;
    std::thread intake_;
    std::thread loader_;
    std::vector<std::thread> drivers_;
    std::size_t idle_drivers_ = 0;
    std::size_t alive_ = 0;  // threads
    progress_board progress_;
};

// Whether this machine may have a GPU at all, by the files its driver makes: costs no dlopen. The same answer ever after.
[[nodiscard]] bool may_have_gpu() noexcept;

}  // namespace kiln::warmup
