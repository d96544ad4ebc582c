// SPDX-License-Identifier: Apache-2.0
// The primitives as a pack: by name for demands, and as recipes for profiles, whatever their operator.
#include "prims/pack.hpp"

#include "compile/unit_codec.hpp"
#include "engine/engine_state.hpp"
#include "prims/catalogue.hpp"
#include "prims/routes.hpp"
#include "prims/specialisation.hpp"

#include "embedded/prims_products.hpp"

#include <kiln/prims/run.hpp>

namespace kiln::prims {

namespace {

using engine_detail::recipe;

constexpr std::string_view pack_name = "prims";
// A captured value is written as its type: the bytes travel with a launch and decide nothing before it.
constexpr std::uint8_t request_form = 1, captured_form = 2;

void put(base::byte_writer& w, element_type const& t) {
    w.put_u8(static_cast<std::uint8_t>(t.kind));
    w.put_text(t.name);
    w.put_text(t.definition);
    w.put_u64(t.size);
    w.put_u64(t.align);
}

element_type get_type(base::byte_reader& r) {
    element_type t;
    t.kind = static_cast<scalar>(std::min<std::uint8_t>(r.get_u8(), static_cast<std::uint8_t>(scalar::record)));
    t.name = r.get_text();
    t.definition = r.get_text();
    t.size = r.get_u64();
    t.align = r.get_u64();
    return t;
}

void put(base::byte_writer& w, op const& by) {
    w.put_u8(static_cast<std::uint8_t>(by.kind()));
    w.put_text(by.name());
    w.put_text(by.text());
    w.put_blob(by.image());
}

std::optional<op> get_op(base::byte_reader& r) {
    auto const form = r.get_u8();
    auto name = r.get_text();
    auto text = r.get_text();
    auto const image = r.get_blob();
    switch (static_cast<op::form>(form)) {
        case op::form::builtin: return op::builtin(name);
        case op::form::expression: return op{std::move(text)};
        case op::form::function: return op::function(std::move(name), std::move(text));
        case op::form::ltoir: return op::ltoir(std::move(name), {image.begin(), image.end()});
    }
    return std::nullopt;
}

class prims_pack final : public engine_detail::pack {
public:
    prims_pack() : pack{{.name = pack_name, .ships = embedded::prims_products(), .operations = prims::operations()}} {}

    [[nodiscard]] std::vector<spec> const& specs() const override {
        static auto const all = [] {
            std::vector<spec> out;
            for (auto const& r : named_requests()) out.push_back(r.about);
            return out;
        }();
        return all;
    }
    [[nodiscard]] result<made_artifact> make(engine& with, recipe const& what, target t,
                                             wait_options wait) const override {
        KILN_TRY(auto const r, request_of(what));
        return obtain(with, r, t, closeness::exact, prim_route::automatic, std::move(wait));
    }
    [[nodiscard]] result<std::shared_ptr<void const>> load(engine& with, recipe const& what, int device,
                                                           wait_options wait) const override {
        KILN_TRY(auto const r, request_of(what));
        prim_options how;
        how.device = device;
        how.engine = &with;
        how.wait = std::move(wait);
        KILN_TRY(auto made, specialisation::make(r, how));
        return std::shared_ptr<void const>{std::move(made)};
    }
};

prims_pack const the_pack;

}  // namespace

recipe recipe_of(request const& r) {
    if (auto const* const named = find_request(r.name);
        named != nullptr && family_of(*named, part::whole) == family_of(r, part::whole))
        return recipe{std::string{pack_name}, r.name, {}};
    bool const captures = r.by && r.by->state_type().size != 0;
    base::byte_writer w;
    w.put_u8(captures ? captured_form : request_form);
    w.put_u8(static_cast<std::uint8_t>(r.what));
    w.put_text(r.name);
    put(w, r.value);
    put(w, r.mapped);
    compile::put_texts(w, r.defines);
    compile::put_texts(w, r.kernels);
    w.put_u8(r.by ? 1 : 0);
    if (r.by) put(w, *r.by);
    if (captures) put(w, r.by->state_type());
    return recipe{std::string{pack_name}, r.name, std::move(w).take()};
}

result<request> request_of(recipe const& what) {
    if (what.body.empty()) {
        if (auto const* const named = find_request(what.name)) return *named;
        return fail(errc::not_found, "this version of Kiln has no specialisation '{}'", what.name);
    }
    base::byte_reader in{what.body};
    auto const form = in.get_u8();
    if (form != request_form && form != captured_form)
        return fail(errc::unsupported, "recipe of '{}': form {} is not known to this version of Kiln", what.name, form);
    request r;
    auto const algorithm_number = in.get_u8();
    r.what = static_cast<algorithm>(algorithm_number);
    r.name = in.get_text();
    r.value = get_type(in);
    r.mapped = get_type(in);
    r.defines = compile::get_texts(in);
    r.kernels = compile::get_texts(in);
    if (in.get_u8() != 0) r.by = get_op(in);
    if (form == captured_form) {
        auto const state = get_type(in);
        if (!r.by || state.size == 0 || state.size > op::most_state) in.spoil();
        else r.by = r.by->with_type(state);
    }
    if (!in.done() || algorithm_number > static_cast<std::uint8_t>(algorithm::gather))
        return fail(errc::corrupt, "recipe of '{}': damaged", what.name);
    return r;
}

namespace {

void tell(engine& with, request const& r, target t, std::string_view key, provenance from, double compile_ms) {
    std::function<std::optional<recipe>()> const make_recipe = [&] { return recipe_of(r); };
    with.internals().uses.tell({.name = r.name,
                                .id = family_of(r, part::whole),
                                .for_target = t,
                                .key = key,
                                .from = from,
                                .compile_ms = compile_ms,
                                .make_recipe = make_recipe});
}

}  // namespace

void tell_use(engine& with, request const& r, obtained const& got) {
    tell(with, r, got.what->target, got.what->key, got.from, got.what->compile_ms);
}

void tell_use(engine& with, request const& r, ready_unit const& got) {
    auto const& s = got.internals();
    tell(with, r, s.target, s.key, s.from, s.compile_ms);
}

}  // namespace kiln::prims

KILN_PACK(prims);
