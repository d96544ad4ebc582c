// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"

#include "base/caught.hpp"
#include "base/fork_guard.hpp"
#include "base/within.hpp"
#include "compile/carried_headers.hpp"
#include "compile/header_memory.hpp"
#include "compile/viewpoint.hpp"
#include "cuda/context.hpp"
#include "cuda/file_content.hpp"
#include "cuda/nvtx.hpp"
#include "engine/answering.hpp"
#include "engine/awaited.hpp"
#include "engine/embedded_bundles.hpp"
#include "engine/kernel_order.hpp"
#include "engine/shipped_files.hpp"
#include "remote/remote_tier.hpp"

#include <kiln/version.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <pthread.h>

namespace kiln {

namespace {

using engine_detail::answering;
using engine_detail::in_order;
using engine_detail::jit_policy;
using engine_detail::order;
using engine_detail::thread_role;

jit_policy policy_of(base::config const& config) {
    auto const& text = config.text("KILN_JIT");
    return text == "allow" ? jit_policy::allow : text == "warn" ? jit_policy::warn : jit_policy::forbid;
}

// " (KILN_JIT: 'alow' is not one of ...)" for whoever never wrote "forbid".
std::string doubt_of(base::config const& config) {
    for (auto const& problem : config.problems()) {
        if (problem.starts_with("KILN_JIT:")) return fmt::format(" ({})", problem);
    }
    return {};
}

compile::pool_options pool_options_of(base::config const& config) {
    compile::pool_options out;
    if (auto const& workers = config.text("KILN_WORKERS"); !workers.empty()) out.workers = std::atoi(workers.c_str());
    out.worker = config.text("KILN_WORKER");
    if (auto const memory = config.size("KILN_WORKER_MEMORY")) out.worker_memory = *memory;
    if (auto const seconds = std::atoi(config.text("KILN_COMPILE_TIMEOUT").c_str()); seconds > 0) {
        out.compile_timeout = std::chrono::seconds{seconds};
    }
    if (!config.flag("KILN_PCH")) out.precompiled = 0;
    auto const kept = store::options_from(config);
    if (kept.disk) out.reproductions = kept.disk->root / "reproductions";
    return out;
}

base::config config_with(engine_options const& options) {
    auto out = base::config::load();
    for (auto const& [name, value] : options.settings) out.try_set(name, value, base::origin::call);
    out.check();
    return out;
}

// A header named by --pre-include is looked for in the working directory first, which a worker does not have.
result<void> make_pre_includes_absolute(std::vector<std::string>& arguments) {
    constexpr std::string_view option = "--pre-include=";
    for (auto& argument : arguments) {
        if (!argument.starts_with(option)) continue;
        auto const file = argument.substr(option.size());
        std::error_code why;
        auto const found = std::filesystem::status(file, why);
        // Not there: it is looked for along the include path. What cannot be told must not become another file of that name.
        if (found.type() == std::filesystem::file_type::none) return io_error(file, why.value());
        if (found.type() != std::filesystem::file_type::regular) continue;
        KILN_TRY(auto const path, compile::name_for_others(file));
        argument = std::string{option} + path;
    }
    return {};
}

std::atomic<engine*> process_engine{nullptr};
// Of this process's parent, its parent and so on: whoever held one may go on with it. None is ever destroyed.
constinit std::array<std::atomic<engine*>, 8> engines_of_parents{};
std::atomic<bool> has_handler{false};  // of the end; children inherit it

}  // namespace

std::string_view name_of(provenance p) noexcept {
    switch (p) {
        case provenance::compiled: return "compiled";
        case provenance::memory: return "memory";
        case provenance::disk: return "disk";
        case provenance::bundle: return "bundle";
        case provenance::fleet: return "fleet";
    }
    return "unknown";
}

engine::state::state(base::config settings, event_log& log)
    : config{std::move(settings)}, events{log}, search{cuda::search_environment::process(config)} {
    store = store::make_store(config, events);
    pool = std::make_unique<compile::worker_pool>(pool_options_of(config), events);
    requests = std::make_unique<engine_detail::coordinator>(
        engine_detail::coordinator_options{
            .jit = policy_of(config), .jit_doubt = doubt_of(config), .producer = producer()},
        engine_detail::coordinator::parts{*store, *pool, events, book});
    for (auto const& b : engine_detail::embedded_bundles()) add_bundle(b);
    store->add_tier(engine_detail::make_shipped_files(events));
    for (auto& far : remote::make_tiers(config, store->outlet())) store->add_tier(std::move(far));
    for (auto const& problem : config.problems())
        events.emit({.kind = event_kind::warned, .reason = "config", .detail = problem});
}

void engine::state::add_bundle(engine_detail::embedded_data const& b) {
    auto opened = store::bundle_tier::from_memory(b.data, b.name);
    if (opened) store->add_tier(*std::move(opened));
    else
        events.emit(
            {.kind = event_kind::rejected, .unit = b.name, .reason = "bundle", .detail = opened.error().message()});
}

void engine_detail::tell_process_engine(embedded_data const& more) {
    auto* const made = process_engine.load(std::memory_order_acquire);
    if (made == nullptr) return;
    made->internals().add_bundle(more);
    // What could not be had without this bundle may be had now.
    made->internals().requests->forget_failures();
}

std::string engine::state::producer() const { return fmt::format("kiln {}", kiln::version); }

void engine::state::find_tools() {
    std::call_once(tools_once_, [this] {
        if (auto const kept = store::options_from(config); kept.disk) {
            bool const may_write = !config.flag("KILN_READONLY");
            cuda::remember_contents_in(kept.disk->root / "contents",
                                       may_write ? cuda::memory_access::read_write : cuda::memory_access::read_only);
            using memory = compile::header_memory;
            memory::process().remember_in(kept.disk->root / "contents" / "headers",
                                          may_write ? memory::access::read_write : memory::access::read_only);
        }
        compile::header_memory::process().trust_toolkits_for(
            std::chrono::seconds{std::atoi(config.text("KILN_TOOLKIT_TRUST").c_str())});
        nvrtc_ = compile::find_nvrtc(search);
        nvjitlink_ = compile::find_nvjitlink(search);
        if (*nvrtc_) tools_.nvrtc = (*nvrtc_)->path;
        if (*nvjitlink_) tools_.nvjitlink = (*nvjitlink_)->path;
        if (!*nvrtc_ && search.named_nvrtc().empty() && !search.absent_toolkit().empty())
            events.emit({.kind = event_kind::warned, .reason = "config", .detail = nvrtc_->error().message()});
    });
}

compile::toolchain_paths const& engine::state::tools() {
    find_tools();
    std::call_once(includes_once_, [this] {
        for (auto const& directory : search.toolkit_includes())
            tools_.toolkit_includes.push_back(compile::name_for_others(directory).value_or(directory));
    });
    return tools_;
}
result<compile::tool> const& engine::state::nvrtc() { return find_tools(), *nvrtc_; }
result<compile::tool> const& engine::state::nvjitlink() { return find_tools(), *nvjitlink_; }

result<order> engine::state::order_for(unit const& u, kiln::target t, std::optional<arch> device) {
    // Workers have another working directory: every path is made absolute here, and none gets into the key.
    auto copy = u;
    KILN_TRY(auto const options, compile::normalize(copy.options));
    copy.options = options.arguments;
    KILN_CHECK(make_pre_includes_absolute(copy.options));
    KILN_TRY(copy.directory, compile::name_for_others(copy.directory));
    copy.include_dirs.insert(copy.include_dirs.end(), options.include_dirs.begin(), options.include_dirs.end());
    for (auto& directory : copy.include_dirs) {
        KILN_TRY(directory, compile::name_for_others(directory));
    }

    auto paths = tools();
    // What has no text cannot be compiled: it is looked for as on a machine without a compiler.
    bool const has_text = copy.images_of.empty();
    // A compiler that was named and is not there is no machine without one: what others made must not pass for what it would make.
    bool const is_named = !search.named_nvrtc().empty() || (insists_on_toolkit && !search.absent_toolkit().empty());
    if (has_text && !nvrtc() && is_named) return error{nvrtc().error()};
    auto const toolchain = has_text && nvrtc() ? nvrtc()->toolchain : std::string{};
    KILN_CHECK(compile::check_uncached_options(copy.uncached_options));
    KILN_TRY(auto const plain, compile::identify(copy, t, toolchain));
    auto const id = compile::with_uncached(plain, copy.uncached_options);
    engine_detail::subject what{
        .name = copy.name, .target = t, .id = id, .toolchain = toolchain, .roots = {}, .device = device};
    what.roots = compile::roots_of(copy);
    what.roots.toolkit = paths.toolkit_includes;
    auto licence = copy.licence;
    auto unusable = !has_text || nvrtc() ? std::string{} : nvrtc().error().log();
    return order{std::move(what), compile::job{std::move(paths), compile::compile_job{std::move(copy), t}},
                 std::move(licence), std::move(unusable)};
}

order engine::state::order_for(link_request const& what) {
    compile::link_job work{.name = what.name,
                           .target = what.target,
                           .inputs = {},
                           .kernels = what.kernels,
                           .exports = what.exports,
                           .options = what.options};
    for (auto const& in : what.inputs) work.inputs.push_back({in->unit, in->target.kind, in->image});
    auto const toolchain = nvjitlink() ? nvjitlink()->toolchain : std::string{};
    engine_detail::subject about{.name = what.name,
                                 .target = what.target,
                                 .id = compile::identify(work, toolchain),
                                 .toolchain = toolchain,
                                 .roots = {},
                                 .device = {}};
    return {std::move(about), compile::job{tools(), std::move(work)}, {}};
}

std::optional<obtained> engine::state::find(order const& what) { return requests->find(what); }

namespace {

// Of work that began before this caller asked: headers may have been edited since it looked at them.
bool is_outdated(order const& what, result<obtained> const& got) {
    // Whether a failure still holds is known where it is remembered: asked once more, it is answered from there or made anew.
    if (!got) return engine_detail::may_be_mended(what, got.error());
    auto const rule =
        got->from == provenance::compiled ? compile::absent_headers::are_misses : compile::absent_headers::are_sealed;
    return !compile::first_change(got->what->dependencies, what.subject.roots, rule).empty();
}

constexpr int most_joins = 3;

// What ask_sync() does, for those who do not wait: `then` has the answer.
void ask(engine_detail::coordinator& with, order const& what,
         std::shared_ptr<engine_detail::coordinator::awaited> const& awaited,
         std::shared_ptr<pending<obtained>::state> const& to, std::function<void(result<obtained> const&)> then) {
    auto const asked = with.ask(what, priority::declared);
    awaited->is_for(asked);
    asked.answer.then(
        [&with, what, awaited, to, then = std::move(then), joined = asked.joined](result<obtained> const& got) {
            answering(to, [&] {
                if (!joined || !is_outdated(what, got)) return then(got);
                // Whoever answers now, ourselves or one more to join, began after this caller asked.
                auto const again = with.ask(what, priority::declared);
                awaited->is_for(again);
                again.answer.then([to, then](result<obtained> const& other) { answering(to, [&] { then(other); }); });
            });
        });
}

}  // namespace

result<obtained> engine::state::ask_sync(order const& what, wait_options const& how) {
    auto const until = base::from_now(how.deadline);
    auto got = ask_once_sync(what, how, until);
    for (int n = 1; got.joined && n < most_joins && is_outdated(what, got.answer); ++n)
        got = ask_once_sync(what, how, until);
    return std::move(got.answer);
}

engine::state::asked_once engine::state::ask_once_sync(order const& what, wait_options const& how,
                                                       base::time_point deadline) {
    auto const role = thread_role::current();
    if (role.what == thread_role::kind::find_only) {
        auto found = find(what);
        if (!found) return {fail(errc::timeout, "'{}' would have to be compiled", what.subject.name)};
        return {*std::move(found)};
    }
    base::stopwatch const watch;
    auto const asked = requests->ask(what, role.how);
    auto const& answer = asked.answer;
    if (role.what == thread_role::kind::background) return {answer.wait_sync(std::chrono::hours{24}), asked.joined};
    if (auto done = answer.wait_until_sync(base::clock::now())) return {*std::move(done), asked.joined};

    auto const line = engine_detail::line_of(what);
    auto const target_name = what.subject.target.arch.name();
    book.wait_begins(line, target_name);
    auto done = [&] {
        cuda::nvtx_range const range{"wait", what.subject.name, target_name};
        return answer.wait_until_sync(deadline);
    }();
    book.wait_ends(line, target_name, watch.ns());
    requests->tell_wait(what, {.ns = watch.ns(),
                               .is_answered = done.has_value(),
                               .who = how.who,
                               .key = done && *done ? base::digest::from_hex((**done).what->key) : std::nullopt});
    if (!done) {
        return {fail(errc::timeout, "'{}' for {} was not ready within {} ms; it goes on in the background",
                     what.subject.name, target_name, how.deadline.count()),
                asked.joined};
    }
    return {*std::move(done), asked.joined};
}

void engine::state::tell_use(order const& what, use_outcome const& got) {
    auto const* const made_from = std::get_if<compile::compile_job>(&what.job.task);
    if (made_from == nullptr || what.goes_around_the_cache() || !made_from->unit.images_of.empty()) return;
    // With absolute directories: whoever replays it may stand elsewhere, and two recipes that read other headers are two.
    std::function<std::optional<engine_detail::recipe>()> const recipe = [&] {
        return engine_detail::recipe_of(made_from->unit);
    };
    uses.tell({.name = what.subject.name,
               .id = engine_detail::identity_of(what.subject),
               .for_target = got.target,
               .key = got.key,
               .from = got.from,
               .compile_ms = got.compile_ms,
               .waited_ms = got.waited_ms,
               .make_recipe = recipe});
}

namespace {

// What was found out about compilers and headers, for the next process.
void keep_what_files_were(base::time_point deadline) {
    if (!cuda::has_unkept_contents() && !compile::header_memory::process().has_unkept()) return;
    (void)base::within(deadline, [] {
        cuda::keep_contents();
        compile::header_memory::process().keep();
    });
}

}  // namespace

void engine::state::shut_down() noexcept {
    std::shared_ptr<engine_detail::attachment> with;
    {
        std::lock_guard const lock{attached_mutex};
        shut = true;
        with = attached;
    }
    if (with) with->stop();
    using std::chrono::milliseconds;
    // With a thread that looks into a directory which hangs, or starts a driver which does. Long enough for one that only has no processor: what
    // it would still use goes as the program ends. Where this is destroyed there is no way without it.
    auto const patience = [this]() -> std::optional<base::time_point> {
        if (!is_process) return std::nullopt;
        return base::clock::now() + milliseconds{5000};
    };
    requests->stop(patience());
    pool->stop();
    requests->abandon();
    if (with) with->join();
    if (auto* const mine = loading.peek()) mine->stop(patience());
    // A disk that is slow, because the machine is busy, is worth the wait: else the next process compiles it all again. One that hangs is not.
    auto const end = base::clock::now() + milliseconds{200};
    base::if_memory_allows([&] { store->finish(end, {.each = milliseconds{500}, .most = milliseconds{5000}}); });
    base::if_memory_allows([] { keep_what_files_were(base::clock::now() + milliseconds{300}); });
}

namespace {

// The engine of a process is made once. A child of fork() makes one of its own, also where a thread that it does not have was just making
// its parent's.
struct process_maker {
    std::once_flag once{};
    engine* made = nullptr;

