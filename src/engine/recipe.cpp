// SPDX-License-Identifier: Apache-2.0
#include "engine/recipe.hpp"

#include "base/check.hpp"

#include <mutex>

namespace kiln::engine_detail {

namespace {

constexpr std::uint8_t unit_form = 1;

// Made at the first registration, before main in any order, and never destroyed.
struct registry {
    std::mutex mutex;
    std::vector<pack const*> packs;
};
registry& all() {
    static registry& r = *new registry;
    return r;
}

void put_texts(base::byte_writer& w, std::vector<std::string> const& texts) {
    w.put_u32(static_cast<std::uint32_t>(texts.size()));
    for (auto const& t : texts) w.put_text(t);
}

std::vector<std::string> get_texts(base::byte_reader& r) {
    std::vector<std::string> out(r.get_count(4));
    for (auto& t : out) t = r.get_text();
    return out;
}

}  // namespace

base::digest recipe::id() const {
    return base::key_builder{"kiln.recipe.v1"}.add("kind", kind).add("name", name).add("body", body).finish();
}

recipe recipe_of(unit const& u) {
    base::byte_writer w;
    w.put_u8(unit_form);
    w.put_text(u.name);
    w.put_text(u.source);
    put_texts(w, u.kernels);
    put_texts(w, u.options);
    w.put_u32(static_cast<std::uint32_t>(u.headers.size()));
    for (auto const& h : u.headers) {
        w.put_text(h.name);
        w.put_text(h.text);
    }
    put_texts(w, u.include_dirs);
    w.put_text(u.directory);
    put_texts(w, u.exports);
    w.put_text(u.licence);
    return {"unit", u.name, std::move(w).take()};
}

result<unit> unit_of(recipe const& r) {
    base::byte_reader in{r.body};
    if (auto const form = in.get_u8(); form != unit_form)
        return fail(errc::unsupported, "recipe of '{}': form {} is not known to this version of Kiln", r.name, form);
    unit u;
    u.name = in.get_text();
    u.source = in.get_text();
    u.kernels = get_texts(in);
    u.options = get_texts(in);
    u.headers.resize(in.get_count(8));
    for (auto& h : u.headers) {
        h.name = in.get_text();
        h.text = in.get_text();
    }
    u.include_dirs = get_texts(in);
    u.directory = in.get_text();
    u.exports = get_texts(in);
    u.licence = in.get_text();
    if (!in.done()) return fail(errc::corrupt, "recipe of '{}': damaged", r.name);
    return u;
}

pack::pack() {
    std::lock_guard const lock{all().mutex};
    all().packs.push_back(this);
}

std::vector<pack const*> packs() {
    std::lock_guard const lock{all().mutex};
    return all().packs;
}

pack const* find_pack(std::string_view name) {
    for (auto const* p : packs()) {
        if (p->name() == name) return p;
    }
    return nullptr;
}

result<recipe> find_recipe(std::string_view spec) {
    std::string known;
    for (auto const* p : packs()) {
        if (auto found = p->find(spec)) return *std::move(found);
        known += fmt::format("{}{} ({} names)", known.empty() ? "" : ", ", p->name(), p->names().size());
    }
    return fail(errc::not_found, "no pack has '{}'; 'kiln list' shows every name; packs in this program: {}", spec,
                known.empty() ? "none" : known);
}

}  // namespace kiln::engine_detail
