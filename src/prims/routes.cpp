// SPDX-License-Identifier: Apache-2.0
#include "prims/routes.hpp"

#include "engine/engine_state.hpp"
#include "prims/operator_text.hpp"
#include "prims/pack.hpp"
#include "prims/shipped.hpp"
#include "prims/sources.hpp"

namespace kiln::prims {

namespace {

bool is_template_type(element_type const& t) {
    switch (t.kind) {
        case scalar::i32:
        case scalar::u32:
        case scalar::i64:
        case scalar::u64:
        case scalar::f32:
        case scalar::f64: return true;
        default: return false;
    }
}

// The compiler's first complaint, or its first line.
std::string first_error(std::string const& log) {
    auto const at = log.find("error");
    auto const begin = at == log.npos ? 0 : log.rfind('\n', at) + 1;
    return log.substr(begin, log.find('\n', begin) - begin);
}

// No other route would get further than this.
bool is_final(error const& e) {
    return e.code() == errc::forbidden || e.code() == errc::timeout || e.code() == errc::cancelled ||
           e.code() == errc::invalid_argument || e.code() == errc::out_of_memory;
}

class router {
public:
    router(engine& with, request const& what, target t, wait_options wait)
        : engine_{with}, what_{what}, target_{t}, wait_{wait} {}

    [[nodiscard]] std::optional<made_artifact> shipped(closeness how) const {
        auto found = find_shipped(engine_, family_of(what_, part::whole), target_, how);
        if (found) state().requests->count_found(found->got.from);
        return found;
    }

    [[nodiscard]] std::optional<made_artifact> kept() const {
        auto const at = local_address();
        auto found = engine_detail::find_kept(engine_, at, target_);
        if (!found) return std::nullopt;
        state().requests->count_found(found->from);
        return made_artifact{*std::move(found), at, std::string{licence}};
    }

    [[nodiscard]] result<made_artifact> linked(header_source from) {
        link_request link{.name = what_.name, .target = target_, .inputs = {}};
        link.kernels = what_.kernels;
        link.exports = {std::string{info_name}};
        // Two large kernels: nvJitLink makes them side by side.
        if (what_.what == algorithm::merge_sort) link.options = {"-split-compile=0"};
        target const ir{target_.arch, artifact_kind::ltoir};
        // The operator first: it is quick, and the template may not be needed at all.
        if (what_.by) {
            auto made = engine_.artifact_sync(operator_unit(what_), ir, wait_);
            if (!made) return operator_error(std::move(made).error());
            link.inputs.push_back(made->what);
            if (what_.by->kind() == op::form::ltoir) link.inputs.push_back(given_ir(ir));
        }
        KILN_TRY(auto const skeleton, obtain_template(engine_, what_, target_, from, wait_));
        link.inputs.insert(link.inputs.begin(), skeleton.what);
        auto made = engine_.link_sync(link, wait_);
        // A template made by a later minor version than this machine's linker understands: make one here.
        if (!made && made.error().code() == errc::link_failed && skeleton.from == provenance::bundle) {
            fell_back("template", made.error());
            KILN_TRY(auto const own, engine_.artifact_sync(device_unit(what_, part::skeleton, from), ir, wait_));
            link.inputs.front() = own.what;
            made = engine_.link_sync(link, wait_);
        }
        if (!made) return std::move(made).error();
        return keep(*std::move(made), from);
    }

    [[nodiscard]] result<made_artifact> full(header_source from) {
        auto made = engine_.artifact_sync(device_unit(what_, part::whole, from), target_, wait_);
        if (!made) return std::move(made).error();
        return keep(*std::move(made), from);
    }

    // Compiles the operator alone, so that what is wrong with it is said about it and not about CUB.
    [[nodiscard]] result<void> check_operator() {
        auto made = engine_.artifact_sync(operator_unit(what_), {target_.arch, artifact_kind::ltoir}, wait_);
        if (made) return {};
        return operator_error(std::move(made).error());
    }

    // Linked wherever a template may be shipped or shared; other types compile in one go, which is quicker once.
    [[nodiscard]] bool prefers_link() const {
        if (!what_.by) return false;
        if (what_.by->kind() == op::form::ltoir) return true;
        if (what_.what == algorithm::transform) return false;
        return is_template_type(what_.value) || ships_a_template();
    }

    void fell_back(std::string_view from, error const& why) const {
        state().events.emit({.kind = event_kind::fell_back,
                             .unit = what_.name,
                             .target = target_.arch.name(),
                             .reason = fmt::format("prims-{}", from),
                             .detail = why.message()});
    }

    [[nodiscard]] bool operator_failed() const noexcept { return operator_failed_; }

private:
    [[nodiscard]] engine::state& state() const noexcept { return engine_.internals(); }

    [[nodiscard]] bool ships_a_template() const {
        return find_shipped_template(engine_, what_, {target_.arch, artifact_kind::ltoir}).has_value();
    }

    [[nodiscard]] store::address local_address() const {
        auto const name = [](result<compile::tool> const& tool) {
            return tool ? tool->toolchain : std::string{"none"};
        };
        auto const headers = pinned_digest() ? pinned_digest()->hex() : std::string{"machine"};
        return address_of(family_of(what_, part::whole), target_,
                          name(state().nvrtc()) + "\n" + name(state().nvjitlink()) + "\n" + headers);
    }

