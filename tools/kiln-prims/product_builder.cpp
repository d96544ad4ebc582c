// SPDX-License-Identifier: Apache-2.0
#include "product_builder.hpp"

#include "compile/includes.hpp"
#include "engine/engine_state.hpp"
#include "prims/catalogue.hpp"
#include "prims/routes.hpp"
#include "prims/shipped.hpp"
#include "prims/sources.hpp"

#include <atomic>
#include <functional>
#include <set>
#include <thread>

namespace kiln::prims_tool {

namespace {

using prims::header_source;
using prims::part;
using prims::request;

// Runs tasks on a few threads; the first error wins and the rest are skipped.
result<void> run_all(std::vector<std::function<result<void>()>> const& tasks, unsigned threads) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::optional<error> failed;
    auto const work = [&] {
        for (auto i = next++; i < tasks.size(); i = next++) {
            {
                std::scoped_lock const lock{mutex};
                if (failed) return;
            }
            if (auto done = tasks[i](); !done) {
                std::scoped_lock const lock{mutex};
                if (!failed) failed = std::move(done).error();
            }
        }
    };
    {
        std::vector<std::jthread> pool;
        for (unsigned i = 0; i < threads; ++i) pool.emplace_back(work);
    }
    if (failed) return *std::move(failed);
    return {};
}

// Half-precision types read more headers than any shipped template.
std::vector<request> half_requests() {
    auto const half = prims::type_of(scalar::f16);
    auto const v = prims::type_of(scalar::u32);
    op const condition{"true"};
    using namespace prims;
    return {scan_request(scan_form::exclusive, half, plus),
            reduce_request(half, plus),
            segmented_reduce_request(half, plus),
            select_request(select_form::items, half, &condition),
            bounds_request(bound_side::lower, half, less),
            radix_sort_request(half, v, sort_order::ascending, item_range::ordinary),
            merge_sort_request(half, v, less, item_range::ordinary),
            unique_request(half, v, equal, item_range::ordinary)};
}

class builder {
public:
    builder(engine& with, product_plan const& plan) : engine_{with}, plan_{plan} {}

    result<std::vector<product_report>> run() {
        std::error_code failed;
        std::filesystem::create_directories(plan_.folder, failed);
        // What an earlier build left would be found as shipped, and shipped things do not tell what they were made from.
        for (auto const a : plan_.template_archs)
            std::filesystem::remove(plan_.folder / prims::template_file_name(a), failed);
        plan_tasks();
        KILN_CHECK(run_all(tasks_, plan_.threads));
        KILN_CHECK(write_bundle("cubins.kiln", cubins_));
        for (auto& [a, templates] : templates_) KILN_CHECK(write_bundle(prims::template_file_name(a), templates));
        KILN_CHECK(write_headers());
        return std::move(reports_);
    }

private:
    void plan_tasks() {
        // The longest first: sorts take several times what bounds take.
        for (auto const a : plan_.cubin_archs) {
            for (auto at = prims::named_requests().rbegin(); at != prims::named_requests().rend(); ++at) {
                tasks_.emplace_back([this, a, &what = at->what] { return make_cubin(what, a); });
            }
        }
        for (auto const a : plan_.template_archs) {
            for (auto& what : prims::template_requests()) {
                tasks_.emplace_back([this, a, what = std::move(what)] { return make_template(what, a); });
            }
        }
        if (plan_.cubin_archs.empty()) return;
        for (auto& what : half_requests()) {
            tasks_.emplace_back(
                [this, a = plan_.cubin_archs.back(), what = std::move(what)] { return read_headers(what, a); });
        }
    }

    result<void> make_cubin(request const& what, arch a) {
        target const t{a, artifact_kind::cubin};
        KILN_TRY(auto const skeleton, prims::obtain_template(engine_, what, t, header_source::machine, {}));
        KILN_TRY(auto const image, prims::obtain(engine_, what, t, prims::closeness::exact, prim_route::linked, {}));
        auto const at = prims::address_of(prims::family_of(what, part::whole), t, prims::any_toolchain);
        std::scoped_lock const lock{mutex_};
        note_headers(*skeleton.what);
        return cubins_.add(prims::entry_of(*image.got.what, at, what.name));
    }

    result<void> make_template(request const& what, arch a) {
        target const t{a, artifact_kind::ltoir};
        KILN_TRY(auto const made, prims::obtain_template(engine_, what, t, header_source::machine, {}));
        auto const at = prims::address_of(prims::family_of(what, part::skeleton), t, prims::any_toolchain);
        std::scoped_lock const lock{mutex_};
        note_headers(*made.what);
        return templates_[a].add(prims::entry_of(*made.what, at, made.what->unit));
    }

    result<void> read_headers(request const& what, arch a) {
        KILN_TRY(auto const made,
                 engine_.artifact_sync(prims::device_unit(what, part::skeleton, header_source::machine),
                                       {a, artifact_kind::ltoir}));
        std::scoped_lock const lock{mutex_};
        note_headers(*made.what);
        return {};
    }

    void note_headers(artifact const& a) {
        for (auto const& d : a.dependencies) {
            if (d.from == dependency::root::toolkit && !d.content.empty()) headers_.insert({d.path, d.content});
        }
    }

    result<void> write_bundle(std::string const& name, store::bundle_writer& bundle) {
        bundle.set("title", "Kiln's own primitives");
        KILN_CHECK(bundle.write(plan_.folder / name));
        return report(name, bundle.size());
    }

    result<void> write_headers() {
        compile::include_roots roots;
        roots.toolkit = engine_.internals().tools().toolkit_includes;
        std::vector<header> files;
        for (auto const& [path, digest] : headers_) {
            dependency const d{.from = dependency::root::toolkit, .index = 0, .path = path, .content = digest};
            KILN_TRY(auto const text, base::read_file(roots.locate(d)));
            if (!text || base::sha256_of(*text).hex() != digest) {
                return fail(errc::io, "{} changed while it was being packed; build again", path);
            }
            files.push_back({path, std::string{base::as_text(*text)}});
        }
        KILN_CHECK(base::replace_file(plan_.folder / "headers.zst", prims::pack(files), 0644));
        return report("headers.zst", files.size());
    }

    result<void> report(std::string const& name, std::size_t entries) {
        std::error_code failed;
        auto const bytes = std::filesystem::file_size(plan_.folder / name, failed);
        if (failed) return io_error(name, failed.value());
        reports_.push_back({name, entries, bytes});
        return {};
    }

    engine& engine_;
    product_plan const& plan_;
    std::vector<std::function<result<void>()>> tasks_;
    std::mutex mutex_;                                            // the members below, while the tasks run
    store::bundle_writer cubins_{store::packing::where_it_pays};  // part of the library: read once, mapped by all
    std::map<arch, store::bundle_writer> templates_;
    std::set<std::pair<std::string, std::string>> headers_;
    std::vector<product_report> reports_;
};

}  // namespace

result<std::vector<product_report>> build_products(engine& with, product_plan const& plan) {
    return builder{with, plan}.run();
}

}  // namespace kiln::prims_tool
