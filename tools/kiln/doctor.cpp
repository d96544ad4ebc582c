// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "compile/worker_process.hpp"
#include "engine/engine_state.hpp"
#include "remote/remote_tier.hpp"
#include "remote_remedies.hpp"
#include "spatial_gdal.hpp"
#include "store/read_entry.hpp"
#include "unknown_variables.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

struct finding {
    std::string what;
    std::string state;  // "ok", "missing", "problem", "advice"
    std::string value;
    std::string remedy;  // empty when ok
};

finding tool_finding(std::string what, result<compile::tool> const& found, std::string remedy) {
    if (!found) return {std::move(what), "missing", found.error().message(), std::move(remedy)};
    return {std::move(what), "ok", fmt::format("{} (by {}; {})", found->path, found->found, found->toolchain), {}};
}

// A machine may do without a compiler. One that was named and is not there is a mistake: every compile fails.
finding nvrtc_finding(engine::state& s) {
    auto const& found = s.nvrtc();
    auto out = tool_finding("NVRTC", found,
                            "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', or set KILN_CUDA_PATH");
    auto const& file = s.config.text("KILN_NVRTC");
    auto const& toolkit = s.config.text("KILN_CUDA_PATH");
    if (found || (file.empty() && toolkit.empty())) return out;
    out.state = "problem";
    out.remedy = !file.empty() ? fmt::format("correct or remove KILN_NVRTC={}: it names the library, a file", file)
                               : fmt::format(
                                     "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', and correct or "
                                     "remove KILN_CUDA_PATH={}, the only place looked at",
                                     toolkit);
    return out;
}

finding version_finding(engine::state& s) {
    // Asking for the version loads the library: this is a diagnosis, so it may.
    auto const api = cuda::load_nvrtc(s.tools().nvrtc);
    if (!api) return {"NVRTC version", "problem", api.error().message(), "install NVRTC 12.8 or newer"};
    std::string archs;
    if (auto const known = (*api)->supported_archs()) {
        for (int const a : *known) archs += fmt::format("{}sm_{}", archs.empty() ? "" : " ", a);
    }
    return {"NVRTC version", "ok", fmt::format("{}.{}: {}", (*api)->major, (*api)->minor, archs), {}};
}

void add_devices(std::vector<finding>& out) {
    auto const all = devices();
    if (!all) {
        out.push_back({"GPU", "missing", all.error().message(),
                       "nothing is needed for compiling and bundling; to run kernels install the NVIDIA driver"});
        return;
    }
    for (auto const& d : *all) {
        out.push_back(
            {fmt::format("GPU {}", d.ordinal),
             "ok",
             fmt::format("{}, {}, {} multiprocessors, {}, driver for CUDA {}.{}", d.name, d.target(), d.multiprocessors,
                         bytes_text(d.memory_bytes), d.driver_version / 1000, d.driver_version % 1000 / 10),
             {}});
    }
}

// What stops a file of some size from being written there; empty where nothing does.
std::string trouble_writing(std::filesystem::path const& folder) {
    auto const file = folder / (".kiln-doctor-" + base::random_name());
    auto const attempt = [&]() -> result<void> {
        KILN_TRY(auto fd, base::open_file(file, O_WRONLY | O_CREAT | O_EXCL));
        KILN_CHECK(base::write_all(fd.get(), base::bytes(std::size_t{64} << 10)));
        return fd.close();
    };
    auto const done = attempt();
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    if (done) return {};
    if (done.error().status() == ENOSPC || done.error().status() == EDQUOT) return "it is full";
    return done.error().message();
}

// The same for a folder that is not there yet: whether it could be made.
std::string trouble_making(std::filesystem::path const& folder) {
    auto parent = folder.parent_path();
    std::error_code ignored;
    while (!std::filesystem::exists(parent, ignored) && parent != parent.parent_path()) parent = parent.parent_path();
    auto const attempt = parent / (".kiln-doctor-" + base::random_name());
    if (::mkdir(attempt.c_str(), 0700) != 0)
        return "it cannot be made: " + io_error("mkdir in " + parent.native(), errno).message();
    auto trouble = trouble_writing(attempt);
    ::rmdir(attempt.c_str());
    return trouble;
}

