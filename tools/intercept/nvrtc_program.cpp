// SPDX-License-Identifier: Apache-2.0
#include "nvrtc_program.hpp"

#include "compile/open_hook.hpp"

#include <algorithm>
#include <charconv>

extern "C" int nvrtcVersion(int* major, int* minor);

namespace kiln::intercept {

namespace {

template <class... Arguments>
int real_call(char const* name, Arguments... arguments) {
    return self().real.call(name, nvrtc_builtin_failure, arguments...);
}

// Called by the real library where nothing of ours is in the way: see compile_steps.
int relayed(void* of, void* more) {
    auto& p = *static_cast<program*>(of);
    if (p.wish != 0) return std::exchange(p.wish, 0);
    int ours = PTHREAD_CANCEL_DISABLE;
    auto* const turn = compile::thread_turn::put_aside();
    ::pthread_setcancelstate(p.cancelling, &ours);
    int const said = p.watcher.function(p.watcher.payload, more);
    ::pthread_setcancelstate(ours, nullptr);
    compile::thread_turn::take_up(turn);
    return said;
}

std::optional<facts> parsed(foreign_answer const& from) {
    auto const* const version = from.find("version");
    auto const* const archs = from.find("archs");
    if (version == nullptr || archs == nullptr) return std::nullopt;
    auto const numbers = [](std::string_view text) {
        std::vector<int> out;
        for (int one = 0; !text.empty();) {
            auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), one);
            if (failed != std::errc{}) break;
            out.push_back(one);
            text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
        }
        return out;
    };
    auto const v = numbers(version->data);
    if (v.size() != 2) return std::nullopt;
    return facts{v[0], v[1], numbers(archs->data)};
}

foreign_answer as_answer(facts const& f) {
    std::string archs;
    for (auto const a : f.archs) archs += fmt::format("{} ", a);
    foreign_answer out;
    out.outputs = {{.name = "version", .status = 0, .data = fmt::format("{} {}", f.major, f.minor)},
                   {.name = "archs", .status = 0, .data = std::move(archs)}};
    return out;
}

std::optional<facts> asked_of_compiler() {
    facts out;
    if (real_call("nvrtcVersion", &out.major, &out.minor) != 0) return std::nullopt;
    int count = 0;
    if (real_call("nvrtcGetNumSupportedArchs", &count) == 0 && count > 0) {
        out.archs.resize(static_cast<std::size_t>(count));
        real_call("nvrtcGetSupportedArchs", out.archs.data());
    }
    return out;
}

std::optional<facts> find_facts() {
    auto& me = self();
    if (!me.not_serving().empty()) return asked_of_compiler();
    auto const request = base::key_builder{"kiln.foreign.facts.v1"}.add("toolchain", me.real.toolchain()).finish();
    foreign_id const id{.digests = {request, request},
                        .kind = std::string{kind_facts},
                        .name = "version",
                        .target = "any",
                        .toolchain = me.real.toolchain()};
    if (auto const found = me.store.find(id, {}); found.hit) {
        if (auto known = parsed(found.hit->answer)) return known;
    }
    auto out = asked_of_compiler();
    if (out) (void)me.store.keep(id, {.looks = {}, .answer = as_answer(*out)}, {});
    return out;
}

}  // namespace

standin& self() { return standin::the_only(kind_nvrtc, reinterpret_cast<void const*>(&nvrtcVersion)); }

flow_callback program::relay() noexcept {
    return watcher.function == nullptr ? flow_callback{} : flow_callback{&relayed, this};
}

void* program::as_real() {
    if (real != nullptr) return real;
    real_program made{self().real};
    // Who watches has seen the compile that was.
    if (made.create(asked, asked.name, tried ? flow_callback{} : relay()) != 0) return nullptr;
    if (tried) {
        if (self().jit() != jit_policy::forbid) (void)made.compile_alone(*tried);
        if (auto const next = relay(); next.function != nullptr)
            (void)real_call("nvrtcSetFlowCallback", made.get(), next.function, next.payload);
    }
    failure.reset();
    return real = made.release();
}

void* program::as_real_again() {
    if (failure && real != nullptr) {  // not with virtual names again
        real_call("nvrtcDestroyProgram", &real);
        real = nullptr;
        failure.reset();
        tried.reset();
    }
    void* const out = as_real();
    forget_answer();
    return out;
}

void program::forget_answer() {
    if (answer && !answer->lowered.empty()) names_given = std::move(answer->lowered);
    answer.reset();
    tried.reset();
}

int foreign_create(void** handle, char const* source, char const* name, int count, char const* const* texts,
                   char const* const* names) {
    return real_call("nvrtcCreateProgram", handle, source, name, count, texts, names);
}

facts const* compiler_facts() {
    static constinit base::made_once<facts> known;
    if (auto const* const there = known.peek()) return there;
    auto found = find_facts();
    if (!found) return nullptr;  // now: the next who asks may be luckier
    return &known.get([&] { return std::make_unique<facts>(*std::move(found)); });
}

}  // namespace kiln::intercept
