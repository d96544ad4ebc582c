// SPDX-License-Identifier: Apache-2.0
// Whether what a command compiled is there for the next process: asked of the directory itself, after everything was written.
#pragma once

#include "command.hpp"

#include "store/tier.hpp"

namespace kiln::cli {

class keeping {
public:
    // Something this process compiled: where it should be. Of `at` the family and the request count.
    void expect(store::address const& at, artifact const& made);
    void expect(engine& e, unit const& u, obtained const& got);

    enum class chosen { told, silent };  // KILN_DISABLE and KILN_READONLY: somebody wanted it so
    // Waits until all is written. How many are not on disk; where there are any, one line on stderr says why.
    std::size_t complain_of_lost(engine& e, chosen how) const;

private:
    std::vector<store::address> made_;
};

// Waits until all is written, for what servers should have as long as there is hope. What they were not sent is a line on stderr each.
void write_all(engine& e);

}  // namespace kiln::cli
