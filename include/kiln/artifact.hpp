// SPDX-License-Identifier: Apache-2.0
//
// The immutable result of compiling a unit for a target: image bytes, entry points with their lowered names and
// resource numbers, exported constants, and what it was made from. Shared as artifact_ptr; never changed.
#pragma once

#include <kiln/target.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace KILN_PUBLIC kiln {

struct kernel_info {
    std::string name;     // as asked for: "scale<float>"
    std::string lowered;  // as in the image: "_Z5scaleIfEvPT_fi"
    // -1 where the artifact's kind does not tell (PTX, LTO-IR).
    int registers = -1;
    int shared_bytes = -1;  // static
    int local_bytes = -1;   // per thread
};

struct constant_info {
    std::string name;
    std::vector<std::byte> bytes;
};

// One file the compiler looked for. Paths are relative to a root, so that moving a project keeps its artifacts.
struct dependency {
    enum class root : std::uint8_t { source_directory, include_directory, toolkit, absolute };
    root from = root::absolute;
    std::uint16_t index = 0;  // which include directory
    std::string path;
    std::string content;  // SHA-256 in hex of what was read; empty = was not there and must not be
};

// One thing the key was made from, in words or as a digest: what `kiln explain` compares.
struct input_field {
    std::string name;
    std::string value;
    bool operator==(input_field const&) const = default;
};

struct artifact {
    std::string unit;
    kiln::target target;
    std::string key = {};        // 64 hex digits
    std::string toolchain = {};  // the compiler's identity: "nvrtc <build id> builtins <digest>"
    std::string compiler = {};   // for people: "NVRTC 13.0"
    std::vector<std::byte> image = {};
    std::vector<kernel_info> kernels = {};  // in the order they were named; where none was, by lowered name
    std::vector<constant_info> constants = {};
    std::vector<dependency> dependencies = {};
    std::vector<input_field> inputs = {};
    std::string log = {};   // warnings
    double compile_ms = 0;  // what it cost to make, wherever that was

    // By the name it was asked for, or by lowered name; nullptr if there is none.
    [[nodiscard]] kernel_info const* find_kernel(std::string_view name) const noexcept;
    [[nodiscard]] constant_info const* find_constant(std::string_view name) const noexcept;

    // All of it as bytes, to keep and to send as you like: docs/formats/artifact.md. The same artifact gives the same bytes.
    [[nodiscard]] std::vector<std::byte> to_bytes() const;
    // Damaged bytes: errc::corrupt. Of another version: errc::unsupported. Who made them is not checked: the driver
    // will run what is in them.
    [[nodiscard]] static result<artifact> from_bytes(std::span<std::byte const> bytes);
};
using artifact_ptr = std::shared_ptr<artifact const>;

}  // namespace kiln
