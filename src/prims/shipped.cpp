// SPDX-License-Identifier: Apache-2.0
#include "prims/shipped.hpp"

#include "compile/job.hpp"
#include "engine/lookup.hpp"
#include "prims/products.hpp"

#include <kiln/version.hpp>

#include <dlfcn.h>
#include <mutex>

namespace kiln::prims {

namespace {

using tier_ptr = std::shared_ptr<store::tier>;

// A damaged product costs an event; everything can still be compiled.
tier_ptr usable(result<std::shared_ptr<store::bundle_tier>> opened, std::string_view what) {
    if (opened) return *std::move(opened);
    event_log::process().emit({.kind = event_kind::fault,
                               .reason = "bundle",
                               .detail = fmt::format("{}: {}", what, opened.error().message())});
    return nullptr;
}

tier_ptr const& embedded() {
    static tier_ptr const tier = [] {
        auto const data = embedded_cubins();
        return data.empty() ? nullptr
                            : usable(store::bundle_tier::from_memory(data, "libkiln"), "the library's own cubins");
    }();
    return tier;
}

// Folders to look in: beside the library this code was loaded from, or in the prefix of the program it is linked into.
std::vector<std::filesystem::path> product_folders() {
    Dl_info about{};
    if (::dladdr(reinterpret_cast<void const*>(&product_folders), &about) == 0 || about.dli_fname == nullptr) return {};
    std::error_code ignored;
    auto file = std::filesystem::canonical(about.dli_fname, ignored);
    if (file.empty()) file = std::filesystem::canonical("/proc/self/exe", ignored);
    std::vector<std::filesystem::path> out{file.parent_path() / "kiln"};
    // bin/ and libexec/kiln/.
    for (auto const& prefix : {file.parent_path().parent_path(), file.parent_path().parent_path().parent_path()}) {
        for (auto const* const libraries : {KILN_INSTALL_LIBDIR, "lib"}) out.push_back(prefix / libraries / "kiln");
    }
    return out;
}

tier_ptr template_bundle(arch a) {
    static std::mutex mutex;
    static std::map<arch, tier_ptr> opened;
    std::scoped_lock const lock{mutex};
    auto const [at, fresh] = opened.try_emplace(a);
    if (!fresh) return at->second;
    std::error_code ignored;
    for (auto const& folder : product_folders()) {
        auto const file = folder / template_file_name(a);
        if (!std::filesystem::is_regular_file(file, ignored)) continue;
        at->second = usable(store::bundle_tier::open(file), file.native());
        break;
    }
    return at->second;
}

std::optional<obtained> decoded(store::entry const& found, provenance from) {
    auto a = compile::decode_artifact(found.payload);
    if (!a) return std::nullopt;
    return obtained{.what = std::make_shared<artifact const>(*std::move(a)), .from = from, .ms = 0, .note = {}};
}

std::optional<obtained> find_in(store::tier* tier, store::address const& at, store::expectation const& expected) {
    if (tier == nullptr) return std::nullopt;
    auto const found = tier->find(at, expected);
    return found && found->hit ? decoded(*found->hit, provenance::bundle) : std::nullopt;
}

}  // namespace

store::address address_of(base::digest const& family, target const& t, std::string_view toolchain) {
    store::address out{.family = family, .request = {}, .key = {}};
    out.request = base::key_builder{"kiln.prims.request.v1"}
                      .add("family", family)
                      .add("arch", t.arch.name())
                      .add("kind", kiln::name_of(t.kind))
                      .add("toolchain", toolchain)
                      .finish();
    out.key = base::key_builder{"kiln.prims.key.v1"}.add("request", out.request).finish();
    return out;
}

store::entry entry_of(artifact const& a, store::address const& at, std::string_view name) {
    auto copy = a;
    copy.unit = name;
    copy.key = at.key.hex();
    copy.dependencies.clear();
    store::entry out{.about = {.at = at,
                               .name = std::string{name},
                               .target = a.target.arch.name(),
                               .kind = std::string{kiln::name_of(a.target.kind)},
                               .toolchain = a.toolchain,
                               .producer = fmt::format("kiln {}", kiln::version),
                               .licence = "Apache-2.0 WITH LLVM-exception"},
                     .payload = compile::encode(copy)};
    return out;
}

std::optional<obtained> find_at(store::store& where, store::address const& at, target const& t) {
    auto const found = where.find(at, {t.arch.name(), std::string{kiln::name_of(t.kind)}, {}});
    if (!found) return std::nullopt;
    auto out = decoded(*found.hit, engine_detail::provenance_of(found.where));
    if (!out) where.reject(at);
    return out;
}

std::optional<obtained> find_shipped(store::store& more, base::digest const& family, target const& t) {
    auto const at = address_of(family, t, any_toolchain);
    store::expectation const expected{t.arch.name(), std::string{kiln::name_of(t.kind)}, {}};
    auto const own = t.kind == artifact_kind::cubin ? embedded() : template_bundle(t.arch);
    if (auto found = find_in(own.get(), at, expected)) return found;
    return find_at(more, at, t);
}

std::vector<target> nearest_targets(arch device) {
    std::vector<target> out{{device, artifact_kind::cubin}};
    for (auto archs = shipped_archs(); !archs.empty(); archs.pop_back()) {
        target const t{archs.back(), artifact_kind::cubin};
        if (t.arch != device && can_run(t, device)) out.push_back(t);
    }
    return out;
}

std::string template_file_name(arch a) { return fmt::format("prims-{}.kiln", a.name()); }

std::vector<arch> shipped_archs() {
    std::vector<arch> out;
    for (auto const number : {75, 80, 86, 89, 90, 100, 120}) {
        out.push_back(arch::of_device(number / 10, number % 10));
    }
    return out;
}

}  // namespace kiln::prims