void add_cache(std::vector<finding>& out, engine::state& s) {
    auto const directory = s.store->probe_directory();
    if (!directory) {
        auto const& why = s.store->options().no_disk_reason;
        out.push_back({"cache", "missing", why.empty() ? "nothing is kept on disk" : why,
                       "set KILN_CACHE_DIR to a directory of your own, or unset KILN_DISABLE"});
        return;
    }
    using store::directory_state;
    auto trouble = directory->reason;
    if (directory->state == directory_state::missing) trouble = trouble_making(directory->root);
    else if (directory->state == directory_state::writable) trouble = trouble_writing(directory->root);
    bool const by_choice = s.config.flag("KILN_READONLY") && directory->state == directory_state::read_only;
    bool const good = trouble.empty() || by_choice;
    bool const writable = directory->state == directory_state::writable;
    out.push_back(
        {"cache", good ? "ok" : "problem",
         fmt::format("{} ({}{}{}{}{}, bound {}){}", directory->root.native(),
                     directory->state == directory_state::missing && good ? "missing, will be made"
                                                                          : store::name_of(directory->state),
                     directory->filesystem.empty() ? "" : ", ", directory->filesystem, writable ? ", locks: " : "",
                     writable ? store::name_of(directory->locks) : "",
                     bytes_text(s.config.size("KILN_MAX_SIZE").value_or(0)), trouble.empty() ? "" : ": " + trouble),
         good                      ? ""
         : trouble == "it is full" ? "make room there, or set KILN_CACHE_DIR to another directory"
                                   : "make it a directory that you may write to, or set KILN_CACHE_DIR to "
                                     "another"});
}

// The folder of entries as the store judges it; empty: it is used.
std::string trouble_with_folder(store::disk_directory& directory, std::string const& name) {
    base::digest family{};
    std::uint8_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number, 16);
    family.bytes[0] = number;
    return directory.refusal(family);
}

// Each folder, and the first of its entries as the store would read it: permission to look into a directory says nothing of its files.
// Locks and files on their way stay closed to others, and nobody reads them.
std::string trouble_reading(store::disk_directory& directory) {
    constexpr std::uint64_t any_size = std::uint64_t{1} << 40;
    auto const v1 = directory.layout().v1();
    std::error_code why;
    std::filesystem::recursive_directory_iterator at{v1, std::filesystem::directory_options::skip_permission_denied,
                                                     why};
    if (why == std::errc::no_such_file_or_directory) return {};  // nothing in it yet
    bool has_read = false;
    for (; !why && at != std::filesystem::recursive_directory_iterator{}; at.increment(why)) {
        auto const name = at->path().filename().native();
        if (at.depth() == 0 && !store::is_shard_name(name)) at.disable_recursion_pending();
        else if (at.depth() == 0) {
            if (auto trouble = trouble_with_folder(directory, name); !trouble.empty()) return trouble;
        } else if (!has_read && store::is_entry_name(name)) {
            has_read = true;
            auto const read = store::read_entry(at->path(), any_size, store::writers::owner_and_group);
            if (!read) return read.error().message();
            if (!read->what) return fmt::format("{}: {}", at->path().native(), store::name_of(read->why));
        }
    }
    return why ? io_error(v1.native(), why.value()).message() : std::string{};
}

void add_read_only_caches(std::vector<finding>& out, engine::state& s) {
    for (auto const& root : s.store->options().read_only_roots) {
        store::disk_directory directory{
            root, {.mode = store::access::read_only}, std::make_shared<store::event_outlet>(nullptr)};
        auto const seen = directory.report();
        finding f{"cache, read", "problem", root.native(), {}};
        if (seen.state == store::directory_state::missing) {
            f.value += ": there is no such directory";
            f.remedy = "correct or remove it in KILN_CACHE_PATH_RO";
        } else if (seen.state == store::directory_state::off) {
            f.value = seen.reason;
            f.remedy = "correct its owner and mode, or remove it from KILN_CACHE_PATH_RO";
        } else if (auto const trouble = trouble_reading(directory); !trouble.empty()) {
            f.value += ": its entries cannot be read or used: " + trouble;
            f.remedy = "whoever fills it must let you read it, and nobody else write: 'chmod -R a+rX,o-w' there";
        } else {
            f.state = "ok";
            f.value += " (read-only, KILN_CACHE_PATH_RO)";
        }
        out.push_back(std::move(f));
    }
}

