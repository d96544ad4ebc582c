// SPDX-License-Identifier: Apache-2.0
#include "toy/pack.hpp"
#include "workshop/pack_tool.hpp"

namespace kiln::toy {

namespace {

class toy_tool final : public workshop::pack_tool {
public:
    toy_tool() : pack_tool{"toy"} {}
    [[nodiscard]] std::vector<workshop::trial> trials() const override {
        return {{&double_operation, [](stream_ref, std::size_t) { return result<void>{}; }}};
    }
};

toy_tool const the_tool;

}  // namespace

}  // namespace kiln::toy
