// SPDX-License-Identifier: Apache-2.0
// What ships of the primitives: ready cubins and the CCCL headers that were read on the way in the library, templates beside
// it. The compile test for seven architectures is this step.
#include "prims/tool/prims_tool.hpp"

#include "base/files.hpp"
#include "compile/includes.hpp"
#include "engine/engine_state.hpp"
#include "prims/catalogue.hpp"
#include "prims/shipped.hpp"
#include "prims/sources.hpp"

#include <set>

namespace kiln::prims {

namespace {

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
    builder(engine& with, workshop::product_plan const& plan, workshop::product_files& to)
        : engine_{with}, plan_{plan}, to_{to} {}

    result<void> run() {
        to_.set("title", "Kiln's own primitives");
        plan_tasks();
        KILN_CHECK(workshop::run_all(tasks_, plan_.threads));
        return pack_headers();
    }

private:
    void plan_tasks() {
        // The longest first: sorts take several times what bounds take.
        for (auto const a : plan_.archs) {
            for (auto at = named_requests().rbegin(); at != named_requests().rend(); ++at) {
                tasks_.emplace_back([this, a, &what = at->what] { return make_cubin(what, a); });
            }
        }
        for (auto const a : plan_.archs_beside) {
            if (plan_.archs.empty()) break;  // another CUDA's templates: images of one are as good as the other's
            for (auto& what : sort_requests())
                tasks_.emplace_back([this, a, what = std::move(what)] { return make_sort(what, a); });
        }
        for (auto const a : plan_.archs_beside) {
            for (auto& what : template_requests()) {
                tasks_.emplace_back([this, a, what = std::move(what)] { return make_template(what, a); });
            }
        }
        if (plan_.archs.empty()) return;
        for (auto& what : half_requests()) {
            tasks_.emplace_back(
                [this, a = plan_.archs.back(), what = std::move(what)] { return read_headers(what, a); });
        }
    }

    // Linked, also where there is no operator: what headers define and nobody uses is then left out, and an image is a third of its size.
    result<store::entry_ptr> linked(request const& what, arch a) {
        target const t{a, artifact_kind::cubin};
        KILN_TRY(auto const skeleton, obtain_template(engine_, what, t, header_source::machine, {}));
        KILN_TRY(auto const image, obtain(engine_, what, t, closeness::exact, prim_route::linked, {}));
        note_headers(*skeleton.what);
        return store::entry_ptr{entry_at(shipped_address(family_of(what, part::whole), t), *image.got.what, engine_)};
    }

    result<void> make_cubin(request const& what, arch a) {
        KILN_TRY(auto const made, linked(what, a));
        return to_.add(*made);
    }

    result<void> make_sort(request const& what, arch a) {
        KILN_TRY(auto const made, linked(what, a));
        return to_.add_beside(a, *made);
    }

    // By the same CUDA as the linker.
    result<void> make_template(request const& what, arch a) {
        target const t{a, artifact_kind::ltoir};
        KILN_TRY(auto const made, obtain_template(engine_, what, t, header_source::machine, {}));
        note_headers(*made.what);
        return to_.add_beside(a, *entry_at(template_address(family_of(what, part::skeleton), t, linker_major(engine_)),
                                           *made.what, engine_));
    }

    result<void> read_headers(request const& what, arch a) {
        KILN_TRY(auto const made, engine_.artifact_sync(device_unit(what, part::skeleton, header_source::machine),
                                                        {a, artifact_kind::ltoir}));
        note_headers(*made.what);
        return {};
    }

    void note_headers(artifact const& a) {
        std::scoped_lock const lock{mutex_};
        for (auto const& d : a.dependencies) {
            if (d.from == dependency::root::toolkit && !d.content.empty()) headers_.insert({d.path, d.content});
        }
    }

    result<void> pack_headers() {
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
        to_.add_file("headers.zst", prims::pack(files), files.size());
        return {};
    }

    engine& engine_;
    workshop::product_plan const& plan_;
    workshop::product_files& to_;
    std::vector<workshop::task> tasks_;
    std::mutex mutex_;
    std::set<std::pair<std::string, std::string>> headers_;
};

}  // namespace

result<void> prims_tool::make_products(engine& with, workshop::pack const&, workshop::product_plan const& plan,
                                       workshop::product_files& to) const {
    return builder{with, plan, to}.run();
}

}  // namespace kiln::prims