std::string signature_in_words(store::bundle_info const& b) {
    switch (b.signed_by) {
        case store::signature_state::none: return "unsigned";
        case store::signature_state::unchecked: return "signature not checked: KILN_BUNDLE_KEY is not set";
        case store::signature_state::good: return "signature good";
    }
    return {};
}

// Small ones are read whole; of the others nothing is said that was not looked at.
finding bundle_finding(store::bundle_tier& b) {
    constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
    auto const& info = b.info();
    auto const about = [&](std::string_view content) {
        return fmt::format("{} ({}, {}, {})", info.origin, count_of(info.entries, "artifact"), content,
                           signature_in_words(info));
    };
    constexpr auto* again = "build the bundle again";
    if (info.file_bytes > most_bytes)
        return {"bundle", "ok", about(fmt::format("not read: 'kiln verify {}' does", info.origin)), {}};
    auto const bad = b.verify();
    if (!bad) return {"bundle", "problem", bad.error().message(), again};
    if (bad->empty()) return {"bundle", "ok", about("all read and whole"), {}};
    return {"bundle", "problem", about(fmt::format("{} damaged: {}", bad->size(), store::name_of(bad->front().second))),
            again};
}

void add_bundles(std::vector<finding>& out, engine::state& s) {
    auto const used = s.store->bundles();
    if (auto const& trusted = s.store->options().trusted_key; !trusted.empty()) {
        if (auto const key = store::public_key::load(trusted); !key)
            out.push_back({"bundle key", "problem", key.error().message(),
                           "correct KILN_BUNDLE_KEY; until then no bundle file is used"});
    }
    for (auto const& one : s.store->refused_bundles())
        out.push_back({"bundle", "problem", one.why,
                       "correct KILN_BUNDLES or KILN_BUNDLE_KEY, or build the bundle again and sign it ('kiln "
                       "build --sign')"});
    for (auto const& b : used) out.push_back(bundle_finding(*b));
}

void add_events_file(std::vector<finding>& out, engine::state& s) {
    auto const& file = s.config.text("KILN_EVENTS");
    if (file.empty()) return;
    if (auto const opened = base::open_file(file, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY); !opened)
        out.push_back({"events", "problem", opened.error().message(),
                       opened.error().status() == ENXIO
                           ? "nobody reads this pipe: start its reader first, or set KILN_EVENTS to a file"
                           : "set KILN_EVENTS to a file that you may write to"});
}

constexpr int few_days = 14;

