// SPDX-License-Identifier: Apache-2.0
#include "nvjitlink_link.hpp"

#include "compile/environment.hpp"
#include "intercept/shut_in.hpp"

#include <algorithm>
#include <sys/stat.h>

extern "C" int nvJitLinkVersion(unsigned* major, unsigned* minor);

namespace kiln::intercept {

namespace {

constexpr int success = nvjitlink_success;
constexpr int internal_error = nvjitlink_internal_error;
constexpr char const* output_kinds[] = {"LinkedCubin", "LinkedPtx", "LinkedLTOIR", "ErrorLog", "InfoLog"};

std::optional<std::string> text_of_file(std::string const& path) {
    // What is no file is not even opened: who writes into a pipe would notice.
    if (struct ::stat about{}; ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
    auto const data = base::read_file(path);
    return data && *data ? std::optional{std::string{base::as_text(**data)}} : std::nullopt;
}

// A step and the link that ends with it are kept apart.
foreign_id id_of(link_record const& k, base::digest const& step, std::string_view kind) {
    auto const at = base::key_builder{kind}.add("step", step).finish();
    std::string name = k.inputs.empty() ? "link" : k.inputs.front().name;
    name = name.substr(name.rfind('/') + 1);
    return {.digests = {at, at},
            .kind = std::string{kind},
            .name = name.empty() ? "link" : name,
            .target = target_in(k.options),
            .toolchain = self().real.toolchain(),
            .by = self().program()};
}

void tell(link_record const& k, happening h) {
    if (was_shut_in()) return;
    auto const id = id_of(k, {}, kind_nvjitlink);
    h.program = id.name;
    h.target = id.target;
    self().tell(std::move(h));
}

bool was_accepted(link_record const& k, base::digest const& step) {
    return self().store.has(id_of(k, step, kind_step));
}

// As the program does it, the first time.
int add_for_real(link_record& k, link_input given) {
    if (int const status = k.materialise(); status != success) return status;
    auto const& one = k.inputs.emplace_back(std::move(given));
    int const status = one.is_file ? real_call("nvJitLinkAddFile", k.real, one.type, one.name.c_str()) : k.feed(one);
    if (one.is_file && k.why_not.empty() && text_of_file(one.name) != one.data) k.why_not = "a file that changes";
    if (status == success) k.fed = k.inputs.size();
    else k.refused.splice(k.refused.end(), k.inputs, std::prev(k.inputs.end()));
    return status;
}

// Inputs in temporary files have another name each time: names are part of the key only where the answer tells one.
base::digest named_link(link_record const& k) {
    std::vector<std::string> names;
    for (auto const& one : k.inputs) names.push_back((one.named ? "n" : "-") + one.name);
    return link_named(k.chain.back(), names);
}

bool tells_names(link_record const& k, foreign_answer const& made) {
    return std::ranges::any_of(made.outputs, [&](auto const& output) {
        return std::ranges::any_of(k.inputs, [&](auto const& one) { return tells_a_name(output.data, one.name); });
    });
}

foreign_answer everything(link_record const& k) {
    foreign_answer out;
    for (auto const* kind : output_kinds) {
        auto const getter = fmt::format("nvJitLinkGet{}", kind);
        if (self().real.symbol((getter + "Size").c_str()) == nullptr) continue;
        foreign_answer::output one{.name = kind, .status = internal_error, .data = {}};
        std::size_t size = 0;
        one.status = real_call((getter + "Size").c_str(), k.real, &size);
        if (one.status == success && size > 0) {
            one.data.resize(size);
            one.status = real_call(getter.c_str(), k.real, static_cast<void*>(one.data.data()));
        }
        out.outputs.push_back(std::move(one));
    }
    return out;
}

int forbidden(link_record& k, std::string_view why) {
    auto const asked = id_of(k, k.chain.back(), kind_nvjitlink).digests.request;
    tell(k, {.kind = happening::what::forbidden, .request = asked, .detail = std::string{why}});
    self().store.count_failure();
    k.answer.emplace();
    k.answer->outputs.push_back(
        {.name = "ErrorLog",
         .status = success,
         .data = fmt::format("kiln run --jit=forbid: the link of '{}' for {} is not kept ({}).\nrequest {} by {}\n",
                             id_of(k, {}, kind_nvjitlink).name, target_in(k.options), why, asked.hex(),
                             self().real.toolchain())});
    k.answer->outputs.back().data += '\0';
    return internal_error;
}

int link_without_us(link_record& k) {
    if (self().jit() == jit_policy::forbid) return forbidden(k, k.why_not);
    tell(k, {.kind = happening::what::forwarded, .detail = k.why_not});
    if (int const status = k.materialise(); status != success) return status;
    return real_call("nvJitLinkComplete", k.real);
}

int link_and_keep(link_record& k) {
    stopwatch linking;
    if (int const status = k.materialise(); status != success) return status;
    if (int const status = real_call("nvJitLinkComplete", k.real); status != success) {
        self().store.count_failure();
        tell(k,
             {.kind = happening::what::failed, .took = linking.so_far(), .detail = fmt::format("status {}", status)});
        return status;  // not kept: the real link answers what is asked next
    }
    k.answer = everything(k);
    happening made{.kind = happening::what::made, .took = linking.so_far(), .detail = "new"};
    if (self().real.can_be_watched()) {
        auto const link = tells_names(k, *k.answer) ? named_link(k) : k.chain.back();
        made =
            told_of(self().store.keep(id_of(k, link, kind_nvjitlink), {.looks = {}, .answer = *k.answer}, linking.ms()),
                    std::move(made));
        for (auto const& step : k.chain) (void)self().store.keep(id_of(k, step, kind_step), {}, {});
    }
    tell(k, std::move(made));
    k.close();
    return success;
}

// Linked again by the real library and compared.
bool is_confirmed(link_record& k, foreign_hit const& hit) {
    std::string what;
    if (k.materialise() != success || real_call("nvJitLinkComplete", k.real) != success) what = "it does not link";
    else {
        auto const again = everything(k);
        for (auto const& one : again.outputs) {
            auto const* const kept = hit.answer.find(one.name);
            if (kept == nullptr || *kept != one) (what += what.empty() ? "" : ", ") += one.name;
        }
    }
    bool const is_same = what.empty();
    if (!is_same) what += self().remove(hit.at);
    tell(k, {.kind = is_same ? happening::what::verified : happening::what::different, .at = hit.at, .detail = what});
    return is_same;
}

// `waited`: for others that were making it.
bool answered(link_record& k, std::chrono::microseconds waited = {}) {
    stopwatch looking;
    auto found = self().store.find(id_of(k, k.chain.back(), kind_nvjitlink), {});
    if (!found.hit) found = self().store.find(id_of(k, named_link(k), kind_nvjitlink), {});
    if (!found.hit) return false;
    if (self().verifies() && !is_confirmed(k, *found.hit)) {
        k.why_not = "made again it differs";
        return false;
    }
    k.close();
    tell(k, {.kind = happening::what::answered,
             .took = waited + looking.so_far(),
             .waited = waited,
             .cost = found.hit->cost,
             .at = found.hit->at});
    k.answer = std::move(found.hit->answer);
    return true;
}

bool prints(std::vector<std::string> const& options) {
    return std::ranges::any_of(options, [](auto const& o) { return o == "-verbose" || o == "--verbose"; });
}

std::optional<linker_version> find_version() {
    auto& me = self();
    linker_version out;
    bool const serving = me.not_serving().empty();
    if (!serving)
        return real_call("nvJitLinkVersion", &out.major, &out.minor) == success ? std::optional{out} : std::nullopt;
    auto const step = base::key_builder{"kiln.foreign.facts.v1"}.add("toolchain", me.real.toolchain()).finish();
    foreign_id const id{.digests = {step, step},
                        .kind = std::string{kind_facts},
                        .name = "version",
                        .target = "any",
                        .toolchain = me.real.toolchain()};
    if (auto const found = me.store.find(id, {}); found.hit) {
        auto const* const kept = found.hit->answer.find("version");
        if (kept != nullptr && std::sscanf(kept->data.c_str(), "%u %u", &out.major, &out.minor) == 2) return out;
    }
    if (real_call("nvJitLinkVersion", &out.major, &out.minor) != success) return std::nullopt;
    foreign_answer answer;
    answer.outputs.push_back({.name = "version", .status = 0, .data = fmt::format("{} {}", out.major, out.minor)});
    (void)me.store.keep(id, {.looks = {}, .answer = std::move(answer)}, {});
    return out;
}

}  // namespace

standin& self() { return standin::the_only(kind_nvjitlink, reinterpret_cast<void const*>(&nvJitLinkVersion)); }

void link_record::close() {
    if (real != nullptr) real_call("nvJitLinkDestroy", &real);
    real = nullptr;
    fed = 0;
}

int link_record::feed(link_input const& one) const {
    char const* const name = one.named ? one.name.c_str() : nullptr;
    return real_call("nvJitLinkAddData", real, one.type, static_cast<void const*>(one.data.data()), one.data.size(),
                     name);
}

// What was in a file is given as data: the file may be another by now, or gone.
int link_record::materialise() {
    if (real == nullptr) {
        std::vector<char const*> words;
        words.reserve(options.size() + 1);  // no options are not a list that is not there
        for (auto const& o : options) words.push_back(o.c_str());
        if (int const status =
                real_call("nvJitLinkCreate", &real, static_cast<std::uint32_t>(words.size()), words.data());
            status != success) {
            real = nullptr;
            return status;
        }
    }
    for (auto next = std::next(inputs.begin(), static_cast<std::ptrdiff_t>(fed)); next != inputs.end(); ++next) {
        if (int const status = feed(*next); status != success) return status;
        ++fed;
    }
    // What comes after the end is the real library's to answer.
    if (answer && self().jit() != jit_policy::forbid) {
        answer.reset();
        return real_call("nvJitLinkComplete", real);
    }
    return success;
}

bool begin(link_record& k) {
    k.why_not = self().not_serving();
    if (auto const option = unkeepable_option(k.options); !option.empty()) k.why_not = option;
    if (prints(k.options)) k.why_not = "it prints what it does";
    if (!k.why_not.empty()) return false;
    k.chain.push_back(link_begun(self().real.toolchain(), k.options));
    return was_accepted(k, k.chain.back());
}

int add(link_record& k, link_input one) {
    if (is_shut_in()) k.why_not = self().not_serving();
    if (k.why_not.empty() && one.is_file) {
        if (auto text = text_of_file(one.name)) one.data = *std::move(text);
        else k.why_not = "a file that cannot be read";
    }
    if (k.answer) k.why_not = "an input after the end";
    if (k.why_not.empty()) {
        k.chain.push_back(link_added(k.chain.back(), one.type, base::as_bytes(one.data)));
        if (k.real == nullptr && was_accepted(k, k.chain.back())) {
            k.inputs.push_back(std::move(one));
            return success;
        }
    }
    int const status = add_for_real(k, std::move(one));
    if (status != success) k.why_not = "an input that was not accepted";
    return status;
}

int complete(link_record& k) {
    if (k.answer) k.why_not = "completed again";
    // What it began with may have changed since.
    if (k.why_not.empty()) k.why_not = self().not_serving();
    if (!k.why_not.empty()) return link_without_us(k);
    if (answered(k)) return success;
    if (k.why_not.empty() && self().jit() == jit_policy::forbid) return forbidden(k, "new");
    std::chrono::microseconds waited{};
    foreign_store::thread_end const end{self().store};
    while (k.why_not.empty()) {
        stopwatch waiting;
        auto leading = self().store.lead(k.chain.back());
        auto const outcome = leading.outcome();
        bool const others_were_here =
            outcome == store::flight_outcome::leader || outcome == store::flight_outcome::finished;
        waited += waited_for_another(leading, waiting.so_far());
        if (others_were_here && answered(k, waited)) return success;
        if (!k.why_not.empty() || (outcome == store::flight_outcome::finished && !leading.gave_up())) continue;
        int const status = link_and_keep(k);
        if (status != success) leading.give_up();
        return status;
    }
    k.close();
    return link_without_us(k);
}

linker_version const* version_of_linker() {
    static constinit base::made_once<linker_version> known;
    if (auto const* const there = known.peek()) return there;
    auto const found = find_version();
    if (!found) return nullptr;  // now: the next who asks may be luckier
    return &known.get([&] { return std::make_unique<linker_version>(*found); });
}

}  // namespace kiln::intercept
