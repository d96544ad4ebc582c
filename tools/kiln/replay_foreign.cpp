// SPDX-License-Identifier: Apache-2.0
#include "replay_foreign.hpp"

#include "arch_words.hpp"
#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/text.hpp"
#include "command.hpp"
#include "compile/host_resources.hpp"
#include "cuda/library_search.hpp"
#include "intercept/foreign_store.hpp"
#include "intercept/other_targets.hpp"
#include "intercept/run_record.hpp"
#include "intercept/worker_line.hpp"
#include "misuse.hpp"
#include "run_environment.hpp"
#include "run_workers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;
using intercept::foreign_job;
using intercept::foreign_product;

struct request {
    foreign_job job;                    // options as they are to be
    std::string name, target;           // for people
    std::string state = "not allowed";  // or: was there, made, failed
    std::string why;
    std::optional<store::address> at;
    double ms = 0;
    bool is_link = false;
};

// Those that are damaged are told among what was not made.
result<std::vector<foreign_job>> jobs_in(fs::path const& folder, std::vector<request>& damaged) {
    std::map<std::string, fs::path> files;  // in an order that does not change
    std::error_code failed;
    for (fs::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        auto const name = at->path().filename().native();
        if (!name.starts_with('.')) files.emplace(name, at->path());  // the recording's own lock
    }
    if (failed) return io_error(folder.native(), failed.value());
    std::vector<foreign_job> out;
    for (auto const& [name, file] : files) {
        KILN_TRY(auto const data, base::read_file(file));
        if (!data) continue;
        auto job = intercept::decode_foreign_job(*data);
        if (job) out.push_back(*std::move(job));
        else
            damaged.push_back(
                {.job = {}, .name = name, .target = "", .state = "damaged", .why = job.error().message(), .at = {}});
    }
    return out;
}

// As programs call it, and so its identity does: the name a library has for itself is a link to its file, as a rule.
std::string soname_of(fs::path const& file) {
    constexpr std::string_view stem = "libnvrtc.so.";
    auto const name = file.filename().native();
    auto const dot = name.starts_with(stem) ? name.find('.', stem.size()) : name.npos;
    auto const shorter = file.parent_path() / name.substr(0, dot);
    std::error_code failed;
    return fs::exists(shorter, failed) ? shorter.native() : file.native();
}

request request_for(foreign_job const& job, std::string const& arch) {
    request out{.job = job, .name = intercept::name_for_people(job.program), .target = arch, .why = {}, .at = {}};
    // None that is like this was recorded, but a record may come from anybody: files would be written.
    if (auto const option = intercept::unkeepable_option(job.call.options); !option.empty()) {
        out.why = fmt::format("'{}': an answer to that is not kept", option);
        return out;
    }
    if (arch.empty()) {
        out.target = intercept::target_in(job.call.options);
        out.state.clear();
        return out;
    }
    auto options = intercept::options_for(job.call.options, arch);
    if (!options) {
        out.why = options.error().message();
        return out;
    }
    out.job.call.options = *std::move(options);
    out.target = intercept::target_in(out.job.call.options);
    out.state.clear();
    return out;
}

// A link is not made again: its inputs are not recorded. For its own architecture it may be there.
request link_for(intercept::run_record::link const& link, std::string const& arch) {
    request out{.job = {}, .name = link.name, .target = arch.empty() ? link.target : arch, .why = {}, .at = {}};
    out.is_link = true;
    out.why = "a link by nvJitLink: it is made in the program alone; record it on such a GPU";
    if (out.target == link.target) out.at = link.at;
    return out;
}

// The compilers that are found on this machine, by what they are. A record may come from anybody: what it names is never opened.
std::map<std::string, std::string> compilers_here(base::config const& settings) {
    constexpr std::array<std::string_view, 2> sonames{"libnvrtc.so.13", "libnvrtc.so.12"};
    std::map<std::string, std::string> out;
    cuda::library_search const search{cuda::search_environment::process(settings)};
    auto const add = [&](std::string const& file) {
        for (auto const which : {intercept::builtins::beside, intercept::builtins::in_use})
            out.try_emplace(intercept::toolchain_of(file, which), file);
    };
    if (auto const named = search.named_nvrtc(); !named.empty()) add(soname_of(named));
    for (auto const& one : search.candidates(sonames)) add(one.file);
    out.erase("");
    return out;
}

