// SPDX-License-Identifier: Apache-2.0
#include "workshop/products.hpp"

#include "base/files.hpp"

#include <atomic>
#include <optional>
#include <thread>

namespace kiln::workshop {

void product_files::set(std::string const& name, std::string const& value) {
    std::scoped_lock const lock{mutex_};
    facts_[name] = value;
}

result<void> product_files::add(store::entry const& what) {
    std::scoped_lock const lock{mutex_};
    return inside_.add(what);
}

result<void> product_files::add_beside(arch a, store::entry const& what) {
    std::scoped_lock const lock{mutex_};
    return beside_.try_emplace(a, store::packing::where_it_pays).first->second.add(what);
}

void product_files::add_file(std::string name, base::bytes data, std::size_t entries) {
    std::scoped_lock const lock{mutex_};
    files_[std::move(name)] = {std::move(data), entries};
}

result<std::vector<product_report>> product_files::write(std::string_view pack, places const& to) const {
    std::scoped_lock const lock{mutex_};
    std::vector<product_report> out;
    auto const write_one = [&](std::filesystem::path const& file, base::bytes const& data,
                               std::size_t entries) -> result<void> {
        std::error_code failed;
        std::filesystem::create_directories(file.parent_path(), failed);
        out.push_back({file.filename().native(), entries, data.size()});
        if (auto const there = base::read_file(file, data.size() + 1); there && *there && **there == data) return {};
        return base::replace_file(file, data, 0644);
    };
    auto const write_bundle = [&](std::filesystem::path const& file, store::bundle_writer bundle) -> result<void> {
        for (auto const& [name, value] : facts_) bundle.set(name, value);
        KILN_TRY(auto const data, bundle.encode());
        return write_one(file, data, bundle.size());
    };
    KILN_CHECK(write_bundle(to.inside / (std::string{pack} + ".kiln"), inside_));
    for (auto const& [name, file] : files_) KILN_CHECK(write_one(to.inside / name, file.data, file.entries));
    for (auto const& [a, bundle] : beside_)
        KILN_CHECK(write_bundle(to.beside / name_beside(pack, a, to.suffix), bundle));
    return out;
}

std::string name_beside(std::string_view pack, arch a, std::string_view suffix) {
    return fmt::format("{}-{}{}.kiln", pack, a.name(), suffix);
}

result<void> run_all(std::vector<task> const& tasks, unsigned threads) {
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

}  // namespace kiln::workshop
