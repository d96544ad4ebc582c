// SPDX-License-Identifier: Apache-2.0
#include "engine/shipped_files.hpp"

#include "base/directory.hpp"
#include "base/own_file.hpp"

#include <algorithm>

namespace kiln::engine_detail {

namespace {

class shipped_files final : public store::tier {
public:
    shipped_files(event_log& events, folder_list folders) : events_{events}, folders_{folders} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "bundle"; }
    [[nodiscard]] store::tier_traits traits() const noexcept override { return store::bundle_tier::shipped; }

    [[nodiscard]] result<store::lookup> find(store::address const& at, store::expectation const& expected) override {
        store::lookup last;
        for (auto const& b : *opened()) {
            KILN_TRY(last, b->find(at, expected));
            if (last.hit || store::is_rejection(last.why)) break;
        }
        return last;
    }

    [[nodiscard]] result<std::vector<store::summary>> list(base::digest const& family,
                                                           std::optional<base::digest> const& request) override {
        std::vector<store::summary> out;
        for (auto const& b : *opened()) {
            KILN_TRY(auto some, b->list(family, request));
            std::ranges::move(some, std::back_inserter(out));
        }
        return out;
    }

    [[nodiscard]] result<store::put_outcome> put(store::entry_ptr const&) override {
        return fail(errc::forbidden, "what ships with Kiln is not written to");
    }

    void reject(store::address const& at) override {
        for (auto const& b : *opened()) b->reject(at);
    }

private:
    using bundles = std::vector<std::shared_ptr<store::bundle_tier>>;

    // Threads that come together may each open them; the first set is kept. Not under the lock, which is a leaf.
    [[nodiscard]] std::shared_ptr<bundles const> opened() {
        {
            std::lock_guard const lock{mutex_};
            if (bundles_) return bundles_;
        }
        auto made = open();
        std::lock_guard const lock{mutex_};
        if (!bundles_) bundles_ = std::move(made);
        return bundles_;
    }

    [[nodiscard]] std::shared_ptr<bundles const> open() const {
        std::vector<std::filesystem::path> files;
        for (auto const& folder : folders_()) {
            (void)base::for_each_name(folder, [&](std::string_view name) {
                if (name.ends_with(".kiln")) files.push_back(folder / name);
            });
            if (!files.empty()) break;
        }
        std::ranges::sort(files);
        auto out = std::make_shared<bundles>();
        auto const own = base::file_with(reinterpret_cast<void const*>(&make_shipped_files));
        for (auto const& file : files) {
            auto opened =
                base::belongs_to(own, file)
                    ? store::bundle_tier::open(file)
                    : fail(errc::forbidden, "{}: others could have put it there, so it is not used", file.native());
            if (opened) out->push_back(*std::move(opened));
            else
                events_.emit({.kind = event_kind::rejected,
                              .unit = file.filename().native(),
                              .reason = "bundle",
                              .detail = opened.error().message()});
        }
        return out;
    }

    event_log& events_;
    folder_list folders_;
    base::forkable_mutex mutex_;
    std::shared_ptr<bundles const> bundles_;  // null: not open yet
};

}  // namespace

std::shared_ptr<store::tier> make_shipped_files(event_log& events, folder_list folders) {
    return std::make_shared<shipped_files>(events, folders);
}

}  // namespace kiln::engine_detail
