// SPDX-License-Identifier: Apache-2.0
#include "capsule.hpp"

#include "base/config.hpp"
#include "base/digest.hpp"
#include "command.hpp"
#include "intercept/capsule_file.hpp"
#include "intercept/foreign_store.hpp"
#include "intercept/run_record.hpp"
#include "store/bundle.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kind_file = "file";
constexpr std::string_view title = "capsule";
constexpr std::size_t largest_file = std::size_t{256} << 20;

struct capsule_arguments {
    std::string output;
    std::string sign;
    std::string key;
    std::string folder;
    std::vector<std::string> records;
    std::string capsule;
    bool json = false;
};

// ---- what goes in

struct recorded {
    std::set<store::address, decltype([](store::address const& a, store::address const& b) {
                 return std::tie(a.family, a.request, a.key) < std::tie(b.family, b.request, b.key);
             })>
        entries;
    std::set<fs::path> caches;
};

result<void> read_record(std::string const& file, recorded& out) {
    KILN_TRY(auto const record, intercept::read_run_record(file));
    std::error_code failed;
    if (!record.caches.empty() && !fs::is_directory(record.caches, failed))
        return fail(
            errc::not_found,
            "{}: the caches of frameworks that belong to it are not there: {}; move them with it, or record with "
            "--no-frameworks",
            file, record.caches);
    if (!record.caches.empty()) out.caches.insert(record.caches);
    out.entries.insert(record.entries.begin(), record.entries.end());
    return {};
}

std::vector<fs::path> cache_roots() {
    std::vector<fs::path> out;
    auto const options = store::options_from(base::config::load());
    if (options.disk) out.push_back(options.disk->root);
    for (auto const& root : options.read_only_roots) out.push_back(root);
    return out;
}

bool is_foreign(std::string_view kind) {
    return std::ranges::find(intercept::foreign_kinds, kind) != std::end(intercept::foreign_kinds);
}

// What was recorded, and what its compilers said of themselves and accepted.
struct packed_entries {
    std::size_t entries = 0;
    std::size_t missing = 0;
};
result<packed_entries> add_entries(store::bundle_writer& writer, recorded const& what) {
    packed_entries out;
    std::set<std::string> toolchains;
    auto wanted = what.entries;
    for (bool const first : {true, false}) {
        for (auto const& root : cache_roots()) {
            store::disk_tier tier{{.root = root, .mode = store::access::read_only},
                                  std::make_shared<store::event_outlet>(nullptr)};
            KILN_TRY(auto const all, store::maintenance{root}.list());
            for (auto const& one : all) {
                auto const& about = one.what.about;
                bool const is_recorded = wanted.contains(about.at);
                bool const helps = about.kind == intercept::kind_step || about.kind == intercept::kind_facts;
                if (!is_foreign(about.kind) || (first ? !is_recorded : !helps || !toolchains.contains(about.toolchain)))
                    continue;
                KILN_TRY(auto const found, tier.find(about.at, {}));
                if (!found.hit) continue;
                KILN_CHECK(writer.add(*found.hit));
                ++out.entries;
                toolchains.insert(about.toolchain);
                wanted.erase(about.at);
            }
        }
    }
    out.missing = wanted.size();
    return out;
}

store::entry file_entry(std::string const& name, base::bytes data) {
    store::entry out;
    auto const family = base::key_builder{"kiln.capsule.file.v1"}.add("name", name).finish();
    auto const key =
        base::key_builder{"kiln.capsule.content.v1"}.add("name", name).add("data", base::byte_span{data}).finish();
    out.about = {.at = {family, family, key},
                 .name = name,
                 .target = "any",
                 .kind = std::string{kind_file},
                 .toolchain = "any",
                 .producer = {},
                 .licence = {}};
    out.payload = std::move(data);
    return out;
}

// Temporaries and locks of the frameworks are nobody's business.
bool is_left_out(fs::path const& file) {
    auto const name = file.filename().native();
    return name.ends_with(".lock") || name.starts_with("tmp.") || name.find(".tmp.") != name.npos;
}

