// SPDX-License-Identifier: Apache-2.0
#include "intercept/run_record.hpp"

#include "base/check.hpp"
#include "base/files.hpp"

#include <nlohmann/json.hpp>

namespace kiln::intercept {

namespace {

using nlohmann::json;

// Empty for what is no text.
std::string text_in(json const& object, char const* name) {
    auto const at = object.find(name);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

}  // namespace

result<run_record> parse_run_record(std::string_view text) {
    auto const record = json::parse(text, nullptr, false);
    if (!record.is_object() || text_in(record, "format") != "kiln-run" || !record.contains("happenings") ||
        !record["happenings"].is_array())
        return fail(errc::corrupt, "not a record of 'kiln run --record'");
    run_record out{.entries = {}, .caches = text_in(record, "caches"), .requests = text_in(record, "requests")};
    for (auto const& h : record["happenings"]) {
        if (!h.is_object()) continue;
        auto const part = [&](char const* name) { return base::digest::from_hex(text_in(h, name)); };
        auto const family = part("family"), request = part("request"), key = part("key");
        std::optional<store::address> at;
        if (family && request && key) out.entries.push_back(at.emplace(*family, *request, *key));
        if (text_in(h, "library") == "nvjitlink" && request)
            out.links.push_back({text_in(h, "program"), text_in(h, "target"), *request, at});
    }
    return out;
}

result<run_record> read_run_record(std::filesystem::path const& file) {
    KILN_TRY(auto const text, base::read_file(file));
    if (!text)
        return fail(errc::not_found, "{}: no such file; 'kiln run --record {} -- PROGRAM' makes it", file.native(),
                    file.native());
    auto out = parse_run_record(base::as_text(*text));
    if (!out) return std::move(out).error().within(file.native());
    // A record may come from anybody, and what it names is packed.
    for (auto* const folder : {&out->caches, &out->requests}) {
        if (folder->empty()) continue;
        if (*folder == ".." || *folder == "." || folder->find('/') != folder->npos)
            return fail(errc::corrupt, "{}: what belongs to a record lies beside it, and not in '{}'", file.native(),
                        *folder);
        *folder = (file.parent_path() / *folder).native();
        std::error_code gone;
        if (std::filesystem::is_symlink(*folder, gone))
            return fail(errc::corrupt, "{}: what belongs to a record lies beside it, and {} is a link to elsewhere",
                        file.native(), *folder);
    }
    return out;
}

}  // namespace kiln::intercept
