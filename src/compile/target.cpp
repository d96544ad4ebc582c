// SPDX-License-Identifier: Apache-2.0
#include <kiln/artifact.hpp>
#include <kiln/target.hpp>

#include "base/check.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln {

namespace {

constexpr std::array known_archs{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
constexpr std::string_view known_text =
    "sm_75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, the variants 90a, 100a, 100f and so on, or compute_NN";

error bad_arch(std::string_view text) {
    return fail(errc::invalid_argument, "'{}' is not an architecture Kiln knows; use one of {}", text, known_text);
}

}  // namespace

std::string_view name_of(artifact_kind kind) noexcept {
    switch (kind) {
        case artifact_kind::cubin: return "cubin";
        case artifact_kind::ptx: return "ptx";
        case artifact_kind::ltoir: return "ltoir";
    }
    return "unknown";
}

result<artifact_kind> parse_kind(std::string_view text) {
    for (auto const kind : {artifact_kind::cubin, artifact_kind::ptx, artifact_kind::ltoir}) {
        if (text == name_of(kind)) return kind;
    }
    return fail(errc::invalid_argument, "'{}' is not a kind of artifact; use cubin, ptx or ltoir", text);
}

result<arch> arch::parse(std::string_view text) {
    auto digits = text;
    bool is_virtual = false;
    if (digits.starts_with("sm_")) digits.remove_prefix(3);
    else if (digits.starts_with("compute_")) {
        digits.remove_prefix(8);
        is_virtual = true;
    }
    char variant = '\0';
    if (digits.ends_with('a') || digits.ends_with('f')) {
        variant = digits.back();
        digits.remove_suffix(1);
    }
    std::string plain{digits};
    std::erase(plain, '.');
    int number = 0;
    auto const [end, why] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
    if (why != std::errc{} || end != plain.data() + plain.size() ||
        std::ranges::find(known_archs, number) == known_archs.end()) {
        return bad_arch(text);
    }
    if ((variant == 'a' && number < 90) || (variant == 'f' && number < 100)) return bad_arch(text);
    return arch{number, variant, is_virtual};
}

std::string arch::name() const {
    auto out = fmt::format("{}{}", virtual_ ? "compute_" : "sm_", number_);
    if (variant_ != '\0') out += variant_;
    return out;
}

result<target> target::make(kiln::arch arch, artifact_kind kind) {
    if (kind == artifact_kind::ptx) return target{arch.as_virtual(), kind};
    if (kind == artifact_kind::cubin && arch.is_virtual()) {
        return fail(errc::invalid_argument, "{} is a virtual architecture and has no cubin; use sm_{}, or kind ptx",
                    arch.name(), arch.number());
    }
    return target{arch, kind};
}

result<target> target::parse(std::string_view arch_text, artifact_kind kind) {
    KILN_TRY(auto const parsed, arch::parse(arch_text));
    return make(parsed, kind);
}

bool can_run(target const& made, arch device) noexcept {
    auto const& a = made.arch;
    if (a.variant() == 'a') return a.number() == device.number();
    bool const same_family = a.major() == device.major() && a.minor() <= device.minor();
    if (a.variant() == 'f' || made.kind == artifact_kind::cubin) return same_family;
    return a.number() <= device.number();
}

kernel_info const* artifact::find_kernel(std::string_view name) const noexcept {
    for (auto const& k : kernels) {
        if (k.name == name) return &k;
    }
    for (auto const& k : kernels) {
        if (k.lowered == name) return &k;
    }
    return nullptr;
}

constant_info const* artifact::find_constant(std::string_view name) const noexcept {
    for (auto const& c : constants) {
        if (c.name == name) return &c;
    }
    return nullptr;
}

}  // namespace kiln