// libcurl obeys these, in small letters only where they are for clear text.
std::string proxy_in_words(remote::remote_options const& o) {
    if (o.at.is_redis() || remote::is_this_machine(o.at.host)) return {};
    bool const tls =
        o.at.by == remote::scheme::https || (o.at.by == remote::scheme::s3 && !o.endpoint.starts_with("http:"));
    std::vector<char const*> const names = tls ? std::vector{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
                                               : std::vector{"http_proxy", "all_proxy", "ALL_PROXY"};
    for (auto const* name : names) {
        auto const* const value = std::getenv(name);
        if (value != nullptr && *value != '\0')
            return fmt::format(", by the proxy {} of {} unless no_proxy names the server", remote::shown_url(value),
                               name);
    }
    return {};
}

// Of another's file the group is how we read it at all: so a secret of Kubernetes reaches who is not root.
bool is_read_by_others(std::filesystem::path const& secret) {
    struct ::stat about {};
    if (secret.empty() || ::stat(secret.c_str(), &about) != 0) return false;
    return (about.st_mode & (about.st_uid == ::geteuid() ? 077u : 007u)) != 0;
}

// Nobody changes what is mounted only to be read.
std::string remedy_for_open(std::filesystem::path const& secret) {
    struct ::statvfs about {};
    bool const mounted = ::statvfs(secret.c_str(), &about) == 0 && (about.f_flag & ST_RDONLY) != 0;
    return mounted ? "mount it for its user alone: of a secret of Kubernetes defaultMode: 0400"
                   : fmt::format("chmod 600 {}", secret.native());
}

// It works, and somebody may want it otherwise.
std::vector<finding> advice_on(remote::remote_options const& o, remote::remote_tier::condition const& seen) {
    std::vector<finding> out;
    auto const advise = [&](std::string_view what, std::string remedy) {
        out.push_back({"remote", "advice", fmt::format("{}: {}", o.at.text(), what), std::move(remedy)});
    };
    bool const keeps_all = std::ranges::find(seen.said, std::pair<std::string, std::string>{
                                                            "memory-policy", "noeviction"}) != seen.said.end();
    if (keeps_all)
        advise("when it is full nothing is written any more (noeviction)", "maxmemory-policy allkeys-lru fits a cache");
    if (seen.leases == "none" && o.writes == remote::writing::allowed)
        advise("no leases: N machines that start together compile N times", "add lease=redis://...");
    if (o.in == remote::belief::server && o.at.is_overheard())
        advise("clear text and trust=server: whoever is on the way can put kernels there",
               fmt::format("use {}, or keys= and sign=", o.at.is_redis() ? "rediss://" : "https://"));
    return out;
}

// Each remote tried out: does it answer, may we write, does it keep leases, do its keys serve.
void add_remotes(std::vector<finding>& out, engine::state& s) {
    auto const list = remote::remotes_of(s.config);
    for (auto const& off : list.off)
        out.push_back({"remote", "problem", fmt::format("{}: not used: {}", off.url, off.why), off.remedy});
    for (auto const& o : list.usable) {
        remote::remote_tier r{o, std::make_shared<store::event_outlet>(nullptr)};
        auto const url = o.at.text();
        auto const problem = [&](std::string const& what, std::string remedy) {
            out.push_back({"remote", "problem", fmt::format("{}: {}", url, what), std::move(remedy)});
        };
        if (auto const why = r.trouble_with_keys(); !why.empty()) {
            problem(why, "correct keys= and sign= in KILN_REMOTE; 'kiln key FILE' makes a pair");
            continue;
        }
        for (auto const& secret : {o.sign, o.token_file, o.lease_token_file, o.credentials_file, o.certificate_key}) {
            if (is_read_by_others(secret))
                problem(fmt::format("{} can be read by others", secret.native()), remedy_for_open(secret));
        }
        auto const seen = r.examine();
        if (seen.why) {
            auto const proxy = proxy_in_words(o);
            auto const remedy = proxy.empty() ? "" : "see to the proxy, or name the server in no_proxy; else ";
            problem(fmt::format("{}: {}{}", remote::name_of(seen.why.what), seen.why.detail, proxy),
                    remedy + remedy_for(o, seen.why));
            continue;
        }
        auto const unwritten = r.try_writing();
        if (!unwritten.empty()) problem("cannot be written: " + unwritten, remedy_for_writing(o, unwritten));
        auto const unleased = unwritten.empty() ? r.try_lease() : std::string{};
        if (!unleased.empty())
            problem(fmt::format("leases{}: {}", o.lease_at ? " at " + o.lease_at->text() : "", unleased),
                    remedy_for_leases(o, unleased));
        std::string facts;
        for (auto const& [name, value] : seen.said) facts += fmt::format(", {} {}", name, value);
        if (seen.certificate_days) facts += fmt::format(", certificate for {} days", *seen.certificate_days);
        if (seen.certificate_days && *seen.certificate_days < few_days)
            problem(fmt::format("its certificate ends in {} days", *seen.certificate_days),
                    "renew it: from then on nobody connects, and everything is compiled everywhere");
        facts += proxy_in_words(o);
        if (!unwritten.empty() || !unleased.empty()) continue;
        out.push_back({"remote",
                       "ok",
                       fmt::format("{} ({:.2f} ms, {}{})", url, seen.round_trip_ms,
                                   o.writes == remote::writing::allowed ? "written" : "read-only", facts),
                       {}});
        for (auto& one : advice_on(o, seen)) out.push_back(std::move(one));
    }
}

std::vector<finding> examine(engine::state& s) {
    std::vector<finding> out;
    out.push_back({"kiln", "ok", std::string{kiln::version}, {}});
    add_devices(out);
    out.push_back(nvrtc_finding(s));
    if (s.nvrtc()) out.push_back(version_finding(s));
    out.push_back(
        tool_finding("nvJitLink", s.nvjitlink(), "only needed to link LTO-IR: 'pip install nvidia-nvjitlink'"));
    std::string includes;
    for (auto const& directory : s.tools().toolkit_includes) includes += (includes.empty() ? "" : ", ") + directory;
    if (includes.empty()) {
        out.push_back({"CUDA headers", "missing", "none found",
                       "only needed by units that include them: install the CUDA toolkit"});
    } else out.push_back({"CUDA headers", "ok", includes, {}});
    auto const worker = compile::worker_pool::find_worker(s.config.text("KILN_WORKER"));
    auto const tried =
        worker ? compile::try_worker(*worker, std::chrono::seconds{5}) : result<void>{error{worker.error()}};
    if (tried)
        out.push_back({"workers", "ok", fmt::format("up to {} of {}", s.pool->capacity(), worker->native()), {}});
    else
        out.push_back(
            {"workers", "problem", tried.error().message(),
             "set KILN_WORKER to the kiln-worker program of this build; compiling in the process until then"});
    if (auto const gdal = gdal_in_words(); gdal) out.push_back({"GDAL", "ok", *gdal, {}});
    else
        out.push_back({"GDAL", "missing", gdal.error().message(),
                       "only needed by 'kiln spatial' for other files than GeoJSON, CSV, WKT and WKB"});
    add_cache(out, s);
    add_read_only_caches(out, s);
    add_bundles(out, s);
    add_remotes(out, s);
    add_events_file(out, s);
    for (auto const& problem : s.config.problems())
        out.push_back({"settings", "problem", problem, "correct or remove the setting"});
    for (auto const& unknown : unknown_variables())
        out.push_back({"settings", "problem", unknown, "correct or remove it: it has no effect"});
    return out;
}

json settings_json(base::config const& config) {
    json out = json::array();
    for (auto const& k : base::knobs()) {
        auto const& value = config.get(k.variable);
        out.push_back({{"name", k.variable},
                       {"value", remote::shown_value(k, value)},
                       {"from", base::name_of(value.from)},
                       {"help", k.help}});
    }
    return out;
}

int run(bool as_json) {
    engine e;
    auto& s = e.internals();
    auto const findings = examine(s);
    bool healthy = true;
    for (auto const& f : findings) healthy = healthy && f.state != "problem";
    if (as_json) {
        json list = json::array();
        for (auto const& f : findings)
            list.push_back({{"what", f.what}, {"state", f.state}, {"value", f.value}, {"remedy", f.remedy}});
        print_json(json{{"healthy", healthy},
                        {"toolchain", s.nvrtc() ? s.nvrtc()->toolchain : std::string{}},
                        {"findings", std::move(list)},
                        {"settings", settings_json(s.config)}});
        return healthy ? ok : failed;
    }
    for (auto const& f : findings) {
        print(fmt::format("{:<8} {:<14} {}\n", f.state, f.what, f.value));
        if (!f.remedy.empty()) print(fmt::format("{:<8} {:<14} → {}\n", "", "", f.remedy));
    }
    std::vector<std::vector<std::string>> rows{{"setting", "value", "from"}};
    for (auto const& k : base::knobs()) {
        auto const& value = s.config.get(k.variable);
        rows.push_back({std::string{k.variable}, value.value.empty() ? "-" : remote::shown_value(k, value),
                        value.from == base::origin::file ? value.file : std::string{base::name_of(value.from)}});
    }
    print("\n" + table(rows));
    return healthy ? ok : failed;
}

}  // namespace

void add_doctor(CLI::App& root, std::vector<command>& commands) {
    auto as_json = std::make_shared<bool>(false);
    auto* const app = add_command(root, "doctor");
    app->add_flag("--json", *as_json, "JSON on stdout");
    commands.push_back({app, [as_json] { return run(*as_json); }});
}

}  // namespace kiln::cli
