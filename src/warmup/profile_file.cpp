// SPDX-License-Identifier: Apache-2.0
#include "warmup/profile_file.hpp"

#include "base/check.hpp"
#include "base/directory.hpp"
#include "base/files.hpp"

#include <algorithm>

namespace kiln::warmup {

namespace {

constexpr std::string_view magic = "KILNPROF";
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 12;
constexpr std::size_t most_bytes = std::size_t{1} << 30;

enum record : std::uint8_t { process_record = 1, recipe_record = 2, use_record = 3 };

base::bytes framed(base::byte_writer body) {
    auto const data = std::move(body).take();
    base::byte_writer w;
    w.put_u32(static_cast<std::uint32_t>(data.size()));
    w.put_u64(base::sha256_of(data).prefix());
    w.put_raw(data);
    return std::move(w).take();
}

void put(base::byte_writer& w, base::digest const& d) {
    w.put_raw({reinterpret_cast<std::byte const*>(d.bytes.data()), d.bytes.size()});
}

base::digest get_digest(base::byte_reader& r) {
    base::digest out;
    auto const raw = r.get_raw(out.bytes.size());
    if (raw.size() == out.bytes.size())
        std::ranges::transform(raw, out.bytes.begin(), [](std::byte b) { return static_cast<std::uint8_t>(b); });
    return out;
}

// False: a record that cannot be what it says.
bool take(profile& out, base::byte_span body) {
    base::byte_reader r{body};
    switch (r.get_u8()) {
        case process_record: {
            process_note p;
            p.version = r.get_text();
            p.program = r.get_text();
            p.pid = r.get_u64();
            p.unix_seconds = r.get_u64();
            if (!r.done()) return false;
            out.processes.push_back(std::move(p));
            return true;
        }
        case recipe_record: {
            engine_detail::recipe what;
            what.kind = r.get_text();
            what.name = r.get_text();
            auto const data = r.get_blob();
            if (!r.done()) return false;
            what.body.assign(data.begin(), data.end());
            auto const id = what.id();
            out.recipes.emplace(id, std::move(what));
            return true;
        }
        case use_record: {
            profile_use u;
            u.recipe = get_digest(r);
            u.arch = r.get_text();
            u.kind = r.get_text();
            u.key = r.get_text();
            u.from = r.get_text();
            u.ns = r.get_u64();
            u.compile_ms = r.get_f64();
            u.waited_ms = r.get_f64();
            if (!r.done() || !out.recipes.contains(u.recipe)) return false;
            if (!out.has(u.recipe, u.arch, u.kind)) out.uses.push_back(std::move(u));
            return true;
        }
        default: ++out.unknown_records; return true;
    }
}

}  // namespace

bool profile::has(base::digest const& recipe, std::string_view arch, std::string_view kind) const {
    return std::ranges::any_of(
        uses, [&](profile_use const& u) { return u.recipe == recipe && u.arch == arch && u.kind == kind; });
}

void profile::merge(profile const& other) {
    processes.insert(processes.end(), other.processes.begin(), other.processes.end());
    recipes.insert(other.recipes.begin(), other.recipes.end());
    torn_bytes += other.torn_bytes;
    unknown_records += other.unknown_records;
    std::map<std::tuple<base::digest, std::string, std::string>, profile_use> all;
    for (auto const* const from : {&std::as_const(uses), &other.uses}) {
        for (auto const& u : *from) {
            auto const [at, fresh] = all.try_emplace({u.recipe, u.arch, u.kind}, u);
            if (fresh) continue;
            auto& known = at->second;
            if (u.ns < known.ns) {
                known.ns = u.ns;
                known.from = u.from;
                known.key = u.key;
            }
            known.compile_ms = std::max(known.compile_ms, u.compile_ms);
            known.waited_ms = std::max(known.waited_ms, u.waited_ms);
        }
    }
    uses.clear();
    for (auto& [key, u] : all) uses.push_back(std::move(u));
    std::ranges::stable_sort(uses, {}, [](profile_use const& u) { return std::tuple{u.ns, u.recipe, u.arch, u.kind}; });
}

std::map<base::digest, double> profile::costs_ms() const {
    std::map<base::digest, double> out;
    for (auto const& u : uses) out[u.recipe] = std::max(out[u.recipe], u.compile_ms);
    return out;
}

base::bytes encode_header() {
    base::byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(version);
    return std::move(w).take();
}

base::bytes encode(process_note const& what) {
    base::byte_writer w;
    w.put_u8(process_record);
    w.put_text(what.version);
    w.put_text(what.program);
    w.put_u64(what.pid);
    w.put_u64(what.unix_seconds);
    return framed(std::move(w));
}

base::bytes encode(engine_detail::recipe const& what) {
    base::byte_writer w;
    w.put_u8(recipe_record);
    w.put_text(what.kind);
    w.put_text(what.name);
    w.put_blob(what.body);
    return framed(std::move(w));
}

base::bytes encode(profile_use const& what) {
    base::byte_writer w;
    w.put_u8(use_record);
    put(w, what.recipe);
    w.put_text(what.arch);
    w.put_text(what.kind);
    w.put_text(what.key);
    w.put_text(what.from);
    w.put_u64(what.ns);
    w.put_f64(what.compile_ms);
    w.put_f64(what.waited_ms);
    return framed(std::move(w));
}

base::bytes encode(profile const& what) {
    auto out = encode_header();
    auto const add = [&](base::bytes const& more) { out.insert(out.end(), more.begin(), more.end()); };
    for (auto const& p : what.processes) add(encode(p));
    for (auto const& [id, r] : what.recipes) add(encode(r));
    for (auto const& u : what.uses) add(encode(u));
    return out;
}

result<profile> decode_profile(base::byte_span data, std::string_view origin) {
    if (data.size() < header_bytes || base::as_text(data.first(magic.size())) != magic)
        return fail(errc::corrupt, "{}: not a Kiln profile; record one with 'kiln record -o FILE -- command'", origin);
    base::byte_reader head{data.subspan(magic.size())};
    if (auto const v = head.get_u32(); v != version)
        return fail(errc::unsupported, "{}: profile format {}, this version of Kiln reads {}; record it again", origin,
                    v, version);
    profile out;
    auto rest = data.subspan(header_bytes);
    while (!rest.empty()) {
        base::byte_reader r{rest};
        auto const length = r.get_u32();
        auto const check = r.get_u64();
        auto const body = r.get_raw(length);
        // What follows a damaged record cannot be trusted to begin where it seems to.
        if (!r.ok() || length == 0 || base::sha256_of(body).prefix() != check || !take(out, body)) {
            out.torn_bytes = rest.size();
            break;
        }
        rest = rest.last(r.left());
    }
    return out;
}

result<profile> read_profile(std::filesystem::path const& file) {
    KILN_TRY(auto const data, base::read_file(file, most_bytes));
    if (!data) return fail(errc::not_found, "{}: no such profile", file.native());
    return decode_profile(*data, file.native());
}

result<void> write_profile(std::filesystem::path const& file, profile const& what) {
    return base::replace_file(file, encode(what), 0644);
}

std::vector<std::filesystem::path> recordings_of(std::filesystem::path const& file) {
    std::vector<std::filesystem::path> out;
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) out.push_back(file);
    auto const folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
    auto const prefix = file.filename().native() + ".";
    std::vector<std::filesystem::path> more;
    (void)base::for_each_name(folder, [&](std::string_view name) {
        if (!name.starts_with(prefix)) return;
        auto const tail = name.substr(prefix.size());
        auto const dash = tail.find('-');
        bool const is_ours = dash != tail.npos && dash > 0 && tail.size() == dash + 17 &&
                             tail.substr(0, dash).find_first_not_of("0123456789") == tail.npos;
        if (is_ours) more.push_back(folder / name);
    });
    std::ranges::sort(more);
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

result<profile> read_recordings(std::filesystem::path const& file) {
    profile out;
    std::optional<error> why;
    for (auto const& one : recordings_of(file)) {
        auto read = read_profile(one);
        if (read) out.merge(*read);
        else why = std::move(read).error();
    }
    if (out.recipes.empty() && why) return *std::move(why);
    return out;
}

}  // namespace kiln::warmup
