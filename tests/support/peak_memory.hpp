// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace kiln::test {

// The most memory that was in use since it was forgotten.
class peak_memory {
public:
    peak_memory() { std::ofstream{"/proc/self/clear_refs"} << "5"; }
    [[nodiscard]] static double mib() {
        std::ifstream status{"/proc/self/status"};
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
        }
        return 0;
    }
    [[nodiscard]] double grown() const { return mib() - before_; }

private:
    double before_ = [] {
        std::ifstream status{"/proc/self/status"};
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
        }
        return 0.0;
    }();
};

}  // namespace kiln::test
