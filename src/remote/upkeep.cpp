// SPDX-License-Identifier: Apache-2.0
#include "remote/upkeep.hpp"

#include "remote/redis_server.hpp"

#include <array>
#include <fstream>
#include <future>

namespace kiln::remote {

namespace {

constexpr std::string_view object_prefix = "kiln:1:";
constexpr std::size_t most_pages = 1 << 20;

// What an object is called: `kiln:1:<64 digits>` in Redis, `<2 digits>/<62 digits>` in a folder.
std::optional<digest> name_in(std::string_view key) { return digest::from_hex(key.substr(object_prefix.size())); }
std::optional<digest> name_in(std::filesystem::path const& file) {
    return digest::from_hex(file.parent_path().filename().native() + file.filename().native());
}

// A lease ends by itself, and whatever else is there under such a name is not ours.
bool is_object(std::string_view key) { return key.starts_with(object_prefix) && name_in(key).has_value(); }

// Whoever asks for this entry asks under one of these names.
bool is_asked_for_as(digest const& name, std::string_view space, store::label const& about) {
    if (name == family_name(space, about.at.family, about.target, about.kind)) return true;
    for (unsigned slot = 0; slot < slots; ++slot) {
        if (name == object_name(space, about.at.request, slot)) return true;
    }
    return false;
}

bool begins_as_packet(std::filesystem::path const& file) {
    std::array<char, packet_magic.size()> front{};
    std::ifstream in{file, std::ios::binary};
    return in.read(front.data(), front.size()) && std::string_view{front.data(), front.size()} == packet_magic;
}

checked_object check_packet(base::bytes const& packet, trust const& rule, std::optional<digest> const& name) {
    if (packet == probe_packet()) return {};
    auto const outer = decode_packet(packet);
    if (!outer.parts) return {.why = outer.why};
    checked_object out;
    for (auto const& s : outer.parts->signatures) out.signers.push_back(s.by);
    auto const entry = base::byte_span{packet}.subspan(outer.parts->front);
    out.why = mistrusted(rule, outer.parts->signatures, entry);
    if (out.why) return out;
    auto const decoded = store::decode_entry({entry.begin(), entry.end()});
    if (!decoded.what) out.why = decoded.why;
    else if (!name || (!rule.space.empty() && !is_asked_for_as(*name, rule.space, decoded.what->about)))
        out.why = miss::wrong_key;
    return out;
}

}  // namespace

struct upkeep::state {
    remote_options options;
    std::filesystem::path folder;  // empty: Redis
    reactor loop;
    std::unique_ptr<redis_server> server;