    [[nodiscard]] static process_maker& current() {
        using of_each_process = base::per_process<process_maker>;
        static constinit base::made_once<of_each_process> all;
        return all
            .get([] { return std::make_unique<of_each_process>([] { return std::make_unique<process_maker>(); }); })
            .get();
    }
};

// A forked child has none of its parent's threads and must not talk to its parent's workers. As the library is loaded, and not where the engine
// is made: C libraries before glibc 2.36 run the handlers with a lock that adding one takes, too, and fork() waits for an engine that is made.
[[maybe_unused]] int const forgotten_in_children = ::pthread_atfork(nullptr, nullptr, [] {
    auto* const parents = process_engine.exchange(nullptr, std::memory_order_acq_rel);
    if (parents == nullptr) return;
    for (auto& place : engines_of_parents) {
        engine* none = nullptr;
        if (place.compare_exchange_strong(none, parents)) return;
    }
});

}  // namespace

engine& engine::process() {
    if (auto* const made = process_engine.load(std::memory_order_acquire)) return *made;
    auto& maker = process_maker::current();
    std::call_once(maker.once, [&] {
        base::no_fork_meanwhile const whole;
        auto* const made = new engine;  // never destroyed: other threads may ask until the very end
        made->state_->is_process = true;
        if (!has_handler.load()) {
            std::atexit([] {
                if (auto* const last = process_engine.load(std::memory_order_acquire)) last->state_->shut_down();
                // A child that went on with its parent's ends it for itself.
                for (auto const& place : engines_of_parents) {
                    auto* const inherited = place.load();
                    if (inherited != nullptr && inherited->state_->requests->is_used()) inherited->state_->shut_down();
                }
            });
            has_handler.store(true);
        }
        maker.made = made;
        process_engine.store(made, std::memory_order_release);
    });
    return *maker.made;
}

engine::engine(engine_options options)
    : state_{std::make_unique<state>(config_with(options),
                                     options.events != nullptr ? *options.events : event_log::process())} {}

engine::~engine() { state_->shut_down(); }

result<obtained> engine::artifact_sync(unit const& u, target t, wait_options how) {
    engine_detail::use_scope const use;
    KILN_TRY(auto const what, state_->order_for(u, t));
    auto got = state_->ask_sync(what, how);
    if (got && use.outermost() && state_->uses.watched())
        state_->tell_use(what, {t, got->what->key, got->from, got->what->compile_ms, got->ms});
    if (!got) return got;
    return in_order(*std::move(got), u.kernels);
}

pending<obtained> engine::artifact(unit const& u, target t) {
    auto out = std::make_shared<pending<obtained>::state>();
    auto const what = state_->order_for(u, t);
    if (!what) {
        out->finish(error{what.error()});
        return pending<obtained>{std::move(out)};
    }
    auto const awaited = state_->requests->make_awaited();
    out->blocked = [awaited](blocked_wait const& how) { return awaited->tell(how); };
    ask(*state_->requests, *what, awaited, out,
        [this, t, out, names = u.kernels, what = *what](result<obtained> const& got) {
            if (!got) return out->finish(got);
            // Who records is told first: whoever waits may end the recording as soon as it has its answer.
            if (state_->uses.watched())
                state_->tell_use(what, {t, got->what->key, got->from, got->what->compile_ms, got->ms});
            out->finish(in_order(*got, names));
        });
    return pending<obtained>{std::move(out)};
}

result<std::optional<obtained>> engine::find(unit const& u, target t) {
    KILN_TRY(auto const what, state_->order_for(u, t));
    auto found = state_->find(what);
    if (!found) return found;
    return std::optional{in_order(*std::move(found), u.kernels)};
}

result<obtained> engine::link_sync(link_request const& what, wait_options how) {
    if (what.inputs.empty())
        return fail(errc::invalid_argument, "'{}': nothing to link: no inputs were given", what.name);
    KILN_CHECK(compile::check_link_options(what.options));
    for (auto const& in : what.inputs) {
        if (!in) return fail(errc::invalid_argument, "'{}': an input of the link is null", what.name);
    }
    KILN_TRY(auto got, state_->ask_sync(state_->order_for(what), how));
    return in_order(std::move(got), what.kernels);
}

bool engine::flush_sync(std::chrono::milliseconds deadline) {
    auto const until = base::from_now(deadline);
    bool const settled = state_->store->flush(until).settled;
    keep_what_files_were(until);
    return settled;
}

engine_status engine::status() const { return state_->requests->status(); }

}  // namespace kiln
