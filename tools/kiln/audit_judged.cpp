// SPDX-License-Identifier: Apache-2.0
#include "audit_judged.hpp"

#include "base/text.hpp"
#include "command.hpp"

namespace kiln::cli {

std::unique_ptr<judged_recording> judge(audit::recording recording, judged_how const& how, audit::budget const& b) {
    auto out = std::make_unique<judged_recording>();
    out->recording = std::move(recording);
    out->model = audit::model_of(out->recording, {.step = how.step});
    out->result = audit::audit(out->model, b.apply({.expect_gpu = how.expect_gpu}));
    return out;
}

std::unique_ptr<judged_recording> read_and_judge(std::filesystem::path const& from, judged_how const& how,
                                                 audit::budget const& b) {
    return judge(audit::read_recording(from).value(), how, b);
}

recorded_run read_run(recording_place const& place, std::string const& about) {
    recorded_run out{.all = {}, .why_none = place.why_none()};
    if (out.why_none.empty()) {
        try {
            if (place.was_replaced())
                throw error{errc::not_found, place.path().native() + ": the program put something else in its place"};
            out.all = audit::read_recording(place.path()).value();
            if (out.all.has_end) return out;
        } catch (error const& e) {
            complain("audit: no report: " + e.message());
            out.why_none = e.message();
        }
    }
    out.all.about = about;  // it could not be written, or is gone again
    if (out.why_none.empty()) return out;
    auto known = json::parse(about, nullptr, false);
    if (!known.is_object()) known = json::object();
    known["not_recorded"] = out.why_none;
    out.all = {};
    out.all.about = base::json_text(known);
    return out;
}

}  // namespace kiln::cli
