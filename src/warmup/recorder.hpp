// SPDX-License-Identifier: Apache-2.0
// Writes down what the program uses, as it uses it. The file is made at the first thing worth writing, exclusively; what a
// profile that was read already has is not written again, so that a program that has settled writes nothing.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/uses.hpp"
#include "warmup/profile_file.hpp"

#include <kiln/event.hpp>

#include <set>

namespace kiln::warmup {

class recorder final : public engine_detail::use_observer {
public:
    // `events` hears once if the file cannot be written, and written() tells it.
    recorder(std::filesystem::path file, event_log& events);

    // What the file and the recordings beside it had when this process began; read at the first call, by whoever comes first.
    [[nodiscard]] result<profile> const& before();
    void used(engine_detail::use_record const& what) override;
    [[nodiscard]] result<void> written();

private:
    [[nodiscard]] result<void> open();
    void append(base::bytes const& data);
    void give_up(error const& why);

    using seen_key = std::tuple<base::digest, std::string, std::string>;
    std::filesystem::path file_;
    event_log& events_;
    base::stopwatch watch_;
    pid_t owner_;
    std::once_flag read_;
    std::optional<result<profile>> before_;
    std::mutex mutex_;
    base::file_descriptor fd_;
    std::optional<error> why_;  // nothing is written any more
    std::set<seen_key> seen_;   // by identity
    std::set<seen_key> known_;  // by recipe
    std::set<base::digest> written_;
};

}  // namespace kiln::warmup
