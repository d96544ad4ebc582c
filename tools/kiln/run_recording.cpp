// SPDX-License-Identifier: Apache-2.0
#include "run_recording.hpp"

#include "base/locked_file.hpp"
#include "base/text.hpp"
#include "store/wait_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

// null: there is none. A stream is nobody's to read again.
result<json> record_in(std::string const& file) {
    std::error_code failed;
    if (file == "-" || !fs::is_regular_file(file, failed) || fs::file_size(file, failed) == 0) return json();
    KILN_TRY(auto const text, base::read_file(file));
    if (!text) return json();
    auto out = json::parse(base::as_text(*text), nullptr, false);
    bool const is_record = out.is_object() && out.value("format", json()) == "kiln-run" && out.contains("happenings") &&
                           out["happenings"].is_array();
    if (!is_record)
        return fail(errc::invalid_argument, "{}: it is there, and no record of 'kiln run'; name another file", file);
    return out;
}

// Of ranks that end at the same time, one writes after the other. Where there are no locks nobody waits.
class writing_turn {
public:
    explicit writing_turn(fs::path file) : file_{std::move(file)} {
        auto const deadline = base::clock::now() + std::chrono::seconds{30};
        do {
            auto opened = base::open_file(file_, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
            if (!opened || store::wait_flock(opened->get(), LOCK_EX, deadline) != store::lock_attempt::taken) return;
            held_ = base::locked_file{*std::move(opened)};
        } while (!store::same_file(held_.get(), file_));  // who had it before has removed it
    }
    ~writing_turn() {
        if (held_) ::unlink(file_.c_str());
    }
    writing_turn(writing_turn const&) = delete;
    writing_turn& operator=(writing_turn const&) = delete;

private:
    fs::path file_;
    base::locked_file held_;
};

}  // namespace

result<run_recording> run_recording::open(std::string file) {
    KILN_CHECK(check_text_output(file));
    KILN_TRY(auto const before, record_in(file));
    run_recording out;
    out.file_ = std::move(file);
    out.adds_ = !before.is_null();
    return out;
}

result<void> run_recording::add(json record) const {
    writing_turn const turn{requests() / ".lock"};
    // One that was spoilt meanwhile is no reason to lose this one, too.
    if (auto before = record_in(file_); before && !before->is_null()) {
        auto& all = (*before)["happenings"];
        for (auto& one : record["happenings"]) all.push_back(std::move(one));
        record["happenings"] = std::move(all);
        for (auto const* folder : {"caches", "requests"}) {
            if (record[folder] == "" && before->contains(folder)) record[folder] = (*before)[folder];
        }
    }
    return write_text_output(file_, base::as_bytes(base::json_text(record, 1) + "\n"));
}

}  // namespace kiln::cli
