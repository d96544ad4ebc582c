// SPDX-License-Identifier: Apache-2.0
//
// What to compile for: an architecture (sm_90, sm_90a, compute_90) and the kind of artifact. Plain values.
#pragma once

#include <kiln/result.hpp>

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_PUBLIC kiln {

enum class artifact_kind { cubin, ptx, ltoir };
[[nodiscard]] std::string_view name_of(artifact_kind kind) noexcept;
[[nodiscard]] result<artifact_kind> parse_kind(std::string_view text);

class arch {
public:
    // "sm_90", "sm_90a", "sm_100f", "compute_80", and for convenience "90", "90a", "9.0".
    [[nodiscard]] static result<arch> parse(std::string_view text);
    // The real architecture of a device of this compute capability: {9, 0} is sm_90.
    [[nodiscard]] static arch of_device(int major, int minor) noexcept { return arch{major * 10 + minor, '\0', false}; }

    // 75 ... 121: major * 10 + minor.
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] int major() const noexcept { return number_ / 10; }
    [[nodiscard]] int minor() const noexcept { return number_ % 10; }
    // 'a' (this architecture only), 'f' (this family), or 0.
    [[nodiscard]] char variant() const noexcept { return variant_; }
    [[nodiscard]] bool is_virtual() const noexcept { return virtual_; }
    [[nodiscard]] arch as_virtual() const noexcept { return arch{number_, variant_, true}; }
    [[nodiscard]] std::string name() const;

    auto operator<=>(arch const&) const = default;

private:
    constexpr arch(int number, char variant, bool is_virtual) noexcept
        : number_{number}, variant_{variant}, virtual_{is_virtual} {}
    int number_;
    char variant_;
    bool virtual_;
};

struct target {
    kiln::arch arch;
    artifact_kind kind = artifact_kind::cubin;

    // Checks that the two fit: a cubin needs a real architecture; PTX is made for the virtual one, so
    // {sm_90, ptx} becomes {compute_90, ptx}.
    [[nodiscard]] static result<target> make(kiln::arch arch, artifact_kind kind);
    [[nodiscard]] static result<target> parse(std::string_view arch, artifact_kind kind = artifact_kind::cubin);

    auto operator<=>(target const&) const = default;
};

// May an image made for `made` run on a device of architecture `device`? A cubin runs on the same major with an
// equal or higher minor; 'a' variants on exactly their own, 'f' variants on their family; PTX on anything not older.
[[nodiscard]] bool can_run(target const& made, arch device) noexcept;

}  // namespace kiln