result<std::size_t> add_files(store::bundle_writer& writer, fs::path const& folder) {
    std::size_t count = 0;
    std::error_code failed;
    for (fs::recursive_directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        if (!at->is_regular_file() || at->is_symlink() || is_left_out(at->path())) continue;
        KILN_TRY(auto data, base::read_file(at->path(), largest_file));
        if (!data) continue;
        auto const name = at->path().lexically_relative(folder);
        if (intercept::names_its_place(name)) {
            auto const text = intercept::with_mark(std::string{base::as_text(*data)}, name);
            data->assign(base::as_bytes(text).begin(), base::as_bytes(text).end());
        }
        KILN_CHECK(writer.add(file_entry(name.generic_string(), *std::move(data))));
        ++count;
    }
    if (failed) return io_error(folder.native(), failed.value());
    return count;
}

int build_capsule(capsule_arguments const& a) {
    check_output(a.output).value();
    check_apart({a.output}, a.records).value();
    if (!a.sign.empty()) (void)store::private_key::load(a.sign).value();
    recorded what;
    for (auto const& file : a.records) read_record(file, what).value();
    store::bundle_writer writer{store::packing::where_it_pays};
    writer.set("title", std::string{title});
    auto const entries = add_entries(writer, what).value();
    std::size_t files = 0;
    for (auto const& folder : what.caches) files += add_files(writer, folder).value();
    if (entries.missing > 0)
        complain(fmt::format("{} recorded answers are no longer in the cache: left out", entries.missing));
    else if (entries.entries + files == 0)
        throw fail(errc::not_found,
                   "nothing to pack: no compile that was recorded was answered or made, and no framework left a file");
    if (a.sign.empty()) writer.write(a.output).value();
    else {
        auto const key = store::private_key::load(a.sign).value();
        writer.write(a.output, &key).value();
    }
    std::error_code ignored;
    complain(fmt::format("{}: {} answers, {} files of frameworks, {}{}", a.output, entries.entries, files,
                         bytes_text(fs::file_size(a.output, ignored)), a.sign.empty() ? ", not signed" : ", signed"));
    return entries.missing > 0 ? partial : ok;
}

// ---- what comes out

result<std::shared_ptr<store::bundle_tier>> open_capsule(fs::path const& file, std::string const& key) {
    store::signature_policy policy;
    if (!key.empty()) {
        KILN_TRY(auto loaded, store::public_key::load(key));
        if (store::private_key::load(key))
            complain(fmt::format("{}: this is the private key, which whoever signs keeps to himself; {}.pub is enough",
                                 key, key));
        policy.what = store::signature_policy::need::trusted;
        policy.keys.push_back(std::move(loaded));
    }
    KILN_TRY(auto out, store::bundle_tier::open(file, policy));
    KILN_TRY(auto const about, out->read_manifest());
    auto const at = about.facts.find("title");
    if (at == about.facts.end() || at->second != title)
        return fail(errc::invalid_argument, "{}: a bundle, and not a capsule; KILN_BUNDLES takes bundles",
                    file.native());
    return out;
}

result<void> write_file(fs::path const& file, base::byte_span data) {
    KILN_CHECK(base::make_directories(file.parent_path(), 0700));
    return base::replace_file(file, data);
}

// `final` is where the folder will be when all is done.
result<void> unpack_entry(store::entry_ptr const& what, store::disk_tier& cache, fs::path const& folder,
                          fs::path const& final) {
    if (what->about.kind != kind_file) {
        if (!is_foreign(what->about.kind)) return {};
        KILN_TRY(auto const put, cache.put(what));
        if (!put.kept) return fail(errc::io, "{}: {}", folder.native(), put.detail.empty() ? put.why : put.detail);
        return {};
    }
    fs::path const name{what->about.name};
    if (!intercept::stays_inside(what->about.name)) return fail(errc::corrupt, "a file named '{}'", what->about.name);
    if (!intercept::names_its_place(name)) return write_file(folder / "caches" / name, what->payload);
    auto const text = intercept::with_place(std::string{base::as_text(what->payload)}, (final / "caches").native());
    return write_file(folder / "caches" / name, base::as_bytes(text));
}

