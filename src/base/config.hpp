// SPDX-License-Identifier: Apache-2.0
//
// Every knob of Kiln by name, with its value and where the value came from: explicit call > flag >
// environment > file > default. The file is $KILN_CONFIG, else $XDG_CONFIG_HOME/kiln/kiln.conf, else
// ~/.config/kiln/kiln.conf, with lines `key = value`; keys are the variable names without KILN_, in lower case.
#pragma once

#include "base/check.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kiln::base {

enum class origin { preset, file, environment, flag, call };
[[nodiscard]] std::string_view name_of(origin o) noexcept;

struct knob {
    std::string_view variable;  // "KILN_CACHE_DIR"
    std::string_view preset;    // default as text; empty = unset
    std::string_view help;      // one line for doctor and the docs
};

// All knobs, in the order doctor shows them.
[[nodiscard]] std::span<knob const> knobs() noexcept;

struct setting {
    std::string value;
    origin from = origin::preset;
    std::string file;  // which file, when from == origin::file
};

class config {
public:
    // Reads the environment and the file. Under AT_SECURE (setuid) only defaults are used. Never fails: what
    // cannot be understood is listed in problems().
    [[nodiscard]] static config load();
    // Nothing but defaults.
    [[nodiscard]] static config presets();
    // The lines of a file, whose name is `path`.
    void read_lines(std::string_view text, std::string const& path);
    // What means nothing becomes the default and a line in problems(). load() has done it; call it again after set().
    void check();

    [[nodiscard]] setting const& get(std::string_view variable) const;
    [[nodiscard]] std::string const& text(std::string_view variable) const { return get(variable).value; }
    // True for "1", "true", "yes", "on".
    [[nodiscard]] bool flag(std::string_view variable) const;
    // "5G", "512M", "1024": nullopt when unset; a bad value is reported in problems() at load.
    [[nodiscard]] std::optional<std::uint64_t> size(std::string_view variable) const;
    // Colon-separated.
    [[nodiscard]] std::vector<std::string> list(std::string_view variable) const;

    void set(std::string_view variable, std::string value, origin from);
    // The same for a name somebody typed: one that is not known becomes a line in problems().
    void try_set(std::string_view variable, std::string value, origin from);
    [[nodiscard]] std::vector<std::string> const& problems() const noexcept { return problems_; }
    [[nodiscard]] bool secure() const noexcept { return secure_; }

private:
    std::map<std::string, setting, std::less<>> values_;
    std::vector<std::string> problems_;
    bool secure_ = false;
};

// "5G" and so on: powers of 1024, suffix K, M, G, T with optional B or iB.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace kiln::base