    ~state() {
        loop.stop([this] {
            if (server) server->close();
        });
    }
    // Asks on the reactor's thread and waits.
    template <class T, class Ask>
    result<T> call(Ask ask) {
        auto const there = std::make_shared<std::promise<T>>();
        auto got = there->get_future();
        if (!loop.post([ask, there] { ask([there](T v) { there->set_value(std::move(v)); }); }))
            return fail(errc::io, "no thread is left");
        if (got.wait_for(options.connect_timeout + options.timeout) != std::future_status::ready)
            return fail(errc::timeout, "{} does not answer", options.at.text());
        return got.get();
    }
    result<std::vector<kept_object>> list_redis();
    result<std::vector<kept_object>> list_folder() const;
};

upkeep::upkeep(std::unique_ptr<state> s) : state_{std::move(s)} {}
upkeep::upkeep(upkeep&&) noexcept = default;
upkeep::~upkeep() = default;

result<upkeep> upkeep::open(remote_options const& options) {
    if (!options.at.is_redis()) {
        auto const* const way = options.at.by == scheme::s3 ? "give the bucket a lifecycle rule"
                                : options.layout == layout::bazel
                                    ? "bazel-remote bounds itself by --max_size"
                                    : "run it on the server with --dir FOLDER, or let the server remove old files";
        return fail(errc::unsupported, "{} cannot be asked for what it has; {}", options.at.text(), way);
    }
    auto s = std::make_unique<state>();
    s->options = options;
    s->server = std::make_unique<redis_server>(s->loop, options);
    return upkeep{std::move(s)};
}

upkeep upkeep::of_folder(std::filesystem::path folder, remote_options const& options) {
    auto s = std::make_unique<state>();
    s->options = options;
    s->folder = std::move(folder);
    return upkeep{std::move(s)};
}

result<std::vector<kept_object>> upkeep::state::list_redis() {
    std::vector<kept_object> out;
    std::string cursor = "0";
    std::size_t pages = 0;
    do {
        if (++pages > most_pages) return fail(errc::io, "{} does not come to an end", options.at.text());
        KILN_TRY(auto const page, call<redis_server::page>([this, cursor](auto then) { server->scan(cursor, then); }));
        if (page.why) return fail(errc::io, "{}: {}", options.at.text(), page.why.detail);
        for (auto const& key : page.keys) {
            if (!is_object(key)) continue;
            KILN_TRY(auto const idle,
                     call<redis_server::idleness>([this, key](auto then) { server->idle(key, then); }));
            if (idle.why) return fail(errc::io, "{}: {}", options.at.text(), idle.why.detail);
            if (!idle.gone) out.push_back({.key = key, .age = idle.seconds});
        }
        cursor = page.cursor;
    } while (cursor != "0");
    return out;
}

// Only `<folder>/<2 digits>/<62 digits>`. Others keep their things under such names too (git with SHA-256), perhaps further down; so what
// is no packet is told apart from what is.
result<std::vector<kept_object>> upkeep::state::list_folder() const {
    std::vector<kept_object> out;
    std::error_code why;
    auto const now = std::filesystem::file_time_type::clock::now();
    std::filesystem::recursive_directory_iterator at{folder, why};
    for (decltype(at) const end; !why && at != end; at.increment(why)) {
        bool const is_folder = at->symlink_status(why).type() == std::filesystem::file_type::directory;
        bool const is_shard = is_folder && at.depth() == 0 && at->path().filename().native().size() == 2;
        if (is_folder && !is_shard) at.disable_recursion_pending();
        if (is_folder || at.depth() != 1 || !name_in(at->path())) continue;
        if (at->symlink_status(why).type() != std::filesystem::file_type::regular) continue;
        auto const written = at->last_write_time(why);
        auto const age = std::chrono::duration_cast<std::chrono::seconds>(now - written).count();
        out.push_back({.key = at->path().native(),
                       .age = age,
                       .bytes = at->file_size(why),
                       .what = begins_as_packet(at->path()) ? kind_of_object::packet : kind_of_object::foreign});
    }
    if (why) return io_error(folder.native(), why.value());
    return out;
}

result<std::vector<kept_object>> upkeep::list() {
    return state_->folder.empty() ? state_->list_redis() : state_->list_folder();
}

result<void> upkeep::remove(kept_object const& what) {
    if (what.what == kind_of_object::foreign)
        return fail(errc::forbidden, "{} is no packet of Kiln's, and is left as it is", what.key);
    if (!state_->folder.empty()) {
        std::error_code why;
        std::filesystem::remove(what.key, why);
        if (why) return io_error(what.key, why.value());
        return {};
    }
    KILN_TRY(auto const why, state_->call<failure>(
                                 [s = state_.get(), key = what.key](auto then) { s->server->remove_key(key, then); }));
    if (why) return fail(errc::io, "{}: {}", state_->options.at.text(), why.detail);
    return {};
}

result<checked_object> upkeep::check(kept_object const& what) {
    KILN_TRY(auto const rule, trust_of(state_->options));
    if (!state_->folder.empty()) {
        KILN_TRY(auto const data,
                 base::read_file(what.key, static_cast<std::size_t>(state_->options.most_entry) + (64 << 10)));
        if (!data) return checked_object{};
        return check_packet(*data, rule, name_in(std::filesystem::path{what.key}));
    }
    auto const name = name_in(std::string_view{what.key});
    if (!name) return checked_object{.why = miss::wrong_key};
    KILN_TRY(auto got, state_->call<remote::got>([s = state_.get(), name = *name](auto then) {
        s->server->get({name}, [then](std::size_t, remote::got g) { then(std::move(g)); });
    }));
    switch (got.state) {
        case presence::failed: return fail(errc::io, "{}: {}", state_->options.at.text(), got.why.detail);
        case presence::too_large: return checked_object{.why = miss::too_large};
        case presence::absent: return checked_object{};
        case presence::here: break;
    }
    return check_packet(got.packet, rule, name);
}

}  // namespace kiln::remote
