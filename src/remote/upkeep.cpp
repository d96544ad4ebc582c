// SPDX-License-Identifier: Apache-2.0
#include "remote/upkeep.hpp"

#include "remote/http_server.hpp"
#include "remote/redis_server.hpp"
#include "remote/rules.hpp"
#include "remote/s3_listing.hpp"

#include <array>
#include <fstream>
#include <future>
#include <unordered_set>

namespace kiln::remote {

namespace {

constexpr std::string_view object_prefix = "kiln:1:";

// What an object is called: `kiln:1:<64 digits>` in Redis, where a lease ends by itself and whatever else is there is not ours;
// `<2 digits>/<62 digits>` in a folder and in a bucket, there below a prefix.
std::optional<digest> name_in_redis(std::string_view key) {
    if (!key.starts_with(object_prefix)) return std::nullopt;
    return digest::from_hex(key.substr(object_prefix.size()));
}
std::optional<digest> name_in_bucket(std::string_view key, std::string_view prefix) {
    if (!key.starts_with(prefix)) return std::nullopt;
    key.remove_prefix(prefix.size());
    if (key.size() != 65 || key[2] != '/') return std::nullopt;
    return digest::from_hex(std::string{key.substr(0, 2)}.append(key.substr(3)));
}
std::optional<digest> name_in_folder(std::filesystem::path const& file) {
    return digest::from_hex(file.parent_path().filename().native() + file.filename().native());
}

// What a server says that it has. Some things it says twice; and one that never comes to an end is left before memory or patience are at
// theirs. Nothing is done to what it has before all of it is known.
class gathering {
public:
    explicit gathering(std::string where) : where_{std::move(where)} {}
    // Asked for by `token`, which no honest server gives twice.
    [[nodiscard]] result<void> begin_page(std::string const& token) {
        bool const is_new = tokens_.insert(base::sha256_of(token)).second;  // they may be long
        fruitless_ = brought_ && !new_ ? fruitless_ + 1 : 0;
        brought_ = new_ = false;
        if (!is_new || tokens_.size() > most_pages || fruitless_ > most_fruitless) return no_end();
        return {};
    }
    // Null: it is known already.
    [[nodiscard]] result<kept_object*> add(std::string key, digest const& name) {
        brought_ = true;
        if (!known_.insert(name).second) return nullptr;
        new_ = true;
        if (known_.size() > most_objects) return no_end();
        return &out_.emplace_back(kept_object{.key = std::move(key), .name = name});
    }
    void drop_last() { out_.pop_back(); }
    // A page of nothing at all, from a server whose pages are of something.
    void add_nothing() noexcept { brought_ = true; }
    [[nodiscard]] std::vector<kept_object> take() && { return std::move(out_); }

private:
    // A thousand things each: far more than anybody keeps.
    static constexpr std::size_t most_pages = 1 << 17;
    static constexpr std::size_t most_objects = 1 << 22;
    static constexpr std::size_t most_fruitless = 64;  // pages running, each of nothing but what is known
    [[nodiscard]] error no_end() const {
        return fail(errc::io, "{} does not come to an end of what it has; nothing was done", where_);
    }

