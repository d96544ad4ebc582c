// SPDX-License-Identifier: Apache-2.0
// What an engine is made of. Tools and packs use this; programs use kiln/engine.hpp.
#pragma once

#include "base/config.hpp"
#include "compile/toolchain.hpp"
#include "cuda/library.hpp"
#include "engine/coordinator.hpp"
#include "engine/embedded_bundles.hpp"
#include "engine/loaded_units.hpp"
#include "engine/uses.hpp"

#include <kiln/engine.hpp>

#include <optional>

namespace kiln {

struct ready_unit::state {
    std::string unit;
    std::shared_ptr<cuda::library const> library;
    std::vector<kernel_info> kernels;
    std::vector<constant_info> constants;
    std::vector<std::string> variables;  // as in the image
    kiln::target target;
    provenance from = provenance::compiled;
    std::string key;
    double compile_ms = 0;
    std::vector<dependency> dependencies;  // what it was made from: a changed header makes it another kernel's
    // Of the same with its kernels in another order: what the engine knows and finds again while it is held.
    std::shared_ptr<ready_unit const> of = {};
};

namespace engine_detail {

// What a module above the engine keeps with it, and lets go when the engine goes.
class attachment {
public:
    virtual ~attachment() = default;
    // First, while everything still works: take no new work. Must not block.
    virtual void stop() noexcept = 0;
    // After all requests were answered: end the threads.
    virtual void join() noexcept = 0;
};

}  // namespace engine_detail

struct engine::state {
    state(base::config settings, event_log& log);

    base::config config;
    event_log& events;
    cuda::library_search search;
    engine_detail::ledger book;
    engine_detail::use_list uses;
    std::unique_ptr<store::store> store;
    std::unique_ptr<compile::worker_pool> pool;
    std::unique_ptr<engine_detail::coordinator> requests;
    // Loads for get(): creating a context takes 0.2 s.
    base::per_process<engine_detail::background_thread> loading{
        [] { return std::make_unique<engine_detail::background_thread>(); }};

    engine_detail::loaded_units loaded;
    std::mutex prepared_mutex;
    std::vector<std::shared_ptr<void const>> prepared;  // stays loaded as long as the engine lives

    std::mutex attached_mutex;
    std::shared_ptr<engine_detail::attachment> attached;
    bool shut = false;
    bool is_process = false;  // never destroyed: threads that do not end in time may be left behind at exit
    // Where things are made to be kept or shipped, a toolkit that is named and not there is an error before anything is looked for: what
    // others made does not pass for what it would make. A program is answered as long as something answers.
    bool insists_on_toolkit = false;

    // What an artifact of this unit takes; errc::invalid_argument for options that make no sense, unsupported for those that cannot
    // be keyed. Whoever keeps the order asks (ask_sync, requests->ask), looks up and loads with it, and nothing is hashed again.
    // With `device` the artifact is to be loaded there: something near may do.
    [[nodiscard]] result<engine_detail::order> order_for(unit const& u, kiln::target t,
                                                         std::optional<arch> device = {});
    // The same for a device of this machine: starts the driver.
    [[nodiscard]] result<engine_detail::order> order_on(unit const& u, int device);
    [[nodiscard]] engine_detail::order order_for(link_request const& what);
    [[nodiscard]] std::string producer() const;
    void add_bundle(engine_detail::embedded_data const& b);
    [[nodiscard]] result<obtained> ask_sync(engine_detail::order const& what, wait_options const& how);
    // Loaded once per key and device, whoever asks.
    [[nodiscard]] result<ready_unit> load(engine_detail::subject const& what, obtained const& made, int device);
    // What this order would find, if it is loaded already: headers are compared, the store is not asked.
    [[nodiscard]] std::optional<ready_unit> already_loaded(engine_detail::order const& what, int device);
    // Looks, never compiles: nullopt where it would have to be.
    [[nodiscard]] std::optional<obtained> find(engine_detail::order const& what);
    // The unit on a device, by an order of order_on().
    [[nodiscard]] result<ready_unit> get_sync(engine_detail::order const& what, int device, wait_options const& how);
    // What a caller got for an order, told to whoever records uses.
    struct use_outcome {
        kiln::target target;
        std::string_view key;
        provenance from = provenance::memory;
        double compile_ms = 0;
        double waited_ms = 0;
    };
    void tell_use(engine_detail::order const& what, use_outcome const& got);
    // Workers die; queued writes get 0.2 s, those to the disk 0.5 s each and 5 s in all.
    void shut_down() noexcept;

    // Found at the first need, once; headers only by tools(), which compiling needs and finding does not.
    [[nodiscard]] compile::toolchain_paths const& tools();
    [[nodiscard]] result<compile::tool> const& nvrtc();
    [[nodiscard]] result<compile::tool> const& nvjitlink();

private:
    std::once_flag tools_once_;
    std::once_flag includes_once_;
    std::optional<result<compile::tool>> nvrtc_;
    std::optional<result<compile::tool>> nvjitlink_;
    compile::toolchain_paths tools_;
    void find_tools();
    struct asked_once {
        result<obtained> answer;
        bool joined = false;
    };
    [[nodiscard]] asked_once ask_once_sync(engine_detail::order const& what, wait_options const& how,
                                           base::time_point deadline);
};

}  // namespace kiln
