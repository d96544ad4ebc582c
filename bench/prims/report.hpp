// SPDX-License-Identifier: Apache-2.0
// The numbers as they come: lines on the terminal, then goals, a file of JSON, a plot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::bench {

struct measured {
    std::string what;  // device, types, shape, host, cold, disk, shipped, source
    std::string name;
    std::size_t n = 0;
    double kiln = 0;
    double cub = 0;  // 0: not measured
    std::string unit;
};

struct goal {
    std::string name;
    double need = 0;
    double got = 0;
    enum class sense { at_least, at_most } which = sense::at_least;
    [[nodiscard]] bool met() const noexcept { return which == sense::at_least ? got >= need : got <= need; }
};

class report {
public:
    explicit report(std::string machine);
    void add(measured row);
    // What the primitives are to reach, as far as it was measured.
    [[nodiscard]] std::vector<goal> goals() const;
    void print_goals() const;
    void write_json(std::filesystem::path const& file) const;
    // CUB's time by ours, per specialisation and size.
    void print_plot() const;
    void write_plot(std::filesystem::path const& file) const;

private:
    [[nodiscard]] measured const* find(std::string_view what, std::string_view name, std::size_t n) const;
    void add_device_goals(std::vector<goal>& out) const;
    void add_shape_goals(std::vector<goal>& out) const;

    std::string machine_;
    std::vector<measured> rows_;
};

}  // namespace kiln::bench
