// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/operation.hpp>

#include "cuda/activity.hpp"
#include "runtime/audit_words.hpp"
#include "runtime/calibration.hpp"
#include "runtime/execution.hpp"

#include <kiln/event.hpp>

#include <algorithm>
#include <charconv>

namespace kiln {

namespace {

using detail_text = inline_text<127>;

void append_number(detail_text& to, std::uint64_t number) noexcept {
    std::array<char, 40> digits;  // 20 would do, and make GCC warn of texts longer than that
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    to.append({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

enum class fit : std::uint8_t { fits, wrong_type, wrong_size, not_repeatable };

fit fit_of(variant const& v, call_facts const& call) {
    if (!v.types.has(call.type)) return fit::wrong_type;
    if (call.items < v.least_items || call.items > v.most_items) return fit::wrong_size;
    // Where a long input is cut depends on the memory that was free.
    bool const varies =
        v.varying.has(call.type) || (call.part_of != 0 && v.where == place::gpu && float_types.has(call.type));
    if (varies && determinism_requested()) return fit::not_repeatable;
    return fit::fits;
}

// The first variant at a place that fits; else the least serious reason why none does.
struct choice {
    variant const* found = nullptr;
    fit why = fit::wrong_type;
};

choice choose(operation const& what, place where, call_facts const& call, precision_plan const& plan) {
    choice out;
    for (auto const& v : what.variants()) {
        if (v.where != where || (v.plan && *v.plan != plan)) continue;
        auto const why = fit_of(v, call);
        if (why == fit::fits) return {&v, why};
        out.why = std::max(out.why, why);
    }
    return out;
}

std::string types_at(operation const& what, place where) {
    std::string out;
    for (unsigned kind = 0; kind <= static_cast<unsigned>(scalar::record); ++kind) {
        bool const has = std::ranges::any_of(what.variants(), [&](variant const& v) {
            return v.where == where && v.types.has(static_cast<scalar>(kind));
        });
        if (has) (out += out.empty() ? "" : ", ") += name_of(static_cast<scalar>(kind));
    }
    return out.empty() ? "none" : out;
}

std::string words(operation const& what, place where, call_facts const& call, fit why) {
    switch (why) {
        case fit::not_repeatable:
            return fmt::format("its {} variant cannot promise the same bits twice for {}, and determinism is asked for",
                               name_of(where), name_of(call.type));
        case fit::wrong_size: return fmt::format("no {} variant takes {} items", name_of(where), call.items);
        case fit::wrong_type:
            return fmt::format("no {} variant takes {}; there are variants for {}", name_of(where), name_of(call.type),
                               types_at(what, where));
        case fit::fits: break;
    }
    return "it fits";
}

class decider {
public:
    decider(operation const& what, call_facts const& call) : what_{what}, call_{call} {}

    result<decision> run() {
        KILN_CHECK(choose_place());
        record();
        return out_;
    }
    // What run() would answer, without a trace of it.
    result<place> look() {
        KILN_CHECK(choose_place());
        return out_.selected;
    }

private:
    [[nodiscard]] bool cpu_can_evaluate() const noexcept { return call_.text == operator_text::everywhere; }

    result<void> choose_place() {
        out_.requested = requested_mode();
        switch (out_.requested) {
            case execution_mode::cpu: return on_cpu_as_asked();
            case execution_mode::gpu: return on_gpu_as_asked();
            case execution_mode::automatic: break;
        }
        return by_itself();
    }

    void take(variant const* v, std::string_view reason) noexcept {
        out_.chosen = v;
        out_.selected = v->where;
        out_.reason = reason;
        out_.precision = v->plan.value_or(as_stored());
    }

    [[nodiscard]] precision_plan as_stored() const noexcept { return {.storage = call_.type, .compute = call_.type}; }

    // The device is asked what it is good at only where the operation can make use of the answer.
    [[nodiscard]] precision_plan plan_on_gpu() const {
        if (!what_.plans_precision() || call_.purpose == precision_class::constructive || !runtime::gpu_answer())
            return as_stored();
        return plan_precision(call_.purpose, call_.type, runtime::gpu_f32_per_f64());
    }
    [[nodiscard]] choice choose_gpu() const { return choose(what_, place::gpu, call_, plan_on_gpu()); }

    result<void> on_cpu_as_asked() {
        if (on_device(call_.where)) {
            return fail(errc::invalid_argument,
                        "{}: the data is on the device and the mode is cpu; call to_host_sync() first, or let the mode "
                        "be auto",
                        what_.name());
        }
        return take_cpu("asked");
    }

    result<void> take_cpu(std::string_view reason) {
        if (!cpu_can_evaluate()) {
            return fail(errc::unsupported,
                        "{}: the operator is CUDA C++ text, which only a GPU can run; use a built-in operator on the "
                        "CPU",
                        what_.name());
        }
        auto const cpu = choose(what_, place::cpu, call_, as_stored());
        if (cpu.found == nullptr)
            return fail(errc::unsupported, "{}: {}", what_.name(), words(what_, place::cpu, call_, cpu.why));
        take(cpu.found, reason);
        return {};
    }

    result<void> on_gpu_as_asked() {
        auto const gpu = choose_gpu();
        if (gpu.found == nullptr) {
            return fail(errc::unsupported, "{}: mode gpu, but {}; mode auto would run it on the CPU", what_.name(),
                        words(what_, place::gpu, call_, gpu.why));
        }
        if (auto const& there = runtime::gpu_answer(); !there) {
            return fail(errc::no_device, "{}: mode gpu, but {}; mode auto would run it on the CPU", what_.name(),
                        there.error().message());
        }
        if (call_.items > call_.room) {
            return fail(errc::out_of_memory, "{}: mode gpu, but {}; mode auto would run it on the CPU", what_.name(),
                        no_room());
        }
        take(gpu.found, "asked");
        return {};
    }

    [[nodiscard]] std::string no_room() const {
        return fmt::format("the device has room for {} of {} items", call_.room, call_.items);
    }

    result<void> by_itself() {
        if (on_device(call_.where)) {
            auto const gpu = choose_gpu();
            if (gpu.found == nullptr) {
                return fail(errc::unsupported,
                            "{}: the data is on the device, and {}; call to_host_sync() to run it on the CPU",
                            what_.name(), words(what_, place::gpu, call_, gpu.why));
            }
            take(gpu.found, "device-resident");
            return {};
        }
        if (cpu_can_evaluate() && below_crossover()) {
            if (auto const cpu = choose(what_, place::cpu, call_, as_stored()); cpu.found != nullptr) {
                take(cpu.found, "below-crossover");
                return {};
            }
        }
        auto const gpu = choose_gpu();
        if (gpu.found == nullptr) {
            return fall_back(gpu.why == fit::not_repeatable ? "not-repeatable" : "no-variant",
                             words(what_, place::gpu, call_, gpu.why));
        }
        if (auto const& there = runtime::gpu_answer(); !there) return fall_back("no-gpu", there.error().message());
        if (call_.items > call_.room) return fall_back("no-room", no_room());
        take(gpu.found, cpu_can_evaluate() ? "above-crossover" : "device-operator");
        return {};
    }

    bool below_crossover() {
        out_.crossover = what_.preset_crossover(call_.shape);
        if (auto const found = what_.measured_crossover(call_.shape)) {
            out_.crossover = *found;
            out_.crossover_measured = true;
        }
        return call_.items < out_.crossover;
    }

    result<void> fall_back(std::string_view reason, std::string why) {
        if (strict())
            return fail(errc::forbidden, "{}: KILN_STRICT allows no fallback to the CPU: {}", what_.name(), why);
        if (auto taken = take_cpu(reason); !taken)
            return std::move(taken).error().within(fmt::format("{} cannot run on the GPU ({})", what_.name(), why));
        out_.fell_back = true;
        why_ = std::move(why);
        return {};
    }

    void record() const {
        using cuda::dispatch;
        runtime::note_items(call_.items);
        cuda::count_dispatch(out_.selected == place::gpu ? dispatch::gpu
                             : out_.fell_back            ? dispatch::cpu_as_fallback
                                                         : dispatch::cpu);
        if (out_.fell_back) {
            event_log::process().emit({.kind = event_kind::fell_back,
                                       .unit = what_.name(),
                                       .target = "cpu",
                                       .reason = out_.reason,
                                       .detail = why_,
                                       .value = static_cast<std::int64_t>(call_.items)});
        }
        event e{.kind = event_kind::dispatched,
                .unit = what_.name(),
                .target = name_of(out_.selected),
                .reason = out_.reason,
                .detail = name_of(out_.requested),
                .value = static_cast<std::int64_t>(call_.items)};
        e.detail.append(" -> ").append(out_.chosen->name).append("; ").append(name_of(call_.type));
        e.detail.append(" on ").append(name_of(call_.where));
        if (out_.crossover != 0) {
            append_number(e.detail.append("; crossover "), out_.crossover);
            e.detail.append(out_.crossover_measured ? " measured" : " default");
        }
        if (out_.precision.compute != call_.type) {
            e.detail.append("; computes ").append(name_of(out_.precision.compute));
            if (out_.precision.compensation == compensation::error_free_sums) e.detail.append(", error-free sums");
        }
        if (call_.part_of != 0) append_number(e.detail.append("; a chunk of "), call_.part_of);
        event_log::process().emit(e);
    }

    operation const& what_;
    call_facts const& call_;
    decision out_;
    std::string why_;
};

}  // namespace

std::string_view name_of(place where) noexcept { return where == place::gpu ? "gpu" : "cpu"; }
std::string_view name_of(call_shape shape) noexcept {
    return shape == call_shape::broadcast ? "broadcast" : "pairwise";
}
std::string_view name_of(residency where) noexcept {
    switch (where) {
        case residency::host: return "host";
        case residency::pinned: return "pinned";
        case residency::device: return "device";
        case residency::managed: return "managed";
    }
    return "unknown";
}

std::optional<std::uint64_t> operation::measured_crossover(call_shape shape) const {
    auto& slot = measured_[static_cast<std::size_t>(shape)];
    auto known = slot.load(std::memory_order_relaxed);
    if (known == not_looked_up) {
        known = runtime::measured(name_, shape).value_or(none);
        slot.store(known, std::memory_order_relaxed);
    }
    if (known == none) return {};
    return known;
}

void operation::forget_measured() const noexcept {
    for (auto& slot : measured_) slot.store(not_looked_up, std::memory_order_relaxed);
}

result<decision> decide(operation const& what, call_facts const& call) { return decider{what, call}.run(); }

namespace {

// What the CPU takes at a time while the device is full; then it is asked again.
constexpr std::uint64_t cpu_chunk = 1 << 20;

class chunk_planner {
public:
    chunk_planner(operation const& what, call_facts const& call, chunked_input const& input)
        : what_{what}, call_{call}, input_{input}, all_{call.items} {}

    result<void> run() {
        std::uint64_t first = 0;
        do {
            KILN_CHECK(plan(first));
            KILN_TRY(auto const how, decide(what_, call_));
            if (auto ran = input_.run(how, first, call_.items); !ran) {
                bool const full = how.selected == place::gpu && ran.error().code() == errc::out_of_memory;
                if (!full || call_.items <= 1 || strict()) return ran;
                most_ = call_.items / 2;
                tell_smaller(ran.error());
                continue;
            }
            first += call_.items;
        } while (first < all_);
        return {};
    }

private:
    // As many items as the place that would be chosen can take.
    result<void> plan(std::uint64_t first) {
        call_.items = all_ - first;
        call_.room = ~std::uint64_t{0};
        call_.part_of = first == 0 ? 0 : all_;
        KILN_TRY(auto const likely, decider(what_, call_).look());
        if (likely == place::cpu) return {};
        KILN_TRY(auto const fits, input_.room(call_.items));
        auto const room = std::min(fits, most_);
        if (room >= call_.items) return {};
        call_.part_of = all_;
        call_.room = room;
        call_.items = std::min(call_.items, worth_moving(room) ? room : cpu_chunk);
        return {};
    }

    // Else the CPU is faster than a chunk that small on its way there and back.
    [[nodiscard]] bool worth_moving(std::uint64_t room) const {
        if (room == 0) return false;
        if (requested_mode() == execution_mode::gpu || call_.text == operator_text::device_only) return true;
        return room >= what_.measured_crossover(call_.shape).value_or(what_.preset_crossover(call_.shape));
    }

    void tell_smaller(error const& why) const noexcept {
        event_log::process().emit({.kind = event_kind::fell_back,
                                   .unit = what_.name(),
                                   .target = "gpu",
                                   .reason = "smaller-chunk",
                                   .detail = why.message(),
                                   .value = static_cast<std::int64_t>(most_)});
    }

    operation const& what_;
    call_facts call_;
    chunked_input const& input_;
    std::uint64_t all_;
    std::uint64_t most_ = ~std::uint64_t{0};  // of a chunk, since memory ran out
};

}  // namespace

result<void> decide_chunks(operation const& what, call_facts call, chunked_input const& input) {
    return chunk_planner{what, call, input}.run();
}

std::vector<std::string> needs_of(variant const& v, scalar type) {
    std::vector<std::string> out;
    std::string_view rest = v.needs;
    while (!rest.empty()) {
        auto const end = std::min(rest.find(' '), rest.size());
        if (end > 0) {
            std::string name{rest.substr(0, end)};
            if (auto const at = name.find("{type}"); at != name.npos) name.replace(at, 6, name_of(type));
            out.push_back(std::move(name));
        }
        rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return out;
}

}  // namespace kiln