    std::string where_;
    std::vector<kept_object> out_;
    std::unordered_set<digest, base::digest_hash> known_, tokens_;
    std::size_t fruitless_ = 0;
    bool brought_ = false, new_ = false;  // of the page
};

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

checked_object check_packet(base::bytes const& packet, trust const& rule, digest const& name) {
    if (packet == probe_packet()) return {.is_probe = true};
    auto const outer = decode_packet(packet);
    if (!outer.parts) return {.why = outer.why};
    checked_object out;
    auto const entry = base::byte_span{packet}.subspan(outer.parts->front);
    out.why = mistrusted(rule, outer.parts->signatures, entry);
    for (auto const& s : outer.parts->signatures) {
        // A packet that is believed because of one of them may name whomever it likes in the others.
        bool const is_his = out.why || !mistrusted(rule, std::span{&s, 1}, entry);
        if (is_his && std::ranges::find(out.signers, s.by) == out.signers.end()) out.signers.push_back(s.by);
    }
    if (out.why) return out;
    auto const decoded = store::decode_entry({entry.begin(), entry.end()});
    if (!decoded.what) out.why = decoded.why;
    else if (!rule.space.empty() && !is_asked_for_as(name, rule.space, decoded.what->about)) out.why = miss::wrong_key;
    return out;
}

}  // namespace

struct upkeep::state {
    remote_options options;
    std::filesystem::path folder;  // empty: a server
    reactor loop;
    std::unique_ptr<byte_server> server;
    redis_server* redis = nullptr;  // the same, where it is one

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
    result<std::vector<kept_object>> list_bucket() const;
    result<std::vector<kept_object>> list_folder() const;
};

upkeep::upkeep(std::unique_ptr<state> s) : state_{std::move(s)} {}
upkeep::upkeep(upkeep&&) noexcept = default;
upkeep::~upkeep() = default;

result<upkeep> upkeep::open(remote_options const& options) {
    bool const is_bucket = options.at.by == scheme::s3;
    if (!options.at.is_redis() && !is_bucket) {
        auto const* const way = options.layout == layout::bazel
                                    ? "bazel-remote bounds itself by --max_size"
                                    : "run it on the server with --dir FOLDER, or let the server remove old files";
        return fail(errc::unsupported, "{} cannot be asked for what it has; {}", options.at.text(), way);
    }
    auto s = std::make_unique<state>();
    s->options = options;
    if (is_bucket) {
        s->server = make_http_server(s->loop, options);
        return upkeep{std::move(s)};
    }
    auto redis = std::make_unique<redis_server>(s->loop, options);
    s->redis = redis.get();
    s->server = std::move(redis);
    return upkeep{std::move(s)};
}

upkeep upkeep::of_folder(std::filesystem::path folder, remote_options const& options) {
    auto s = std::make_unique<state>();
    s->options = options;
    s->folder = std::move(folder);
    return upkeep{std::move(s)};
}

result<std::vector<kept_object>> upkeep::state::list_redis() {
    gathering all{options.at.text()};
    std::string cursor = "0";
    do {
        KILN_CHECK(all.begin_page(cursor));
        KILN_TRY(auto const page, call<redis_server::page>([this, cursor](auto then) { redis->scan(cursor, then); }));
        if (page.why) return fail(errc::io, "{}: {}", options.at.text(), page.why.detail);
        for (auto const& key : page.keys) {
            auto const name = name_in_redis(key);
            if (!name) continue;
            KILN_TRY(auto* const one, all.add(key, *name));
            if (one == nullptr) continue;
            KILN_TRY(auto const idle, call<redis_server::idleness>([this, key](auto then) { redis->idle(key, then); }));
            if (idle.why) return fail(errc::io, "{}: {}", options.at.text(), idle.why.detail);
            one->age = idle.seconds;
            if (idle.gone) all.drop_last();
        }
        cursor = page.cursor;
    } while (cursor != "0");
    return std::move(all).take();
}

result<std::vector<kept_object>> upkeep::state::list_bucket() const {
    gathering all{options.at.text()};
    bucket_reader bucket{options};
    std::string token;
    do {
        KILN_CHECK(all.begin_page(token));
        KILN_TRY(auto page, bucket.page(token));
        for (auto& o : page.objects) {
            auto const name = name_in_bucket(o.key, bucket.prefix());
            if (!name) continue;
            KILN_TRY(auto* const one, all.add(std::move(o.key), *name));
            if (one == nullptr) continue;
            one->bytes = o.bytes;
            if (page.now && o.written) one->age = *page.now - *o.written;
        }
        if (page.objects.empty()) all.add_nothing();
        token = std::move(page.next);
    } while (!token.empty());
    return std::move(all).take();
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
        auto const name = name_in_folder(at->path());
        if (is_folder || at.depth() != 1 || !name) continue;
        if (at->symlink_status(why).type() != std::filesystem::file_type::regular) continue;
        auto const written = at->last_write_time(why);
        auto const age = std::chrono::duration_cast<std::chrono::seconds>(now - written).count();
        out.push_back({.key = at->path().native(),
                       .name = *name,
                       .age = age,
                       .bytes = at->file_size(why),
                       .what = begins_as_packet(at->path()) ? kind_of_object::packet : kind_of_object::foreign});
    }
    if (why) return io_error(folder.native(), why.value());
    return out;
}

result<std::vector<kept_object>> upkeep::list() {
    if (!state_->folder.empty()) return state_->list_folder();
    return state_->redis != nullptr ? state_->list_redis() : state_->list_bucket();
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
    KILN_TRY(auto const why,
             state_->call<failure>([s = state_.get(), name = what.name](auto then) { s->server->remove(name, then); }));
    if (why) return fail(errc::io, "{}: {}", state_->options.at.text(), why.detail);
    return {};
}

result<checked_object> upkeep::check(kept_object const& what) {
    KILN_TRY(auto const rule, trust_of(state_->options));
    if (!state_->folder.empty()) {
        KILN_TRY(auto const data,
                 base::read_file(what.key, static_cast<std::size_t>(state_->options.most_entry) + (64 << 10)));
        if (!data) return checked_object{};
        return check_packet(*data, rule, what.name);
    }
    KILN_TRY(auto got, state_->call<remote::got>([s = state_.get(), name = what.name](auto then) {
        s->server->get({name}, [then](std::size_t, remote::got g) { then(std::move(g)); });
    }));
    switch (got.state) {
        case presence::failed: return fail(errc::io, "{}: {}", state_->options.at.text(), got.why.detail);
        case presence::too_large: return checked_object{.why = miss::too_large};
        case presence::absent: return checked_object{};
        case presence::here: break;
    }
    return check_packet(got.packet, rule, what.name);
}

}  // namespace kiln::remote