    // Kept under its own address too, unless the machine's headers had a say in it.
    [[nodiscard]] made_artifact keep(obtained made, header_source from) const {
        auto const at = local_address();
        if (from == header_source::pinned && pinned_digest()) {
            auto copy = *made.what;
            copy.unit = what_.name;
            state().store->put(entry_at(at, std::move(copy), engine_));
        }
        return {std::move(made), at, std::string{licence}};
    }

    [[nodiscard]] artifact_ptr given_ir(target const& t) const {
        artifact out{.unit = what_.by->name(), .target = t};
        out.image = what_.by->image();
        return std::make_shared<artifact const>(std::move(out));
    }

    [[nodiscard]] error operator_error(error why) {
        if (why.code() != errc::compile_failed) return why;
        operator_failed_ = true;
        return fail(errc::compile_failed, "{}: the operator does not compile: {}; the operator is: {}", what_.name,
                    first_error(why.log()), excerpt(*what_.by))
            .with_status(why.status())
            .with_log(why.log());
    }

    engine& engine_;
    request const& what_;
    target target_;
    wait_options wait_;
    bool operator_failed_ = false;
};

header_source best_headers() { return pinned_digest() ? header_source::pinned : header_source::machine; }

result<made_artifact> make_image(router& by, request const& what) {
    std::optional<error> first;
    auto const step = [&](std::string_view name, result<made_artifact> made) -> std::optional<result<made_artifact>> {
        if (made || by.operator_failed() || is_final(made.error())) return made;
        by.fell_back(name, made.error());
        if (!first) first = made.error();
        return std::nullopt;
    };
    if (by.prefers_link()) {
        if (auto done = step("linked", by.linked(best_headers()))) return *std::move(done);
        if (what.by->kind() == op::form::ltoir) return *std::move(first);  // it exists only as something to link
    } else if (what.by) {
        // Text that does not compile is told apart from everything else here, and at once.
        if (auto checked = by.check_operator(); !checked) return std::move(checked).error();
    }
    if (auto done = step("full", by.full(best_headers()))) return *std::move(done);
    if (auto done = step("plain", by.full(header_source::plain))) return *std::move(done);
    return *std::move(first);
}

}  // namespace

result<obtained> obtain_template(engine& with, request const& what, target t, header_source from, wait_options wait) {
    target const ir{t.arch, artifact_kind::ltoir};
    auto& state = with.internals();
    if (auto found = find_shipped_template(with, what, ir)) return std::move(found->got);
    auto const unit = device_unit(what, part::skeleton, from);
    auto made = with.artifact_sync(unit, ir, wait);
    // A step down only where templates ship at all and may be used, and only the first time on a machine.
    bool const recache = state.config.flag("KILN_RECACHE");
    if (made && made->from == provenance::compiled && pinned_digest() && !recache) {
        state.events.emit(
            {.kind = event_kind::fell_back,
             .unit = unit.name,
             .target = ir.arch.name(),
             .reason = "prims-template",
             .detail = fmt::format("it does not ship with this build for CUDA {}; made here", linker_major(with))});
    }
    return made;
}

namespace {

result<made_artifact> find_or_make(engine& with, request const& what, target t, closeness how, prim_route route,
                                   wait_options const& wait) {
    router by{with, what, t, wait};
    auto const& config = with.internals().config;
    bool const disabled = config.flag("KILN_DISABLE") || config.flag("KILN_RECACHE");
    switch (route) {
        case prim_route::linked: return by.linked(best_headers());
        case prim_route::full: return by.full(best_headers());
        case prim_route::plain: return by.full(header_source::plain);
        case prim_route::shipped:
            if (auto found = by.shipped(how)) return *std::move(found);
            return fail(errc::not_found, "{} for {} is not shipped with this build of Kiln", what.name, t.arch.name());
        case prim_route::automatic: break;
    }
    if (!disabled) {
        if (auto found = by.shipped(how)) return *std::move(found);
        if (auto found = by.kept()) return *std::move(found);
    }
    return make_image(by, what);
}

}  // namespace

result<made_artifact> obtain(engine& with, request const& what, target t, closeness how, prim_route route,
                             wait_options wait) {
    engine_detail::use_scope const use;
    KILN_CHECK(check(what));
    auto found = find_or_make(with, what, t, how, route, wait);
    if (found && use.outermost() && with.internals().uses.watched()) tell_use(with, what, found->got);
    return found;
}

result<ready_unit> load_request(engine& with, request const& what, prim_options const& how) {
    KILN_TRY(auto const info, kiln::device(how.device));
    KILN_TRY(auto const t, target::make(arch::of_device(info.major, info.minor), artifact_kind::cubin));
    KILN_TRY(auto const image, obtain(with, what, t, closeness::near, how.route, how.wait));
    engine_detail::subject const about{.name = what.name,
                                       .target = image.got.what->target,
                                       .id = {.family = image.at.family, .request = image.at.request},
                                       .toolchain = image.got.what->toolchain,
                                       .roots = {},
                                       .device = t.arch};
    std::function<result<obtained>()> make_anew;
    if (how.route == prim_route::automatic) {
        make_anew = [&]() -> result<obtained> {
            router by{with, what, t, how.wait};
            KILN_TRY(auto again, make_image(by, what));
            return std::move(again.got);
        };
    }
    return engine_detail::load_or_make_anew(with.internals(), about, image, how.device, make_anew);
}

}  // namespace kiln::prims
