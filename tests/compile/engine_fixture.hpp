// SPDX-License-Identifier: Apache-2.0
// An engine with a cache directory, an event log and settings of its own.
#pragma once

#include "base/files.hpp"

#include <kiln/engine.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace kiln::testing_support {

class engine_fixture : public testing::Test {
protected:
    using settings = std::map<std::string, std::string>;

    // Every engine made here shares the directory, as processes would.
    std::unique_ptr<engine> make_engine(settings const& more = {}) {
        settings all{{"KILN_CACHE_DIR", cache()},
                     {"KILN_WORKER", KILN_TEST_WORKER},
                     {"KILN_WORKERS", "2"},
                     {"KILN_CUDA_PATH", KILN_TEST_CUDA_PATH}};
        for (auto const& [name, value] : more) all[name] = value;
        engine_options options{.settings = {all.begin(), all.end()}, .events = &events_};
        return std::make_unique<engine>(options);
    }

    [[nodiscard]] std::string path(std::string const& name) const { return scratch_.path() / name; }
    [[nodiscard]] std::string cache() const { return path("cache"); }
    void write(std::string const& name, std::string_view text) {
        base::make_directories(std::filesystem::path{path(name)}.parent_path()).value();
        base::replace_file(path(name), base::as_bytes(text)).value();
    }
    [[nodiscard]] std::size_t count(event_kind kind, std::string_view reason = {}) const {
        std::size_t n = 0;
        for (auto const& e : events_.recent())
            n += e.kind == kind && (reason.empty() || e.reason.view() == reason) ? 1 : 0;
        return n;
    }
    [[nodiscard]] static unit simple(std::string name = "simple", std::string body = "x[0] = 1;") {
        return {.name = name,
                .source = "extern \"C\" __global__ void " + name + "(int* x) { " + body + " }\n",
                .kernels = {name}};
    }
    [[nodiscard]] static target sm90() { return target::parse("sm_90").value(); }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-engine").value();
    event_log events_;
};

}  // namespace kiln::testing_support
