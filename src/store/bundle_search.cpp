// SPDX-License-Identifier: Apache-2.0
#include "store/bundle_search.hpp"

#include "base/directory.hpp"
#include "base/own_file.hpp"
#include "store/disk_layout.hpp"

#include <algorithm>
#include <fcntl.h>

namespace kiln::store {

namespace {

std::string reason_of(error const& why) {
    switch (why.code()) {
        case errc::forbidden: return std::string{name_of(miss::bad_signature)};
        case errc::unsupported: return std::string{name_of(miss::newer_format)};
        case errc::corrupt: return "bad-bundle";
        default: return std::string{name_of(why.code())};
    }
}

std::vector<std::filesystem::path> files_of(std::filesystem::path const& path) {
    // Opened, because a link to a directory is a directory; what cannot be opened is told of when it is opened as a file. Most
    // are files: no words are made of that.
    base::file_descriptor const folder{
        base::sys().open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0)};
    if (!folder) return {path};
    std::vector<std::filesystem::path> out;
    (void)base::for_each_name(path, [&](std::string_view name) {
        if (name.ends_with(".kiln")) out.push_back(path / name);
    });
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

opened_bundles open_bundles(bundle_places const& places, event_outlet& events) {
    opened_bundles out;
    signature_policy policy;
    std::string no_key;
    if (!places.trusted_key.empty()) {
        policy.what = signature_policy::need::trusted;
        // Without the key nothing can be trusted: every bundle is refused, and this says why.
        auto key = public_key::load(places.trusted_key);
        if (key) policy.keys.push_back(*std::move(key));
        else no_key = fmt::format("the key it must be signed by cannot be read: {}", key.error().message());
        if (!no_key.empty())
            events.emit({.kind = event_kind::warned, .reason = "bundle-key", .detail = key.error().message()});
    }
    auto const refuse = [&](std::string reason, error const& why) {
        events.emit({.kind = event_kind::rejected, .reason = reason, .detail = why.message()});
        out.refused.push_back({std::move(reason), why.message()});
    };
    auto const open = [&](std::filesystem::path const& file) {
        auto bundle = bundle_tier::open(file, policy);
        if (!bundle && bundle.error().code() == errc::forbidden && !no_key.empty())
            bundle = fail(errc::forbidden, "{}: {}", file.native(), no_key);
        return bundle;
    };
    for (auto const& path : places.paths) {
        for (auto const& file : files_of(path)) {
            if (auto bundle = open(file)) out.bundles.push_back(*std::move(bundle));
            else refuse(reason_of(bundle.error()), bundle.error());
        }
    }
    auto const program = places.beside_program ? base::program_file() : std::filesystem::path{};
    if (program.empty()) return out;
    auto const file = std::filesystem::path{program} += ".kiln";
    auto bundle = open(file);
    // Nobody named it. Whoever could have put it there may not be whoever made the program, unless a signature says so.
    bool const is_believed = policy.what == signature_policy::need::trusted || base::belongs_to(program, file);
    if (bundle && is_believed) out.bundles.push_back(*std::move(bundle));
    else if (bundle)
        refuse(std::string{name_of(miss::open_to_others)},
               fail(errc::forbidden,
                    "{}: others could have put it there, so it is not used; name it in KILN_BUNDLES, or set "
                    "KILN_BUNDLE_KEY to the key it is signed by",
                    file.native()));
    else if (bundle.error().code() != errc::not_found) refuse(reason_of(bundle.error()), bundle.error());
    return out;
}

}  // namespace kiln::store