class replayer {
public:
    explicit replayer(std::string address)
        : settings_{base::config::load()},
          compilers_{compilers_here(settings_)},
          store_{settings_},
          line_{std::move(address)} {}

    // Any thread, any request once.
    void make(request& r) {
        auto const& asked = r.job.program;
        auto const options = r.job.call.options;
        std::vector<intercept::foreign_call> calls;
        if (auto hidden = intercept::virtual_call(asked, options)) calls.push_back(*std::move(hidden));
        calls.push_back(intercept::literal_call(asked, options, r.job.directory));
        for (auto const& call : calls) {
            if (auto const found = store_.find(id_of(r, call), call.roots); found.hit) {
                r.state = "was there";
                r.at = found.hit->at;
                return;
            }
        }
        r.state = "failed";
        r.why = fmt::format("its compiler is not found here; KILN_CUDA_PATH may name where it is: {}", r.job.toolchain);
        auto const compiler = compilers_.find(r.job.toolchain);
        if (compiler == compilers_.end()) return;
        r.job.library = compiler->second;
        // Of the machine that it was recorded on, perhaps. Where the answer does not tell it, it decides nothing but which file a
        // relative name means, and every file that was looked for is part of the key.
        std::error_code gone;
        if (!fs::is_directory(r.job.directory, gone)) {
            r.why = fmt::format("what is made tells its working directory, which is not here: {}", r.job.directory);
            if (intercept::tells_directory(options)) return;
            r.job.directory = fs::current_path(gone).native();
        }
        r.job.seen_from = intercept::viewpoint::of_this_thread(r.job.directory.c_str());
        for (auto const& call : calls) {
            if (make_by(r, call)) return;
        }
    }
    // What was recorded of a link, where it is still in the cache.
    void look_for(request& link) {
        if (!link.at) return;
        if (store_.holds(*link.at)) {
            link.state = "was there";
            link.why.clear();
        } else link.at.reset();
    }
    void flush() { store_.flush(); }

private:
    [[nodiscard]] intercept::foreign_id id_of(request const& r, intercept::foreign_call const& call) const {
        return {.digests = intercept::digests_of(r.job.program, call, r.job.toolchain),
                .kind = std::string{intercept::kind_nvrtc},
                .name = r.name,
                .target = r.target,
                .toolchain = r.job.toolchain,
                .by = "kiln replay"};
    }
    // False: call it another way.
    bool make_by(request& r, intercept::foreign_call const& call) {
        base::stopwatch const watch;
        r.job.call = call;
        auto made = line_.compile(r.job);
        r.ms = watch.ms();
        r.why = "no worker compiled it";
        if (!made) return true;
        r.why = made->product.entry.answer.log;
        if (made->product.how == foreign_product::outcome::unusable) return false;
        if (made->product.how == foreign_product::outcome::failed) {
            auto const& log = made->product.entry.answer.log;
            r.why = fmt::format("it does not compile: {}", log.substr(0, log.find('\n')));
            return true;
        }
        auto const kept =
            store_.keep(id_of(r, call), made->product.entry, std::chrono::milliseconds{static_cast<long>(r.ms)});
        if (kept) r.at = *kept;
        r.state = kept ? "made" : "failed";
        r.why = kept ? "" : "the cache does not take it: " + kept.error().message();
        return true;
    }

    base::config settings_;
    std::map<std::string, std::string> const compilers_;  // identity, file
    intercept::foreign_store store_;
    intercept::worker_line line_;
};

void make_all(std::vector<request>& all, int jobs) {
    auto const settings = base::config::load();
    run_environment const surroundings{settings};
    run_workers workers{surroundings.private_folder(), settings};
    replayer maker{workers.is_open() ? workers.address().native() : ""};
    base::file_descriptor const ended{::eventfd(0, EFD_CLOEXEC)};
    auto const fitting = compile::fitting_workers(compile::host_resources::read());
    std::atomic<std::size_t> next{0};
    std::atomic<int> busy = jobs > 0 ? std::min(jobs, fitting) : fitting;
    std::vector<std::jthread> threads;
    for (int i = busy.load(); i > 0; --i) {
        threads.emplace_back([&] {
            for (auto n = next.fetch_add(1); n < all.size(); n = next.fetch_add(1)) {
                if (all[n].is_link) maker.look_for(all[n]);
                else if (all[n].state.empty()) maker.make(all[n]);
            }
            std::uint64_t const one = 1;
            if (busy.fetch_sub(1) == 1) (void)!::write(ended.get(), &one, sizeof one);
        });
    }
    std::vector<std::string> environment;
    for (char** at = environ; *at != nullptr; ++at) environment.emplace_back(*at);
    if (workers.is_open()) workers.serve_until_end(ended.get(), environment);
    threads.clear();
    maker.flush();
}

