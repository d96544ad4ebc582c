// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibration.hpp"

#include "base/bytes.hpp"
#include "base/config.hpp"
#include "base/files.hpp"
#include "base/fork_guard.hpp"
#include "base/text.hpp"
#include "runtime/execution.hpp"
#include "store/store.hpp"

#include <mutex>
#include <nlohmann/json.hpp>

namespace kiln::runtime {

namespace {

constexpr int format = 1;
constexpr std::size_t most_bytes = std::size_t{1} << 20;

struct remembered {
    // One reads, which may start the driver, and others wait for him. fork() does not wait for that, and a child reads itself.
    base::per_process<std::mutex> reading{[] { return std::make_unique<std::mutex>(); }};
    base::forkable_mutex mutex;  // the rest, within the other
    bool read = false;
    std::optional<calibration> found;
};
remembered& memory() {
    static constinit base::made_once<remembered> one;
    return one.get([] { return std::make_unique<remembered>(); });
}

// Of another type is as good as absent: whoever wrote the file must not end the program that reads it.
std::string text_at(nlohmann::json const& object, char const* name) {
    auto const at = object.is_object() ? object.find(name) : object.end();
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}
int number_at(nlohmann::json const& object, char const* name) {
    auto const at = object.find(name);
    return at != object.end() && at->is_number_integer() ? at->get<int>() : 0;
}

// The GPU is asked for only where something was ever calibrated: a small call must not start the driver.
std::optional<calibration> read_own() {
    auto const where = store::options_from(base::config::load()).disk;
    std::error_code none;
    if (!where || std::filesystem::is_empty(where->root / "calibration", none) || none) return {};
    auto const& gpu = gpu_answer();
    if (!gpu) return {};
    auto found = read_calibration(calibration_file(where->root, *gpu));
    return found ? *std::move(found) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> calibration::find(std::string_view operation, call_shape shape) const {
    auto const at = crossovers.find({std::string{operation}, shape});
    if (at == crossovers.end()) return {};
    return at->second;
}

std::filesystem::path calibration_file(std::filesystem::path const& cache, device_info const& gpu) {
    return cache / "calibration" / fmt::format("{}-{}.json", gpu.uuid_text(), gpu.driver_version);
}

result<calibration> parse_calibration(std::string_view text, std::string_view origin) {
    auto const tree = nlohmann::json::parse(text, nullptr, false);
    if (!tree.is_object() || number_at(tree, "format") != format)
        return fail(errc::corrupt, "{}: not a calibration of this version; run 'kiln calibrate' again", origin);
    calibration out{.device = text_at(tree, "device"), .driver = number_at(tree, "driver"), .crossovers = {}};
    auto const rows = tree.find("crossovers");
    if (rows == tree.end() || !rows->is_array()) return out;
    for (auto const& row : *rows) {
        auto const operation = text_at(row, "operation");
        auto const items = row.is_object() ? row.find("items") : row.end();
        if (operation.empty() || items == row.end() || !items->is_number_unsigned()) continue;
        auto const shape = text_at(row, "shape") == "broadcast" ? call_shape::broadcast : call_shape::pairwise;
        out.crossovers[{operation, shape}] = items->get<std::uint64_t>();
    }
    return out;
}

std::string text_of(calibration const& what) {
    auto rows = nlohmann::json::array();
    for (auto const& [of, items] : what.crossovers)
        rows.push_back({{"operation", of.first}, {"shape", name_of(of.second)}, {"items", items}});
    nlohmann::json const tree{
        {"format", format}, {"device", what.device}, {"driver", what.driver}, {"crossovers", std::move(rows)}};
    return base::json_text(tree, 2) + "\n";
}

result<std::optional<calibration>> read_calibration(std::filesystem::path const& file) {
    KILN_TRY(auto const text, base::read_file(file, most_bytes));
    if (!text) return std::optional<calibration>{};
    KILN_TRY(auto found, parse_calibration(base::as_text(*text), file.native()));
    return std::optional{std::move(found)};
}

result<void> write_calibration(std::filesystem::path const& file, calibration const& what) {
    KILN_CHECK(base::make_directories(file.parent_path()));
    return base::replace_file(file, base::as_bytes(text_of(what)));
}

std::optional<std::uint64_t> measured(std::string_view operation, call_shape shape) {
    auto& m = memory();
    // Null: nobody has read it.
    auto const known = [&]() -> std::optional<std::optional<std::uint64_t>> {
        std::scoped_lock const lock{m.mutex};
        if (!m.read) return std::nullopt;
        return m.found ? m.found->find(operation, shape) : std::nullopt;
    };
    if (auto const out = known()) return *out;
    std::scoped_lock const turn{m.reading.get()};
    if (auto const out = known()) return *out;
    auto fresh = read_own();
    std::scoped_lock const lock{m.mutex};
    m.found = std::move(fresh);
    m.read = true;
    return m.found ? m.found->find(operation, shape) : std::nullopt;
}

void forget_calibration() {
    auto& m = memory();
    std::scoped_lock const turn{m.reading.get()};
    std::scoped_lock const lock{m.mutex};
    m.read = false;
    m.found.reset();
}

}  // namespace kiln::runtime
