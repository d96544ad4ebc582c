// SPDX-License-Identifier: Apache-2.0
// Stands in for the compiler in tests of everything above it: makes artifacts of nothing, in this process, when it is let.
#pragma once

#include "base/digest.hpp"
#include "base/files.hpp"
#include "compile/worker_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace kiln::testing_support {

class fake_compiler {
public:
    static constexpr char const* toolchain = "nvrtc fake";

    fake_compiler() = default;
    fake_compiler(fake_compiler const&) = delete;
    fake_compiler& operator=(fake_compiler const&) = delete;
    // A pool that goes down leaves the job it runs in this process to itself; one whose thread has not come as far yet finds what it needs, too.
    ~fake_compiler() {
        let_go();
        std::unique_lock lock{all_->mutex};
        all_->changed.wait(lock, [&] { return all_->running == 0; });
        all_->instead.clear();
    }

    // From now on jobs begin and do not end.
    void hold() {
        std::lock_guard const lock{all_->mutex};
        all_->held = true;
    }
    void let_go() {
        {
            std::lock_guard const lock{all_->mutex};
            all_->held = false;
        }
        all_->changed.notify_all();
    }
    // The next job of this unit does this instead; afterwards it compiles.
    void next_time(std::string const& unit, std::function<result<compile::product>()> instead) {
        std::lock_guard const lock{all_->mutex};
        all_->instead[unit] = std::move(instead);
    }
    // Blocks until `times` jobs have begun.
    void wait_for_begun(std::size_t times) {
        std::unique_lock lock{all_->mutex};
        all_->changed.wait(lock, [&] { return all_->begun.size() >= times; });
    }
    // Names of the units, in the order they were taken.
    [[nodiscard]] std::vector<std::string> begun() const {
        std::lock_guard const lock{all_->mutex};
        return all_->begun;
    }

    [[nodiscard]] compile::pool_options options() {
        compile::pool_options out;
        out.workers = 0;
        out.in_process = [all = all_](compile::job const& j) { return run(*all, j); };
        return out;
    }

private:
    // Belongs to every job as well.
    struct shared {
        std::mutex mutex;
        std::condition_variable changed;
        bool held = false;
        std::size_t running = 0;
        std::vector<std::string> begun;
        std::map<std::string, std::function<result<compile::product>()>> instead;
    };

    static result<compile::product> run(shared& all, compile::job const& j) {
        struct running {
            explicit running(shared& a) : all{a} {
                std::lock_guard const lock{all.mutex};
                ++all.running;
            }
            ~running() {
                std::lock_guard const lock{all.mutex};
                --all.running;
                all.changed.notify_all();
            }
            shared& all;
        } const counted{all};
        std::function<result<compile::product>()> instead;
        {
            std::unique_lock lock{all.mutex};
            all.begun.push_back(j.name());
            all.changed.notify_all();
            all.changed.wait(lock, [&] { return !all.held; });
            if (auto const at = all.instead.find(j.name()); at != all.instead.end()) {
                instead = std::move(at->second);
                all.instead.erase(at);
            }
        }
        if (instead) return instead();
        if (auto const* const l = std::get_if<compile::link_job>(&j.task)) return linked(*l);
        auto const& c = std::get<compile::compile_job>(j.task);
        artifact out{.unit = c.unit.name, .target = c.target, .toolchain = toolchain};
        // As if the text said #include "q.h" wherever it says include at all: its text becomes the image.
        std::string image = c.unit.source;
        for (std::size_t n = 0; n < c.unit.include_dirs.size(); ++n) {
            auto const text = base::read_file(c.unit.include_dirs[n] + "/q.h").value();
            dependency look{dependency::root::include_directory, static_cast<std::uint16_t>(n), "q.h", {}};
            if (text) look.content = base::sha256_of(base::byte_span{*text}).hex();
            out.dependencies.push_back(look);
            if (!text) continue;
            image += base::as_text(*text);
            break;
        }
        auto const bytes = base::as_bytes(image);
        out.image.assign(bytes.begin(), bytes.end());
        out.compile_ms = 1;
        return out;
    }

    // One input after the other is the image.
    static artifact linked(compile::link_job const& l) {
        artifact out{.unit = l.name, .target = l.target, .toolchain = toolchain};
        for (auto const& in : l.inputs) out.image.insert(out.image.end(), in.image.begin(), in.image.end());
        out.compile_ms = 1;
        return out;
    }

    std::shared_ptr<shared> all_ = std::make_shared<shared>();
};

}  // namespace kiln::testing_support