json record_of(std::vector<request> const& all) {
    json happenings = json::array();
    for (auto const& r : all) {
        if (!r.at) continue;
        happenings.push_back({{"what", r.state == "made" ? "made" : "answered"},
                              {"by", "kiln replay"},
                              {"library", r.is_link ? "nvjitlink" : "nvrtc"},
                              {"program", r.name},
                              {"target", r.target},
                              {"family", r.at->family.hex()},
                              {"request", r.at->request.hex()},
                              {"key", r.at->key.hex()}});
    }
    return {{"format", "kiln-run"},
            {"version", 1},
            {"program", json::array({"kiln", "replay"})},
            {"caches", ""},
            {"happenings", std::move(happenings)}};
}

void show(std::vector<request> const& all, std::size_t ready, double ms, bool as_json) {
    if (as_json) {
        json list = json::array();
        for (auto const& r : all)
            list.push_back({{"name", r.name}, {"target", r.target}, {"state", r.state}, {"why", r.why}, {"ms", r.ms}});
        print_json({{"ready", ready}, {"stale", all.size() - ready}, {"wall_ms", ms}, {"requests", std::move(list)}});
        return;
    }
    std::vector<std::vector<std::string>> rows{{"request", "target", "state", "why not"}};
    for (auto const& r : all) rows.push_back({r.name, r.target, r.state, r.why});
    if (!all.empty()) print(table(rows));
    print(fmt::format("{} of {} ready in {:.0f} ms\n", ready, all.size(), ms));
}

// The architectures alone: whether it is to be a cubin or PTX, the request says itself.
std::vector<std::string> archs_of(std::vector<std::string> const& words) {
    std::vector<std::string> out;
    for (auto const& t : meant(targets_of_words(words))) {
        auto name = t.arch.name();
        if (t.arch.is_virtual()) name.replace(0, name.find('_'), "sm");
        if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
    }
    if (out.empty()) out.emplace_back();  // as it was asked for
    return out;
}

}  // namespace

// Also where it is one that is not read: what is wrong with it is said then.
bool is_foreign_record(std::string const& file) {
    auto const text = base::read_file(file);
    return text && *text && intercept::parse_run_record(base::as_text(**text));
}

int replay_foreign(foreign_replay const& what) {
    if (!what.output.empty()) check_text_output(what.output).value();
    auto const archs = archs_of(what.archs);
    std::vector<request> all;
    std::set<std::string> seen;
    for (auto const& file : what.records) {
        auto const record = intercept::read_run_record(file).value();
        auto const& folder = record.requests;
        if (folder.empty()) throw fail(errc::corrupt, "{}: it has no requests in it; record it again", file);
        for (auto const& job : jobs_in(folder, all).value()) {
            for (auto const& arch : archs) {
                auto one = request_for(job, arch);
                auto const identity = one.state + arch + std::string{base::as_text(intercept::encode(one.job))};
                if (seen.insert(identity).second) all.push_back(std::move(one));
            }
        }
        for (auto const& link : record.links) {
            for (auto const& arch : archs) {
                if (seen.insert(fmt::format("link {} {}", link.request.hex(), arch)).second)
                    all.push_back(link_for(link, arch));
            }
        }
    }
    base::stopwatch const watch;
    make_all(all, what.jobs);
    auto const ready =
        static_cast<std::size_t>(std::ranges::count_if(all, [](auto const& r) { return r.at.has_value(); }));
    show(all, ready, watch.ms(), what.as_json);
    if (!what.output.empty())
        write_text_output(what.output, base::as_bytes(base::json_text(record_of(all), 1) + "\n")).value();
    if (ready == all.size()) return ok;
    return ready == 0 ? failed : partial;
}

}  // namespace kiln::cli
