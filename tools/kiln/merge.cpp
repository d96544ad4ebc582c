// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "compile/elf.hpp"
#include "compile/internal_names.hpp"
#include "compile/job.hpp"
#include "store/bundle.hpp"
#include "store/store.hpp"
#include "versions.hpp"

#include <kiln/version.hpp>

#include <map>

namespace kiln::cli {

namespace {

struct merge_arguments {
    std::vector<std::string> files;
    std::string output;
    std::string sign;
    std::string title;
    bool unsigned_too = false;
    bool compress = false;
    bool as_json = false;
};

// What it cost, what the compiler said of its files and how it named what is internal are of the machine and the moment it was
// made on, and no part of what it is.
result<store::digest> essence_of(store::entry const& e) {
    KILN_TRY(auto a, compile::decode_artifact(e.payload));
    a.compile_ms = 0;
    a.log.clear();
    a.image = compile::image_essence(a);
    for (auto& k : a.kernels) k.lowered = compile::without_compile_marks(k.lowered);
    return base::sha256_of(a.to_bytes());
}

class merging {
public:
    explicit merging(store::bundle_writer& to) : to_{to} {}

    // An artifact that another bundle gave counts once.
    [[nodiscard]] result<void> add(store::entry const& what, std::string const& file) {
        KILN_TRY(auto const essence, essence_of(what));
        auto const& at = what.about.at;
        auto const place = std::array{at.family, at.request, at.key};
        if (auto const there = given_.find(place); there != given_.end() && there->second == essence) return {};
        KILN_TRY(auto a, compile::decode_artifact(what.payload));
        KILN_CHECK(versions_.add(at.family, {what.about.name, what.about.target, file, std::move(a.dependencies)}));
        given_.insert_or_assign(place, essence);
        return to_.add(what);
    }

private:
    store::bundle_writer& to_;
    std::map<std::array<store::digest, 3>, store::digest> given_;
    unit_versions versions_;
};

// Where only what one key has signed is used, only that is merged.
result<store::signature_policy> policy_here() {
    store::signature_policy out;
    auto const trusted = store::options_from(base::config::load()).trusted_key;
    if (trusted.empty()) return out;
    out.what = store::signature_policy::need::trusted;
    auto key = store::public_key::load(trusted);
    if (!key) return std::move(key).error().within("KILN_BUNDLE_KEY");
    out.keys.push_back(*std::move(key));
    return out;
}

// A signature is of a bundle as a whole: whoever merges signed ones signs the result, or says that nobody vouches for it.
result<void> check_signing(merge_arguments const& a, store::bundle_tier const& one) {
    bool const is_signed = one.info().signed_by != store::signature_state::none;
    if (!is_signed || !a.sign.empty() || a.unsigned_too) return {};
    return fail(errc::invalid_argument,
                "{}: it is signed, and {} would not be; sign it with --sign KEY, or say --unsigned", one.info().origin,
                a.output);
}

// Everything of one bundle, each entry read and checked. One that cannot be read ends it: a merged bundle is whole.
result<void> add_all(merge_arguments const& a, merging& to, std::string const& file) {
    KILN_TRY(auto const policy, policy_here());
    KILN_TRY(auto const bundle, store::bundle_tier::open(file, policy));
    KILN_CHECK(check_signing(a, *bundle));
    std::vector<store::address> there;
    KILN_CHECK(bundle->for_each([&](store::summary const& s) { there.push_back(s.about.at); }));
    if (there.size() != bundle->info().entries)
        return fail(errc::corrupt, "{}: {} of {} artifacts can be read", file, there.size(), bundle->info().entries);
    for (auto const& at : there) {
        KILN_TRY(auto const found, bundle->find(at, {}));
        if (!found.hit)
            return fail(errc::corrupt, "{}: an artifact cannot be read: {}", file, store::name_of(found.why));
        if (auto added = to.add(*found.hit, file); !added) return std::move(added).error().within(file);
    }
    return {};
}

int run(merge_arguments const& a) {
    check_output(a.output).value();
    std::optional<store::private_key> key;
    if (!a.sign.empty()) key = store::private_key::load(a.sign).value();
    store::bundle_writer writer;
    writer.set("title", a.title.empty() ? a.output : a.title);
    writer.set("producer", fmt::format("kiln {}", kiln::version));
    merging all{writer};
    for (auto const& file : a.files) add_all(a, all, file).value();
    writer.write(a.output, key ? &*key : nullptr, a.compress ? store::bundle_form::packed : store::bundle_form::plain)
        .value();
    if (a.as_json) print_json(json{{"bundle", a.output}, {"artifacts", writer.size()}, {"from", a.files}});
    else
        print(fmt::format("{}: {} of {}{}\n", a.output, count_of(writer.size(), "artifact"),
                          count_of(a.files.size(), "bundle"), key ? ", signed" : ""));
    return ok;
}

}  // namespace

void add_merge(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<merge_arguments>();
    auto* const app = add_command(root, "merge");
    app->add_option("BUNDLE", arguments->files, "bundles")->required();
    app->add_option("-o,--output", arguments->output, "bundle to write")->required();
    app->add_option("--sign", arguments->sign, "private key");
    app->add_flag("--unsigned", arguments->unsigned_too, "the result of signed bundles is not signed");
    app->add_option("--title", arguments->title, "what the bundle is called");
    app->add_flag("--compress", arguments->compress, "pack the artifacts");
    app->add_flag("--json", arguments->as_json, "JSON on stdout");
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