result<std::size_t> unpack(store::bundle_tier& capsule, fs::path const& folder, fs::path const& final) {
    store::disk_tier cache{{.root = folder / "cache", .max_bytes = std::uint64_t{64} << 30},
                           std::make_shared<store::event_outlet>(nullptr)};
    KILN_CHECK(base::make_directories(folder / "caches", 0700));
    KILN_CHECK(base::make_directories(folder / "cache", 0700));
    std::vector<store::address> all;
    KILN_CHECK(capsule.for_each([&](store::summary const& one) { all.push_back(one.about.at); }));
    // One whose header is damaged is not listed.
    if (all.size() != capsule.info().entries) return fail(errc::corrupt, "an entry of it is damaged");
    for (auto const& at : all) {
        KILN_TRY(auto const found, capsule.find(at, {}));
        if (!found.hit) return fail(errc::corrupt, "an entry of it is damaged: {}", name_of(found.why));
        KILN_CHECK(unpack_entry(found.hit, cache, folder, final));
    }
    return all.size();
}

int inspect_capsule(capsule_arguments const& a) {
    auto const capsule = open_capsule(a.capsule, a.key).value();
    std::map<std::string, std::pair<std::size_t, std::uint64_t>> kinds;
    json list = json::array();
    capsule
        ->for_each([&](store::summary const& one) {
            auto const& about = one.about;
            auto const slash = about.name.find('/');
            auto const group = about.kind == kind_file ? "caches/" + about.name.substr(0, slash) : about.kind;
            auto& [count, bytes] = kinds[group];
            ++count;
            bytes += one.bytes;
            list.push_back({{"kind", about.kind},
                            {"name", about.name},
                            {"target", about.target},
                            {"bytes", one.bytes},
                            {"toolchain", about.toolchain},
                            {"producer", about.producer}});
        })
        .value();
    auto const& info = capsule->info();
    if (a.json) {
        print_json({{"capsule", a.capsule}, {"signed", name_of(info.signed_by)}, {"key", info.key}, {"entries", list}});
        return ok;
    }
    std::vector<std::vector<std::string>> rows{{"what", "entries", "size"}};
    for (auto const& [group, sum] : kinds)
        rows.push_back({group, fmt::format("{}", sum.first), bytes_text(sum.second)});
    print(fmt::format("{}: {} entries, {}, signature {}{}\n", a.capsule, info.entries, bytes_text(info.file_bytes),
                      name_of(info.signed_by), info.key.empty() ? "" : " by " + info.key));
    print(table(rows));
    return ok;
}

int verify_capsule(capsule_arguments const& a) {
    auto const capsule = open_capsule(a.capsule, a.key).value();
    auto const bad = capsule->verify().value();
    for (auto const& [at, why] : bad) complain(fmt::format("{}: {}", at.key.hex(), name_of(why)));
    print(fmt::format("{}: {} entries checked, {} bad, signature {}\n", a.capsule, capsule->info().entries, bad.size(),
                      name_of(capsule->info().signed_by)));
    return bad.empty() ? ok : failed;
}

int unpack_capsule(capsule_arguments const& a) {
    auto const capsule = open_capsule(a.capsule, a.key).value();
    auto const folder = fs::absolute(a.folder);
    if (fs::exists(folder) && !fs::is_empty(folder)) {
        complain(fmt::format("{}: exists and is not empty: name a new folder", a.folder));
        return misused;
    }
    auto const count = unpack(*capsule, folder, folder).value();
    complain(fmt::format("{}: {} entries in {}, signature {}", a.capsule, count, a.folder,
                         name_of(capsule->info().signed_by)));
    return ok;
}

// The same content, the same folder: a copy of it, or the image built again, needs no other. All that a bundle holds is in the digests
// of its last bytes; one that is packed as a whole is hashed as a whole.
result<std::string> identity_of(fs::path const& capsule) {
    constexpr std::size_t footer_bytes = 320;
    constexpr std::string_view magic = "KILNBNDL";
    KILN_TRY(auto const file, base::open_file(capsule, O_RDONLY));
    struct ::stat about {};
    std::array<char, magic.size()> first{};
    std::array<std::byte, footer_bytes> last{};
    base::key_builder out{"kiln.capsule.place.v2"};
    bool const is_plain = ::fstat(file.get(), &about) == 0 && about.st_size >= static_cast<::off_t>(last.size()) &&
                          ::pread(file.get(), first.data(), first.size(), 0) == static_cast<::ssize_t>(first.size()) &&
                          std::string_view{first.data(), first.size()} == magic;
    if (is_plain) {
        auto const at = about.st_size - static_cast<::off_t>(last.size());
        if (::pread(file.get(), last.data(), last.size(), at) != static_cast<::ssize_t>(last.size()))
            return io_error(capsule.native(), errno);
        out.add("footer", base::byte_span{last});
    } else {
        KILN_TRY(auto const all, base::read_all(file.get(), std::size_t{1} << 30));
        out.add("file", base::byte_span{all});
    }
    return out.finish().hex().substr(0, 32);
}

}  // namespace

