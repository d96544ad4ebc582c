// SPDX-License-Identifier: Apache-2.0
//
// An operation is a public function with a CPU and a GPU variant; a decision says which one a call takes, and why. It is
// made once, at the boundary, before anything runs, and leaves an event. Data on the device stays there whatever its size;
// data on the host is promoted only above the operation's crossover, which is a default until `kiln calibrate` has measured
// it on this machine. Operations are constants that cost nothing until they are used; one without variants, or with a GPU
// variant that does not say which units it needs, does not compile.
//
//     constexpr std::array variants{kiln::variant{.name = "gpu", .where = kiln::place::gpu, .needs = "exclusive_scan_{type}"},
//                                   kiln::variant{.name = "cpu", .where = kiln::place::cpu}};
//     constinit kiln::operation const scan{"exclusive_scan", "prims", {.pairwise = 1 << 20}, variants};
//     auto const chosen = kiln::decide(scan, {.items = n, .type = kiln::scalar::i32, .where = in.where()}).value();
#pragma once

#include <kiln/runtime/execution.hpp>
#include <kiln/runtime/precision.hpp>
#include <kiln/runtime/residency.hpp>
#include <kiln/scalar.hpp>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

enum class place : std::uint8_t { cpu, gpu };
[[nodiscard]] std::string_view name_of(place where) noexcept;

struct type_set {
    std::uint32_t bits = 0;
    [[nodiscard]] constexpr bool has(scalar kind) const noexcept {
        return (bits >> static_cast<unsigned>(kind) & 1U) != 0;
    }
};
template <class... Kinds>
[[nodiscard]] constexpr type_set types(Kinds... kinds) noexcept {
    return {(0U | ... | (1U << static_cast<unsigned>(kinds)))};
}
inline constexpr type_set any_type{~0U};
inline constexpr type_set float_types = types(scalar::f16, scalar::bf16, scalar::f32, scalar::f64);

struct variant {
    std::string_view name;
    place where = place::gpu;
    type_set types = any_type;
    std::uint64_t least_items = 0, most_items = ~std::uint64_t{0};
    // Units and specs it launches, separated by spaces; {type} stands for the element type: "exclusive_scan_{type}".
    std::string_view needs = {};
    // Element types for which two runs may round differently.
    type_set varying = {};
    // Taken only where a call's plan is this one; nullopt: computes in what is stored, and serves every plan.
    std::optional<precision_plan> plan = {};
};

// Items below which host data is not worth moving to the device.
struct crossover_sizes {
    std::uint64_t pairwise = 0;   // operands of the same length
    std::uint64_t broadcast = 0;  // one operand against many; 0: as pairwise
};
enum class call_shape : std::uint8_t { pairwise, broadcast };
[[nodiscard]] std::string_view name_of(call_shape shape) noexcept;

class operation {
public:
    template <std::size_t N>
    consteval operation(std::string_view name, std::string_view pack, crossover_sizes preset,
                        std::array<variant, N> const& variants)
        : name_{name}, pack_{pack}, preset_{preset}, variants_{variants} {
        if (name.empty() || pack.empty()) throw "kiln::operation: a name and a pack are needed";
        static_assert(N > 0, "kiln::operation: an operation needs a variant");
        for (auto const& v : variants) {
            if (v.name.empty()) throw "kiln::operation: a variant needs a name";
            if (v.where == place::gpu && v.needs.empty())
                throw "kiln::operation: a GPU variant must declare the units it needs";
            plans_precision_ = plans_precision_ || v.plan;
        }
    }
    operation(operation const&) = delete;
    operation& operator=(operation const&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] std::string_view pack() const noexcept { return pack_; }
    [[nodiscard]] std::span<variant const> variants() const noexcept { return variants_; }
    // Has a variant that computes in less than is stored.
    [[nodiscard]] bool plans_precision() const noexcept { return plans_precision_; }
    [[nodiscard]] std::uint64_t preset_crossover(call_shape shape) const noexcept {
        return shape == call_shape::broadcast && preset_.broadcast != 0 ? preset_.broadcast : preset_.pairwise;
    }

    // What calibration found on this machine; nullopt: nothing. Remembered.
    [[nodiscard]] std::optional<std::uint64_t> measured_crossover(call_shape shape) const;
    // The next look reads the calibration again.
    void forget_measured() const noexcept;

private:
    static constexpr std::uint64_t not_looked_up = ~std::uint64_t{0}, none = not_looked_up - 1;

    std::string_view name_, pack_;
    crossover_sizes preset_;
    std::span<variant const> variants_;
    bool plans_precision_ = false;
    mutable std::array<std::atomic<std::uint64_t>, 2> measured_{not_looked_up, not_looked_up};
};

enum class operator_text : std::uint8_t {
    everywhere,   // the CPU variant can evaluate it too
    device_only,  // an expression or function in CUDA C++
};

struct call_facts {
    std::uint64_t items = 0;
    scalar type = scalar::record;
    residency where = residency::host;
    call_shape shape = call_shape::pairwise;
    operator_text text = operator_text::everywhere;
    precision_class purpose = precision_class::constructive;  // what the result is for; else it is computed as stored
    std::uint64_t part_of = 0;                                // of a chunk: items of the whole input
    std::uint64_t room = ~std::uint64_t{0};                   // items the device has room for, where it was asked
};

struct decision {
    execution_mode requested = execution_mode::automatic;
    place selected = place::cpu;
    variant const* chosen = nullptr;
    // "asked", "device-resident", "above-crossover", "below-crossover", "device-operator", and for fallbacks "no-gpu",
    // "no-variant", "not-repeatable", "no-room".
    std::string_view reason;
    bool fell_back = false;
    std::uint64_t crossover = 0;      // what items were compared with; 0: nothing was
    bool crossover_measured = false;  // by calibration; else the default
    precision_plan precision = {};
};

// Emits the event. errc::no_device, unsupported or forbidden (KILN_STRICT) with the operation, the reason and what would
// work instead.
[[nodiscard]] result<decision> decide(operation const& what, call_facts const& call);

// A long input on the host, taken in chunks.
struct chunked_input {
    // How many of so many items the device has room for now. Asked at every boundary where the GPU would be taken.
    std::function<result<std::uint64_t>(std::uint64_t items)> room;
    std::function<result<void>(decision const& how, std::uint64_t first, std::uint64_t count)> run;
};
// One chunk where all of it fits, and else as many as it takes; each is decided anew, with an event, and never inside.
// What is left goes to the CPU while the device has less room than the crossover. A chunk that memory runs out for all the
// same is taken again, smaller. Stops at the first other error.
[[nodiscard]] result<void> decide_chunks(operation const& what, call_facts call, chunked_input const& input);

// The units a call would need, {type} filled in.
[[nodiscard]] std::vector<std::string> needs_of(variant const& v, scalar type);

}  // namespace kiln
