// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libnvJitLink.so.N. A link is a chain: the options, then each input after all before it. A step that was accepted
// once is only noted; the first that was not opens the real library and replays the chain there, so that errors appear exactly
// where they would have. nvJitLinkComplete answers from the store, or links and keeps every answer. Status codes
// are nvJitLink's.
#include "standin.hpp"

#include "compile/open_hook.hpp"
#include "forward.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <sys/stat.h>

extern "C" __attribute__((visibility("default"))) int nvJitLinkVersion(unsigned* major, unsigned* minor);

namespace kiln::intercept {
namespace {

constexpr int success = 0;
constexpr int internal_error = 6;
constexpr char const* output_kinds[] = {"LinkedCubin", "LinkedPtx", "LinkedLTOIR", "ErrorLog", "InfoLog"};

standin& self() { return standin::the_only(kind_nvjitlink, reinterpret_cast<void const*>(&nvJitLinkVersion)); }

template <class... Arguments>
int real_call(char const* name, Arguments... arguments) {
    return self().real.call(name, internal_error, arguments...);
}

template <class Body>
int with(Body body) noexcept {
    return guarded(internal_error, internal_error, body);
}

// What a pointer is called that is none: CUDA 12 has no word of its own for it.
int null_input() {
    unsigned major = 0, minor = 0;
    return nvJitLinkVersion(&major, &minor) == success && major < 13 ? 3 : 10;
}

struct link_input {
    int type = 0;
    std::string name;
    bool named = false;    // a null name is not an empty one
    bool is_file = false;  // `name` is its path
    std::string data;      // of a file what was in it
};

std::optional<std::string> text_of_file(std::string const& path) {
    // What is no file is not even opened: who writes into a pipe would notice.
    if (struct ::stat about{}; ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
    auto const data = base::read_file(path);
    return data && *data ? std::optional{std::string{base::as_text(**data)}} : std::nullopt;
}

struct link_record {
    std::vector<std::string> options;
    std::list<link_input> inputs;     // which stay where they are: the linker keeps the addresses of their names
    std::list<link_input> refused;    // by the linker, whose messages may still have their names
    std::vector<base::digest> chain;  // options, then one for each input
    std::string why_not;              // it is not kept; empty: it is
    void* real = nullptr;
    std::size_t fed = 0;                   // inputs the real one has
    std::optional<foreign_answer> answer;  // completed
    stopwatch since;

    ~link_record() { close(); }

    void close() {
        if (real != nullptr) real_call("nvJitLinkDestroy", &real);
        real = nullptr;
        fed = 0;
    }
    [[nodiscard]] int feed(link_input const& one) const {
        char const* const name = one.named ? one.name.c_str() : nullptr;
        return real_call("nvJitLinkAddData", real, one.type, static_cast<void const*>(one.data.data()), one.data.size(),
                         name);
    }
    // The real link with everything that was noted, as far as the program is. What was in a file is given as data: the file may be
    // another by now, or gone.
    [[nodiscard]] int materialise() {
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
};

live_handles<link_record>& handles() {
    static constinit base::made_once<live_handles<link_record>> all;
    return all.get([] { return std::make_unique<live_handles<link_record>>(); });
}

template <class... Arguments>
int foreign(char const* name, Arguments... arguments) {
    return self().real.is_open() ? real_call(name, arguments...) : null_input();
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

int add(link_record& k, link_input one) {
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
    tell(k, {.kind = happening::what::forbidden, .detail = std::string{why}});
    self().store.count_failure();
    k.answer.emplace();
    k.answer->outputs.push_back(
        {.name = "ErrorLog",
         .status = success,
         .data = fmt::format("kiln run --jit=forbid: the link of '{}' for {} is not kept ({}).\n",
                             id_of(k, {}, kind_nvjitlink).name, target_in(k.options), why)});
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
            if (kept == nullptr || *kept != one) what += one.name + " ";
        }
    }
    tell(k,
         {.kind = what.empty() ? happening::what::verified : happening::what::different, .at = hit.at, .detail = what});
    return what.empty();
}

bool answered(link_record& k) {
    stopwatch looking;
    auto found = self().store.find(id_of(k, k.chain.back(), kind_nvjitlink), {});
    if (!found.hit) found = self().store.find(id_of(k, named_link(k), kind_nvjitlink), {});
    if (!found.hit) return false;
    if (self().verifies() && !is_confirmed(k, *found.hit)) {
        k.why_not = "made again it differs";
        return false;
    }
    k.close();
    tell(k,
         {.kind = happening::what::answered, .took = looking.so_far(), .cost = found.hit->cost, .at = found.hit->at});
    k.answer = std::move(found.hit->answer);
    return true;
}

int complete(link_record& k) {
    if (k.answer) k.why_not = "completed again";
    // What it began with may have changed since.
    if (k.why_not.empty() && !compile::computes_as_usual())
        k.why_not = "this thread rounds otherwise than to the nearest number";
    if (!k.why_not.empty()) return link_without_us(k);
    if (answered(k)) return success;
    if (k.why_not.empty() && self().jit() == jit_policy::forbid) return forbidden(k, "new");
    while (k.why_not.empty()) {
        auto const leading = self().store.lead(k.chain.back());
        auto const outcome = leading.outcome();
        bool const others_were_here =
            outcome == store::flight_outcome::leader || outcome == store::flight_outcome::finished;
        if (others_were_here && answered(k)) return success;
        if (k.why_not.empty() && outcome != store::flight_outcome::finished) return link_and_keep(k);
    }
    k.close();
    return link_without_us(k);
}

int size_of(void* handle, char const* kind, char const* function, std::size_t* size) {
    if (handle == nullptr || size == nullptr) return null_input();
    auto* const k = handles().find(handle);
    if (k == nullptr) return foreign(function, handle, size);
    if (!k->answer) {
        if (int const status = k->materialise(); status != success) return status;
        return real_call(function, k->real, size);
    }
    auto const* const out = k->answer->find(kind);
    if (out == nullptr) return internal_error;
    if (out->status == success) *size = out->data.size();
    return out->status;
}

int data_of(void* handle, char const* kind, char const* function, void* data) {
    if (handle == nullptr || data == nullptr) return null_input();
    auto* const k = handles().find(handle);
    if (k == nullptr) return foreign(function, handle, data);
    if (!k->answer) {
        if (int const status = k->materialise(); status != success) return status;
        return real_call(function, k->real, data);
    }
    auto const* const out = k->answer->find(kind);
    if (out == nullptr) return internal_error;
    if (out->status == success) std::memcpy(data, out->data.data(), out->data.size());
    return out->status;
}

bool prints(std::vector<std::string> const& options) {
    return std::ranges::any_of(options, [](auto const& o) { return o == "-verbose" || o == "--verbose"; });
}

// What the version is, kept so that asking loads no linker.
std::optional<std::pair<unsigned, unsigned>> version() {
    auto& me = self();
    unsigned major = 0, minor = 0;
    bool const serving = me.not_serving().empty();
    auto const step = base::key_builder{"kiln.foreign.facts.v1"}.add("toolchain", me.real.toolchain()).finish();
    foreign_id const id{.digests = {step, step},
                        .kind = std::string{kind_facts},
                        .name = "version",
                        .target = "any",
                        .toolchain = me.real.toolchain()};
    if (auto const found = serving ? me.store.find(id, {}) : foreign_search{}; found.hit) {
        auto const* const kept = found.hit->answer.find("version");
        if (kept != nullptr && std::sscanf(kept->data.c_str(), "%u %u", &major, &minor) == 2)
            return std::pair{major, minor};
    }
    if (real_call("nvJitLinkVersion", &major, &minor) != success) return std::nullopt;
    foreign_answer answer;
    answer.outputs.push_back({.name = "version", .status = 0, .data = fmt::format("{} {}", major, minor)});
    if (serving) (void)me.store.keep(id, {.looks = {}, .answer = std::move(answer)}, {});
    return std::pair{major, minor};
}

}  // namespace
}  // namespace kiln::intercept

using namespace kiln::intercept;

#define KILN_API extern "C" __attribute__((visibility("default")))

KILN_API int nvJitLinkVersion(unsigned* major, unsigned* minor) {
    if (major == nullptr || minor == nullptr) return null_input();
    return with([&] {
        using numbers = std::optional<std::pair<unsigned, unsigned>>;
        static constinit kiln::base::made_once<numbers> known;
        auto const& found = known.get([] { return std::make_unique<numbers>(version()); });
        if (!found) return internal_error;
        *major = found->first;
        *minor = found->second;
        return success;
    });
}

KILN_API int nvJitLinkCreate(void** handle, std::uint32_t count, char const** options) {
    if (handle == nullptr || options == nullptr) return null_input();
    return with([&] {
        auto made = std::make_unique<link_record>();
        for (std::uint32_t i = 0; i < count; ++i) {
            if (options[i] == nullptr) return real_call("nvJitLinkCreate", handle, count, options);
            made->options.emplace_back(options[i]);
        }
        made->why_not = self().not_serving();
        if (auto const option = unkeepable_option(made->options); !option.empty()) made->why_not = option;
        if (prints(made->options)) made->why_not = "it prints what it does";
        made->chain.push_back(link_begun(self().real.toolchain(), made->options));
        if (!made->why_not.empty() || !was_accepted(*made, made->chain.back())) {
            // One that is refused has a handle, too, which says why.
            if (int const status = real_call("nvJitLinkCreate", handle, count, options); status != success)
                return status;
            made->real = *handle;
        }
        *handle = handles().add(made.get());
        made.release();
        return success;
    });
}

KILN_API int nvJitLinkDestroy(void** handle) {
    if (handle == nullptr || *handle == nullptr) return null_input();
    return with([&] {
        std::unique_ptr<link_record> const k{handles().take(*handle)};
        if (!k) return foreign("nvJitLinkDestroy", handle);
        *handle = nullptr;
        return success;
    });
}

KILN_API int nvJitLinkAddData(void* handle, int type, void const* data, std::size_t size, char const* name) {
    if (handle == nullptr || data == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        if (k == nullptr) return foreign("nvJitLinkAddData", handle, type, data, size, name);
        return add(*k, {.type = type,
                        .name = name == nullptr ? "" : name,
                        .named = name != nullptr,
                        .is_file = false,
                        .data = std::string{static_cast<char const*>(data), size}});
    });
}

