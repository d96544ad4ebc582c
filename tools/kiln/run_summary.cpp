// SPDX-License-Identifier: Apache-2.0
#include "run_summary.hpp"

#include "base/quiet_writes.hpp"
#include "message.hpp"

#include <algorithm>

namespace kiln::cli {

namespace {

// The first few of them, each short enough for a line.
std::string reasons(std::set<std::string> const& all) {
    constexpr std::size_t most = 3, longest = 60;
    std::string out;
    std::size_t count = 0;
    for (auto const& one : all) {
        if (count++ == most) return out + ", ...";
        out += fmt::format("{}{}", out.empty() ? "" : ", ", std::string_view{one}.substr(0, longest));
    }
    return out;
}

// Of a library that nothing is answered for: why; empty: it is something else.
std::string_view why_left_alone(intercept::happening const& h) {
    bool const is_left =
        h.kind == intercept::happening::what::forwarded && h.detail.starts_with(intercept::left_alone_mark);
    return is_left ? std::string_view{h.detail}.substr(intercept::left_alone_mark.size()) : std::string_view{};
}

std::string sentence(run_summary const& s) {
    auto const seconds = [](auto t) { return std::chrono::duration<double>{t}.count(); };
    auto out = fmt::format("{} compiles answered in {:.3f} s, {} made", s.answered, seconds(s.answering), s.made);
    if (s.made > 0) out += fmt::format(" in {:.1f} s", seconds(s.making));
    out += fmt::format(", {:.1f} s not waited", seconds(s.saved));
    if (s.joined > 0)
        out += fmt::format("; {} waited {:.1f} s for others that were making the same", s.joined, seconds(s.waiting));
    if (s.too_large > 0) out += fmt::format("; {} could not be kept: {}", s.too_large, intercept::too_large);
    if (s.not_kept > s.too_large)
        out += fmt::format("; {} could not be kept: see 'kiln doctor'", s.not_kept - s.too_large);
    if (s.own_names > 0)
        out += fmt::format("; {} kept under the names of this run: {}", s.own_names, reasons(s.why_own_names));
    if (s.failed > 0) out += fmt::format("; {} did not compile", s.failed);
    if (s.forwarded > 0)
        out += fmt::format("; {} left to the library itself: {}", s.forwarded, reasons(s.why_forwarded));
    if (s.left_alone > 0) out += fmt::format("; {}{}", intercept::left_alone_mark, reasons(s.why_left_alone));
    if (s.forbidden > 0) out += fmt::format("; {} forbidden", s.forbidden);
    if (s.verified + s.different > 0)
        out += fmt::format("; {} made again and the same, {} different", s.verified, s.different);
    return out;
}

}  // namespace

run_summary summed(std::vector<intercept::happening> const& all) {
    using what = intercept::happening::what;
    run_summary out;
    for (auto const& h : all) {
        switch (h.kind) {
            case what::answered:
                ++out.answered;
                // Who waited for another's compile waited.
                out.saved += std::max(h.cost - std::chrono::duration_cast<std::chrono::milliseconds>(h.took),
                                      std::chrono::milliseconds{});
                out.answering += h.took;
                if (h.waited.count() > 0) ++out.joined;
                out.waiting += h.waited;
                break;
            case what::made:
                ++out.made;
                if (!h.at) ++out.not_kept;
                if (!h.at && h.detail.ends_with(intercept::too_large)) ++out.too_large;
                if (auto const why = why_own_names(h); !why.empty()) {
                    ++out.own_names;
                    out.why_own_names.emplace(why);
                }
                out.making += h.took;
                break;
            case what::failed: ++out.failed; break;
            case what::forwarded:
                if (auto const why = why_left_alone(h); !why.empty()) {
                    ++out.left_alone;
                    out.why_left_alone.insert(fmt::format("{} ({})", h.program.substr(h.program.rfind('/') + 1), why));
                    break;
                }
                ++out.forwarded;
                out.why_forwarded.insert(h.detail);
                break;
            case what::forbidden: ++out.forbidden; break;
            case what::verified: ++out.verified; break;
            case what::different: ++out.different; break;
        }
    }
    return out;
}

void tell(run_talk const& how, std::vector<intercept::happening> const& all) {
    base::quiet_writes const quiet;  // nobody may listen any more: how the program ended is what counts
    auto const sum = summed(all);
    if (how.verbose || how.warns) {
        for (auto const& h : all) {
            bool const is_told = how.verbose || h.kind == intercept::happening::what::made;
            if (is_told)
                complain(fmt::format("run: {} {} '{}' for {} ({} us){}{}", h.library, name_of(h.kind), h.program,
                                     h.target, h.took.count(), h.detail.empty() ? "" : " ", h.detail));
        }
    }
    for (auto const& h : all) {
        if (auto const why = why_left_alone(h); how.forbids && !why.empty())
            complain(fmt::format("run: '{}' was {}{}; what it compiles is not forbidden", h.program,
                                 intercept::left_alone_mark, why));
        if (h.kind == intercept::happening::what::different)
            complain(fmt::format("run: '{}' for {}: made again it differs in {}", h.program, h.target, h.detail));
        if (h.kind == intercept::happening::what::forbidden)
            complain(fmt::format("run: '{}' for {} would have been compiled: {}", h.program, h.target, h.detail));
    }
    if (!how.quiet && (!all.empty() || how.verbose)) complain("run: " + sentence(sum));
}

}  // namespace kiln::cli