result<fs::path> unpack_for_run(fs::path const& capsule, capsule_trust const& trust, fs::path const& folder) {
    std::error_code gone;
    if (!fs::exists(capsule, gone)) return fail(errc::not_found, "{}: no such capsule", capsule.native());
    auto const key = trust.key.empty() ? base::config::load().text("KILN_BUNDLE_KEY") : trust.key;
    if (key.empty() && !trust.unsigned_too)
        return fail(
            errc::forbidden,
            "{}: nobody vouches for it, and it decides what runs: name the public key it is signed by with --key, "
            "or say --unsigned",
            capsule.native());
    // The signature is checked each time: the folder of an earlier run vouches for nothing.
    KILN_TRY(auto const opened, open_capsule(capsule, key));
    auto const without = [&](std::string_view why) {
        complain(fmt::format("run: {}: the program starts without it: {}", capsule.native(), why));
        return fs::path{};
    };
    if (folder.empty()) return without("there is no folder of your own to unpack it in");
    KILN_TRY(auto const name, identity_of(capsule));
    auto const final = folder / "capsules" / name;
    if (::access(final.c_str(), R_OK | X_OK) == 0) {
        ::utimensat(AT_FDCWD, final.c_str(), nullptr, 0);  // used today
        return final;
    }
    auto const part = folder / "capsules" / ("part-" + base::random_name());
    if (auto done = unpack(*opened, part, final); !done) {
        std::error_code ignored;
        fs::remove_all(part, ignored);
        // A full disk is no reason not to start.
        if (done.error().code() == errc::io) return without(done.error().message());
        return std::move(done).error().within(capsule.native());
    }
    std::error_code taken;
    fs::rename(part, final, taken);
    std::error_code ignored;
    if (taken) fs::remove_all(part, ignored);  // another was first
    return final;
}

unpacked_capsules unpacked_capsules_in(fs::path const& cache) {
    unpacked_capsules out;
    std::error_code failed;
    auto const folder = cache / "run" / "capsules";
    for (fs::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) ++out.count;
    failed.clear();
    for (fs::recursive_directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        std::error_code gone;
        if (auto const size = at->is_regular_file(gone) ? at->file_size(gone) : 0; !gone) out.bytes += size;
    }
    return out;
}

void remove_unpacked_capsules(fs::path const& cache) {
    std::error_code ignored;
    fs::remove_all(cache / "run" / "capsules", ignored);
}

void add_capsule(CLI::App& root, std::vector<command>& commands) {
    auto a = std::make_shared<capsule_arguments>();
    auto* const app = add_command(root, "capsule");
    app->require_subcommand(1);
    auto const add = [&](char const* name, int (*run)(capsule_arguments const&)) {
        auto* const one = add_command(*app, name, "capsule");
        commands.push_back({one, [a, run] { return run(*a); }});
        return one;
    };
    auto* const build = add("build", build_capsule);
    build->add_option("-o,--output", a->output, "capsule to write")->required();
    build->add_option("--sign", a->sign, "private key");
    build->add_option("RECORD", a->records, "files of 'kiln run --record'")->required();
    for (auto* const one :
         {add("inspect", inspect_capsule), add("verify", verify_capsule), add("unpack", unpack_capsule)}) {
        one->add_option("CAPSULE", a->capsule, "capsule")->required();
        one->add_option("--key", a->key, "public key it must be signed by");
        if (one->get_name() == "inspect") one->add_flag("--json", a->json, "as JSON");
        if (one->get_name() == "unpack") one->add_option("FOLDER", a->folder, "new folder")->required();
    }
}

}  // namespace kiln::cli
