// SPDX-License-Identifier: Apache-2.0
// An engine whose compiler is none: everything is real but what makes the images.
#pragma once

#include "engine/engine_state.hpp"
#include "support/fake_compiler.hpp"

#include <gtest/gtest.h>

namespace kiln::testing_support {

class fake_engine : public testing::Test {
protected:
    fake_engine() {
        auto& s = engine_.internals();
        s.requests.reset();
        s.pool = std::make_unique<compile::worker_pool>(compiler_.options(), events_);
        s.requests = std::make_unique<engine_detail::coordinator>(
            engine_detail::coordinator_options{},
            engine_detail::coordinator::parts{*s.store, *s.pool, events_, s.book});
    }
    ~fake_engine() override { compiler_.let_go(); }

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    void write(std::string const& name, std::string_view text) {
        base::make_directories(std::filesystem::path{path(name)}.parent_path()).value();
        base::replace_file(path(name), base::as_bytes(text)).value();
    }
    static target sm90() { return target::parse("sm_90").value(); }
    static unit unit_named(std::string name) { return {.name = std::move(name), .source = "__global__ void k() {}"}; }
    static unit reading(std::string name, std::vector<std::string> from) {
        return {.name = std::move(name), .source = "#include \"q.h\"\n", .include_dirs = std::move(from)};
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-fake-engine").value();
    event_log events_;
    fake_compiler compiler_;
    engine engine_{{.settings = {{"KILN_CACHE_DIR", (scratch_.path() / "cache").native()},
                                 {"KILN_CUDA_PATH", KILN_TEST_CUDA_PATH}},
                    .events = &events_}};
};

}  // namespace kiln::testing_support
