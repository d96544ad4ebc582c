// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"
#include "engine/pack_verbs.hpp"
#include "runtime/signals.hpp"
#include "tropical/pack.hpp"
#include "tropical/units.hpp"

#include <atomic>

namespace kiln::tropical {

namespace {

constexpr unsigned most_blocks = (1U << 31) - 1;
static_assert(runtime::signal_words >= most_blocks_sharing);
constexpr unsigned generic_threads = 256;

unsigned blocks_for(std::int64_t tiles) { return static_cast<unsigned>(std::min<std::int64_t>(tiles, most_blocks)); }

// The kernels of one tuned unit on one device, with what a launch needs.
struct tuned_kernels {
    tuning const* by = nullptr;
    std::shared_ptr<cuda::context const> where;
    std::optional<untyped_kernel> large, small;
    launch_shape large_shape, small_shape;  // grids and clusters are filled in per call
    device_facts on;
};

// More shared memory than this device has: the kernel is left out and another does its work.
std::optional<untyped_kernel> usable(ready_unit const& loaded, std::string_view name, unsigned shared) {
    auto found = loaded.kernel(name);
    if (!found) return std::nullopt;
    if (shared > (48U << 10) && !found->allow_shared(shared)) return std::nullopt;
    return *std::move(found);
}

result<std::shared_ptr<tuned_kernels const>> resolve(ready_unit const& loaded, semiring s, scalar type,
                                                     with_winners arg, int device) {
    auto const& by = tuning_of(s, type, arg);
    auto out = std::make_shared<tuned_kernels>();
    out->by = &by;
    KILN_TRY(out->where, cuda::context::of(device));
    auto const shape_of = [&](tile_shape const& t) {
        return launch_shape{.grid = {},
                            .block = {static_cast<unsigned>(t.threads())},
                            .shared_bytes = shared_bytes(t, type, arg),
                            .start = launch_start::early};
    };
    out->small_shape = shape_of(by.small);
    out->small = usable(loaded, "product_small", out->small_shape.shared_bytes);
    if (by.large) {
        out->large_shape = shape_of(*by.large);
        out->large = usable(loaded, "product_large", out->large_shape.shared_bytes);
    }
    if (!out->small)
        return fail(errc::unsupported, "tropical: device {} has less than {} bytes of shared memory for a block",
                    device, out->small_shape.shared_bytes);
    auto const& info = out->where->info();
    out->on = {info.multiprocessors, out->large.has_value(), info.major >= 9};
    return std::shared_ptr<tuned_kernels const>{std::move(out)};
}

}  // namespace

struct untyped_product::state {
    semiring by = semiring::max_plus;
    scalar type = scalar::f32;
    with_winners arg = with_winners::no;
    kernel_choice choice = kernel_choice::automatic;
    int device = 0;
    engine* with = nullptr;
    wait_options wait;

    // Written once by whoever brings the tuned kernels; `kept` owns what it points at.
    std::atomic<tuned_kernels const*> tuned{nullptr};
    std::shared_ptr<tuned_kernels const> kept;

    std::mutex mutex;
    std::condition_variable changed;
    bool finished = false;  // the tuned kernels are there, or will never be
    // Written once, like `tuned`.
    std::atomic<untyped_kernel const*> generic{nullptr};
    std::optional<untyped_kernel> kept_generic;

    void install(result<ready_unit> const& loaded) {
        auto made = loaded ? resolve(*loaded, by, type, arg, device)
                           : result<std::shared_ptr<tuned_kernels const>>{error{loaded.error()}};
        std::lock_guard const lock{mutex};
        if (made && !kept) {
            kept = *std::move(made);
            tuned.store(kept.get(), std::memory_order_release);
        } else if (!made) {
            with->internals().events.emit({.kind = event_kind::fell_back,
                                           .unit = product_name(by, type, arg),
                                           .reason = "tropical-generic",
                                           .detail = made.error().message()});
        }
        finished = true;
        changed.notify_all();
    }

    // Made at the first need: with the tuned kernels there, that is never but for very long k.
    result<untyped_kernel const*> generic_kernel() {
        if (auto const* const there = generic.load(std::memory_order_acquire)) return there;
        KILN_TRY(auto const loaded, engine_detail::shipped_or_made(*with, generic_unit(by, type, arg), device, wait));
        KILN_TRY(auto kernel, loaded.kernel("product_generic"));
        std::lock_guard const lock{mutex};
        if (!kept_generic) kept_generic = std::move(kernel);
        generic.store(&*kept_generic, std::memory_order_release);
        return &*kept_generic;
    }

