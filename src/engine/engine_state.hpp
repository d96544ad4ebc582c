// SPDX-License-Identifier: Apache-2.0
// What an engine is made of. Tools and packs use this; programs use kiln/engine.hpp.
#pragma once

#include "base/config.hpp"
#include "compile/toolchain.hpp"
#include "cuda/library.hpp"
#include "engine/coordinator.hpp"

#include <kiln/engine.hpp>

#include <optional>

namespace kiln {

struct ready_unit::state {
    std::string unit;
    std::shared_ptr<cuda::library const> library;
    std::vector<kernel_info> kernels;
    std::vector<constant_info> constants;
    kiln::target target;
    provenance from = provenance::compiled;
};

struct engine::state {
    state(base::config settings, event_log& log);

    base::config config;
    event_log& events;
    cuda::library_search search;
    std::unique_ptr<store::store> store;
    std::unique_ptr<compile::worker_pool> pool;
    std::unique_ptr<engine_detail::coordinator> requests;
    engine_detail::background_thread loading;  // loads for get(): creating a context takes 0.2 s

    std::mutex loaded_mutex;
    std::map<std::pair<base::digest, int>, std::weak_ptr<ready_unit::state const>> loaded;

    // What an artifact of this unit takes; errc::invalid_argument or unsupported for options that cannot be keyed.
    [[nodiscard]] result<engine_detail::order> order_for(unit const& u, kiln::target t,
                                                         std::optional<arch> device = {});
    [[nodiscard]] engine_detail::order order_for(link_request const& what);
    [[nodiscard]] std::string producer() const;
    [[nodiscard]] result<obtained> ask_sync(engine_detail::order what, wait_options how);
    [[nodiscard]] result<ready_unit> load(engine_detail::order const& what, obtained const& made, int device);
    // Workers die, queued writes get 0.2 s.
    void shut_down() noexcept;

    // Found at the first need, once.
    [[nodiscard]] compile::toolchain_paths const& tools();
    [[nodiscard]] result<compile::tool> const& nvrtc();
    [[nodiscard]] result<compile::tool> const& nvjitlink();

private:
    std::once_flag tools_once_;
    std::optional<result<compile::tool>> nvrtc_;
    std::optional<result<compile::tool>> nvjitlink_;
    compile::toolchain_paths tools_;
    void find_tools();
};

}  // namespace kiln