KILN_API int nvJitLinkAddFile(void* handle, int type, char const* name) {
    if (handle == nullptr || name == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        if (k == nullptr) return foreign("nvJitLinkAddFile", handle, type, name);
        return add(*k, {.type = type, .name = name, .named = true, .is_file = true, .data = {}});
    });
}

KILN_API int nvJitLinkComplete(void* handle) {
    if (handle == nullptr) return null_input();
    return with([&] {
        auto* const k = handles().find(handle);
        return k == nullptr ? foreign("nvJitLinkComplete", handle) : complete(*k);
    });
}

#define KILN_OUTPUT(kind)                                                                       \
    KILN_API int nvJitLinkGet##kind##Size(void* handle, std::size_t* size) {                    \
        return with([&] { return size_of(handle, #kind, "nvJitLinkGet" #kind "Size", size); }); \
    }                                                                                           \
    KILN_API int nvJitLinkGet##kind(void* handle, void* data) {                                 \
        return with([&] { return data_of(handle, #kind, "nvJitLinkGet" #kind, data); });        \
    }
KILN_OUTPUT(LinkedCubin)
KILN_OUTPUT(LinkedPtx)
KILN_OUTPUT(LinkedLTOIR)
KILN_OUTPUT(ErrorLog)
KILN_OUTPUT(InfoLog)

namespace {
int unavailable() { return internal_error; }
}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) void* kiln_forward(char const* name, long* first) {
    void* to = nullptr;
    (void)with([&] {
        if (auto* const k = handles().find(reinterpret_cast<void*>(*first))) {
            (void)k->materialise();
            k->why_not = name;
            *first = reinterpret_cast<long>(k->real);
        }
        self().tell({.kind = happening::what::forwarded, .detail = name});
        to = self().real.symbol(name);
        return 0;
    });
    return to == nullptr ? reinterpret_cast<void*>(&unavailable) : to;
}

KILN_FORWARD(__nvJitLinkAPI);

// The names that nvJitLink.h really calls: a set for each minor version.
#define KILN_ALIAS(function, minor)                                                                                 \
    asm(".globl __nvJitLink" #function "_" #minor "\n.set __nvJitLink" #function "_" #minor ", nvJitLink" #function \
        "\n")
#define KILN_MINOR(minor)                  \
    KILN_ALIAS(Create, minor);             \
    KILN_ALIAS(Destroy, minor);            \
    KILN_ALIAS(AddData, minor);            \
    KILN_ALIAS(AddFile, minor);            \
    KILN_ALIAS(Complete, minor);           \
    KILN_ALIAS(GetLinkedCubinSize, minor); \
    KILN_ALIAS(GetLinkedCubin, minor);     \
    KILN_ALIAS(GetLinkedPtxSize, minor);   \
    KILN_ALIAS(GetLinkedPtx, minor);       \
    KILN_ALIAS(GetLinkedLTOIRSize, minor); \
    KILN_ALIAS(GetLinkedLTOIR, minor);     \
    KILN_ALIAS(GetErrorLogSize, minor);    \
    KILN_ALIAS(GetErrorLog, minor);        \
    KILN_ALIAS(GetInfoLogSize, minor);     \
    KILN_ALIAS(GetInfoLog, minor)
KILN_MINOR(12_0);
KILN_MINOR(12_1);
KILN_MINOR(12_2);
KILN_MINOR(12_3);
KILN_MINOR(12_4);
KILN_MINOR(12_5);
KILN_MINOR(12_6);
KILN_MINOR(12_7);
KILN_MINOR(12_8);
KILN_MINOR(12_9);
KILN_MINOR(13_0);
KILN_MINOR(13_1);
KILN_MINOR(13_2);
KILN_MINOR(13_3);
KILN_MINOR(13_4);
KILN_MINOR(13_5);
KILN_MINOR(13_6);
KILN_MINOR(13_7);
KILN_MINOR(13_8);
KILN_MINOR(13_9);