    result<void> launch_generic(stream_ref on, problem p) {
        KILN_TRY(auto const* const kernel, generic_kernel());
        auto const elements = static_cast<std::int64_t>(p.m) * p.n * p.batch;
        void* arguments[] = {&p};
        return kernel->launch(on, {{blocks_for((elements + generic_threads - 1) / generic_threads)}, {generic_threads}},
                              arguments);
    }

    static result<void> launch_tuned(tuned_kernels const& k, launch_choice which, stream_ref on, problem p) {
        bool const large = which.kernel == kernel_choice::large, split = which.kernel == kernel_choice::split;
        auto const& kernel = large ? k.large : k.small;
        if (!kernel || (split && !k.on.has_split))
            return fail(errc::unsupported, "tropical: this device does not have the kernel that was asked for");
        auto const& tile = large ? *k.by->large : k.by->small;
        auto shape = large ? k.large_shape : k.small_shape;
        shape.grid = blocks_for(tile.tiles(p));
        if (split) shape.grid.z = shape.cluster.z = split_blocks;
        if (which.shares) p.signals = runtime::signals_of(*k.where, on);
        if (p.signals != nullptr) shape.grid = static_cast<unsigned>(k.on.multiprocessors * tile.blocks);
        void* arguments[] = {&p};
        return kernel->launch(on, shape, arguments);
    }
};

result<untyped_product> untyped_product::make(semiring s, scalar type, product_options const& how) {
    if (!is_supported(type))
        return fail(errc::invalid_argument, "tropical: elements are f32, f64, i32 or i64, not {}", kiln::name_of(type));
    if (s == semiring::plus_times && how.arg == with_winners::yes)
        return fail(errc::invalid_argument, "tropical: a sum has no winner; make plus_times without them");
    kiln_has_tropical();
    auto st = std::make_shared<state>();
    st->by = s;
    st->type = type;
    st->arg = how.arg;
    st->choice = how.choice;
    st->device = how.device;
    st->with = how.engine != nullptr ? how.engine : &engine::process();
    st->wait = how.wait;
    untyped_product out{st};
    if (how.choice == kernel_choice::generic) {
        KILN_TRY(auto const* const kernel, st->generic_kernel());
        static_cast<void>(kernel);
        return out;
    }
    auto const tuned = product_unit(s, type, how.arg);
    auto const use = [&](ready_unit const& loaded) -> result<untyped_product> {
        KILN_TRY(st->kept, resolve(loaded, s, type, how.arg, how.device));
        st->tuned.store(st->kept.get(), std::memory_order_release);
        st->finished = true;
        return out;
    };
    KILN_TRY(auto const shipped, engine_detail::load_shipped(*st->with, tuned, how.device, how.wait));
    if (shipped) return use(*shipped);
    KILN_TRY(auto const there, engine_detail::find_kept(*st->with, tuned, how.device));
    if (there || how.choice != kernel_choice::automatic) {
        KILN_TRY(auto const loaded, st->with->get_sync(tuned, how.device, how.wait));
        return use(loaded);
    }
    // The small one first: it is what the caller waits for.
    KILN_TRY(auto const* const kernel, st->generic_kernel());
    static_cast<void>(kernel);
    st->with->get(tuned, how.device).then([st](result<ready_unit> const& loaded) { st->install(loaded); });
    return out;
}

bool untyped_product::tuned() const noexcept { return state_->tuned.load(std::memory_order_acquire) != nullptr; }

bool untyped_product::wait_tuned_sync(std::chrono::milliseconds deadline) const {
    std::unique_lock lock{state_->mutex};
    state_->changed.wait_until(lock, base::from_now(deadline), [&] { return state_->finished; });
    return state_->kept != nullptr;
}

result<void> untyped_product::run(stream_ref on, product_call const& call) const {
    auto& s = *state_;
    KILN_TRY(auto const p, problem_of(call, s.arg));
    if (p.m == 0 || p.n == 0 || p.batch == 0) return {};
    auto const* const tuned = s.tuned.load(std::memory_order_acquire);
    if (tuned == nullptr) return s.launch_generic(on, p);
    auto const which = s.choice == kernel_choice::automatic ? choose(*tuned->by, p, s.arg, tuned->on)
                                                            : choose(*tuned->by, p, s.choice, tuned->on);
    if (which.kernel == kernel_choice::generic) return s.launch_generic(on, p);
    return state::launch_tuned(*tuned, which, on, p);
}

}  // namespace kiln::tropical
