// SPDX-License-Identifier: Apache-2.0
// How a program is compiled: from the options to the answer. See nvrtc.cpp.
#include "nvrtc_program.hpp"

#include "compile/elf.hpp"
#include "compile/internal_names.hpp"
#include "compile/open_hook.hpp"
#include "cuda/nvrtc_api.hpp"
#include "intercept/same_ptx.hpp"
#include "intercept/shut_in.hpp"

#include <algorithm>

namespace kiln::intercept {

namespace {

// As the compiler calls it: by the user's name for it, which may have links in it, where that leads there.
// Empty where it is gone: then no worker can go there, either.
std::string working_directory() {
    std::error_code nowhere;
    auto const* const set = std::getenv("PWD");
    std::string users = set == nullptr ? "" : set;
    // Of /proc/self every process has its own.
    bool const is_a_place = users.starts_with('/') && !users.starts_with("/proc/");
    if (is_a_place && std::filesystem::equivalent(users, ".", nowhere)) return users;
    return std::filesystem::current_path(nowhere).native();
}

// Null: there is no library any more.
auto real_compiler() {
    return reinterpret_cast<decltype(next_call::compile)>(self().real.symbol("nvrtcCompileProgram"));
}

void point_at(std::vector<char const*>& list, std::vector<std::string> const& words, next_call& next) {
    for (auto const& word : words) list.push_back(word.c_str());
    next.count = static_cast<int>(list.size());
    next.options = list.empty() ? nullptr : list.data();
}

// By the real library, as the program asked for it.
class compile_alone final : public compile_steps {
public:
    compile_alone(program& p, std::vector<std::string> words) : words_{std::move(words)} {
        next.program = p.as_real_again();
        next.cancelling = &p.cancelling;
        point_at(list_, words_, next);
    }
    compile_alone(void* real, int count, char const* const* options) {
        next.program = real;
        next.count = count;
        next.options = options;
    }

    static compile_begun begin(std::unique_ptr<compile_alone> whole) {
        whole->next.compile = real_compiler();
        if (whole->next.compile == nullptr) return {.status = nvrtc_builtin_failure, .steps = nullptr};
        whole->nobody_watches_.emplace();
        return {.status = nvrtc_success, .steps = std::move(whole)};
    }

    [[nodiscard]] std::optional<int> go_on(int said) override { return said; }

private:
    std::vector<std::string> words_;
    std::vector<char const*> list_;
    std::optional<compile::without_capture> nobody_watches_;
};

int forbid_shut_in(program& p) {
    p.forget_answer();
    p.answer.emplace();
    p.answer->log = fmt::format(
        "kiln run --jit=forbid: '{}' cannot be answered: the program is under a filter of system calls of its own.\n",
        name_for_people(p.asked));
    p.answer->log += '\0';
    return nvrtc_compilation;
}

// One compile on its way: from the options to the answer.
class compile_request final : public compile_steps {
public:
    compile_request(program& p, std::vector<std::string> options) : p_{p}, options_{std::move(options)} {
        // A callback sees how the compile goes: it is called as if we were not there.
        if (auto hidden = p.watcher.function == nullptr ? virtual_call(p.asked, options_) : std::nullopt)
            calls_.push_back(*std::move(hidden));
        calls_.push_back(literal_call(p.asked, options_, directory_));
    }

    // As go_on().
    [[nodiscard]] std::optional<int> run();
    [[nodiscard]] std::optional<int> go_on(int said) override;

private:
    [[nodiscard]] foreign_id id_of(foreign_call const& call) const;
    // What is recorded, waited for and named to people: the same whatever the folders are called this time.
    [[nodiscard]] base::digest request() const { return id_of(calls_.front()).digests.request; }
    [[nodiscard]] bool answered();
    void take_kept(foreign_call const& call, foreign_hit hit);
    [[nodiscard]] bool is_confirmed(foreign_call const& call, foreign_answer const& answer,
                                    std::optional<store::address> const& at);
    [[nodiscard]] bool is_refuted(foreign_call const& call, foreign_product const& made);
    [[nodiscard]] bool is_unusable(foreign_product const& made);
    [[nodiscard]] std::string names_told(foreign_call const& call) const;
    [[nodiscard]] std::optional<int> make();
    [[nodiscard]] std::optional<int> begin_to_make();
    [[nodiscard]] std::optional<int> made_here(foreign_call const& call, real_program& by, foreign_product made,
                                               std::chrono::milliseconds cost);
    [[nodiscard]] foreign_job as_job(foreign_call const& call) const;
    [[nodiscard]] std::optional<int> make_elsewhere();
    [[nodiscard]] std::optional<int> make_here(foreign_call const& call);
    [[nodiscard]] int take(foreign_call const& call, foreign_product product, std::chrono::milliseconds cost,
                           int maker);
    [[nodiscard]] std::optional<int> without_us(std::string why);
    [[nodiscard]] int forbidden();
    void tell(happening h) const {
        h.program = name_for_people(p_.asked);
        h.target = target_in(options_);
        h.took = watch_.so_far();
        h.waited = waited_;
        self().tell(std::move(h));
    }

    program& p_;
    std::vector<std::string> const options_;
    std::string const directory_ = working_directory();
    std::vector<foreign_call> calls_;  // in the order they are tried
    stopwatch watch_;
    std::chrono::microseconds waited_{};  // for others that were making it
    std::string why_ = "new";
    std::string unusable_;  // why one of the calls did not do
    bool is_hiding_wrong_ = false;
    bool is_kept_ = false;  // others find what was made
    // Of one with a watcher: what it gets unless it wants to cancel, or what is being made.
    std::optional<foreign_hit> offered_;
    std::vector<char const*> list_;
    std::optional<stopwatch> making_;
    std::optional<compile_watch> seeing_;
    std::unique_ptr<compile_steps> alone_;  // it is left to the library
};

foreign_id compile_request::id_of(foreign_call const& call) const {
    auto const toolchain = self().real.toolchain();
    return {.digests = digests_of(p_.asked, call, toolchain),
            .kind = std::string{kind_nvrtc},
            .name = name_for_people(p_.asked),
            .target = target_in(options_),
            .toolchain = toolchain,
            .by = self().program()};
}

std::optional<int> compile_request::without_us(std::string why) {
    if (self().jit() == jit_policy::forbid) {
        why_ = std::move(why);
        return forbidden();
    }
    tell({.kind = happening::what::forwarded, .detail = std::move(why)});
    auto begun = compile_alone::begin(std::make_unique<compile_alone>(p_, options_));
    if (!begun.steps) return begun.status;
    alone_ = std::move(begun.steps);
    next = alone_->next;
    return std::nullopt;
}

// But for what NVRTC does in one way or another from compile to compile.
bool means_the_same(foreign_answer::output const& one, foreign_answer::output const& other) {
    if (one == other) return true;
    if (one.status != other.status) return false;
    if (one.name == "PTX")
        return is_same_ptx(compile::without_compile_marks(one.data), compile::without_compile_marks(other.data));
    auto const essence = compile::cubin_essence(base::as_bytes(one.data));
    return !essence.empty() && essence == compile::cubin_essence(base::as_bytes(other.data));
}

auto without_marks(std::vector<std::pair<std::string, std::string>> names) {
    for (auto& [expression, name] : names) name = compile::without_compile_marks(name);
    return names;
}

// ptxas, asked to say much, says how long it took; and nothing at all where NVRTC finds what it wants in a cache of its own (12.9 and later,
// beside a driver). What it says of a kernel follows from the cubin.
std::string without_notes(std::string_view log) {
    std::string out;
    while (!log.empty()) {
        auto const line = log.substr(0, log.find('\n') == log.npos ? log.size() : log.find('\n') + 1);
        log.remove_prefix(line.size());
        if (!line.starts_with("ptxas info ") && !line.starts_with("ptxas         . ")) out += line;
    }
    while (out.ends_with('\0')) out.pop_back();  // of them it has one more where there are notes
    return out;
}

// What is not the same in two answers: "PTX, names"; empty: nothing.
std::string differences(foreign_answer const& made, foreign_answer const& kept) {
    std::string out;
    auto const add = [&](std::string_view what) { (out += out.empty() ? "" : ", ") += what; };
    for (auto const& one : made.outputs) {
        auto const* const other = kept.find(one.name);
        if (other == nullptr || !means_the_same(one, *other)) add(one.name);
    }
    if (without_marks(made.lowered) != without_marks(kept.lowered)) add("names");
    if (without_notes(made.log) != without_notes(kept.log)) add("log");
    return out;
}

// Found in NVRTC's own cache, nothing is made again.
std::vector<std::string> past_its_cache(std::vector<std::string> options) {
    auto const* const about = compiler_facts();
    bool const has_cache = about != nullptr && cuda::has_nvrtc_cache(about->major, about->minor);
    auto const is_said = [](std::string_view o) { return o == "-no-cache" || o == "--no-cache"; };
    if (has_cache && std::ranges::none_of(options, is_said)) options.emplace_back("--no-cache");
    return options;
}

// Made again by the real library, in the program's own words. What differs is not served.
bool compile_request::is_confirmed(foreign_call const& call, foreign_answer const& answer,
                                   std::optional<store::address> const& at) {
    auto shown = answer;
    shown.log = with_real_paths(shown.log, call.roots);
    real_program again{self().real};
    bool const compiles =
        again.create(p_.asked, p_.asked.name, {}) == 0 && again.compile_alone(past_its_cache(options_)) == 0;
    auto what =
        compiles ? differences(again.everything(p_.asked.expressions), shown) : std::string{"it does not compile"};
    bool const is_same = what.empty();
    if (!is_same && at) what += self().remove(*at);
    tell({.kind = is_same ? happening::what::verified : happening::what::different, .at = at, .detail = what});
    return is_same;
}

// What is made for the first time is compared, too.
bool compile_request::is_refuted(foreign_call const& call, foreign_product const& made) {
    if (!self().verifies() || made.how != foreign_product::outcome::made) return false;
    if (is_confirmed(call, made.entry.answer, {})) return false;
    unusable_ = "made again it differs";
    return true;
}

bool compile_request::is_unusable(foreign_product const& made) {
    if (made.how != foreign_product::outcome::unusable) return false;
    unusable_ = made.entry.answer.log;
    return true;
}

// Why it is kept under the program's own names for its files, where it could have been under none.
std::string compile_request::names_told(foreign_call const& call) const {
    if (call.is_virtual()) return {};
    auto why = unusable_;
    if (calls_.size() == 1 && has_a_place(p_.asked)) {
        if (tells_directory(options_)) why = "debug information or intermediate code tells them";
        else if (asks_for_names(p_.asked, options_)) why = may_ask_its_name;
    }
    return why.empty() ? why : std::string{own_names_mark} + why;
}

bool compile_request::answered() {
    for (auto const& call : calls_) {
        auto found = self().store.find(id_of(call), call.roots);
        if (!found.hit) {
            if (found.why != "new") why_ = std::move(found.why);
            continue;
        }
        if (self().verifies() && !is_confirmed(call, found.hit->answer, found.hit->at)) {
            is_hiding_wrong_ = is_hiding_wrong_ || call.is_virtual();
            continue;
        }
        // Who watches the compile may want none.
        if (p_.watcher.function != nullptr) {
            offered_ = std::move(found.hit);
            return false;
        }
        take_kept(call, *std::move(found.hit));
        return true;
    }
    // Names made a difference where they should not: from here on the compiler is called as the program did.
    if (is_hiding_wrong_) std::erase_if(calls_, [](foreign_call const& call) { return call.is_virtual(); });
    return false;
}

void compile_request::take_kept(foreign_call const& call, foreign_hit hit) {
    tell({.kind = happening::what::answered, .cost = hit.cost, .at = hit.at});
    p_.answer = std::move(hit.answer);
    p_.tried = options_;
    p_.answer->log = with_real_paths(std::move(p_.answer->log), call.roots);
}

int compile_request::take(foreign_call const& call, foreign_product product, std::chrono::milliseconds cost,
                          int maker) {
    auto& answer = product.entry.answer;
    if (product.how == foreign_product::outcome::failed) {
        self().store.count_failure();
        tell({.kind = happening::what::failed,
              .maker = maker,
              .request = request(),
              .detail = fmt::format("status {}", product.status)});
        if (p_.real != nullptr && !call.is_virtual()) return product.status;  // it says everything itself
        answer.log = with_real_paths(std::move(answer.log), call.roots);
        p_.failure = std::move(answer);
        p_.tried = options_;
        return product.status;
    }
    auto const kept = self().store.keep(id_of(call), product.entry, cost);
    is_kept_ = kept.has_value();
    happening made{.kind = happening::what::made, .maker = maker, .detail = why_ + names_told(call)};
    if (!kept) made.request = request();
    tell(told_of(kept, std::move(made)));
    for (auto const& one : product.entry.looks) {
        // The folder of the source is another one next time.
        if (!one.content || one.from == look::root::source_directory) continue;
        if (auto path = call.roots.locate(one)) self().store.headers().will_be_needed(*std::move(path));
    }
    self().share_headers(std::move(product.known));
    answer.log = with_real_paths(std::move(answer.log), call.roots);
    p_.answer = std::move(answer);
    p_.tried = options_;
    return nvrtc_success;
}

foreign_job compile_request::as_job(foreign_call const& call) const {
    return {.library = self().real.path(),
            .toolchain = self().real.toolchain(),
            .directory = directory_,
            .seen_from = viewpoint::of_this_thread(),
            .program = p_.asked,
            .call = call};
}

// nullopt: there is no worker, or what it made cannot be used.
std::optional<int> compile_request::make_elsewhere() {
    if (p_.watcher.function != nullptr) return std::nullopt;
    // A child of fork() may find the compiler in its own process as a thread that it has not left it: locked.
    auto const if_busy = compile::was_compiler_left_busy() ? worker_line::busy::wait : worker_line::busy::give_up;
    for (auto const& call : calls_) {
        stopwatch compiling;
        auto made = self().workers.compile(as_job(call), if_busy);
        // A sandbox of the program's is not the worker's: what it would have been refused must not be what it gets.
        if (!made || !may_read(made->product.entry.looks, call.roots)) return std::nullopt;
        if (is_unusable(made->product) || is_refuted(call, made->product)) continue;
        return take(call, std::move(made->product), compiling.ms(), made->maker);
    }
    return std::nullopt;
}

std::optional<int> compile_request::made_here(foreign_call const& call, real_program& by, foreign_product made,
                                              std::chrono::milliseconds cost) {
    if (is_unusable(made) || is_refuted(call, made)) return std::nullopt;
    // A failure is not kept: the real program answers what is asked next, but for the names in its log.
    if (made.how == foreign_product::outcome::failed) p_.real = by.release();
    return take(call, std::move(made), cost, 0);
}

std::optional<int> compile_request::make_here(foreign_call const& call) {
    stopwatch compiling;
    real_program fresh{self().real};
    auto made = compile_watched(fresh, p_.asked, call);
    return made_here(call, fresh, std::move(made), compiling.ms());
}

std::optional<int> compile_request::make() {
    if (auto const status = make_elsewhere()) return *status;
    if (!self().real.can_be_watched()) return without_us("what the compiler reads cannot be seen");
    if (p_.watcher.function != nullptr) return begin_to_make();
    for (auto const& call : calls_) {
        if (auto const status = make_here(call)) return *status;
    }
    return without_us("it cannot be kept: " + unusable_);
}

// Where the watcher leaves it by an exception, the program has the real one, as far as that is.
std::optional<int> compile_request::begin_to_make() {
    auto const& call = calls_.back();
    making_.emplace();
    seeing_.emplace(p_.asked, call);
    unusable_ = seeing_->objection();
    next = {};
    next.compile = real_compiler();
    next.cancelling = &p_.cancelling;
    if (!unusable_.empty() || next.compile == nullptr) return without_us("it cannot be kept: " + unusable_);
    real_program fresh{self().real};
    int const status = fresh.create(p_.asked, call.name, p_.relay());
    next.program = p_.real = fresh.release();
    if (status != 0) return go_on(status);
    point_at(list_, call.options, next);
    seeing_->begin(compile_watch::calls::the_program);
    return std::nullopt;
}

std::optional<int> compile_request::go_on(int said) {
    if (alone_) return alone_->go_on(said);
    if (seeing_) {
        auto const& call = calls_.back();
        real_program made{self().real, std::exchange(p_.real, nullptr)};
        auto product = seeing_->end(made, said);
        if (auto const status = made_here(call, made, std::move(product), making_->ms())) return status;
        return without_us("it cannot be kept: " + unusable_);
    }
    if (said == 0) {
        take_kept(calls_.back(), *std::move(offered_));
        return nvrtc_success;
    }
    if (self().jit() == jit_policy::forbid) return forbidden();
    p_.wish = said;
    return make();
}

int compile_request::forbidden() {
    auto const asked = request();
    tell({.kind = happening::what::forbidden, .request = asked, .detail = why_});
    self().store.count_failure();
    p_.forget_answer();
    p_.answer.emplace();
    p_.answer->log = fmt::format(
        "kiln run --jit=forbid: '{}' for {} is not kept ({}) and would have to be compiled.\n"
        "request {} by {}\n",
        name_for_people(p_.asked), target_in(options_), why_, asked.hex(), self().real.toolchain());
    p_.answer->log += '\0';
    return nvrtc_compilation;
}

std::optional<int> compile_request::run() {
    if (p_.real != nullptr || p_.answer || p_.failure) return without_us("compiled again");
    if (auto why = self().not_serving_otherwise(); !why.empty()) return without_us(std::move(why));
    if (auto const option = unkeepable_option(options_); !option.empty()) return without_us(std::string{option});
    if (depends_on_the_time(p_.asked, options_)) return without_us("it asks for the time");
    if (directory_.empty() && tells_directory(options_)) return without_us("the working directory is gone");
    if (self().records_requests()) self().record(request(), as_job(calls_.back()));
    if (answered()) return nvrtc_success;
    if (offered_) {
        next.watcher = p_.watcher;
        return std::nullopt;
    }
    if (self().jit() == jit_policy::forbid) return forbidden();
    // Who watches is asked at once, and does not wait for others.
    if (p_.watcher.function != nullptr) return make();
    auto const asked = request();
    foreign_store::thread_end const end{self().store};
    for (;;) {
        stopwatch waiting;
        auto leading = self().store.lead(asked);
        auto const outcome = leading.outcome();
        waited_ += waited_for_another(leading, waiting.so_far());
        bool const others_were_here =
            outcome == store::flight_outcome::leader || outcome == store::flight_outcome::finished;
        if (outcome == store::flight_outcome::finished) self().take_shared_headers();
        if (others_were_here && answered()) return nvrtc_success;
        // Whoever led has left nothing, and would not have, had it had more time: one after the other is no faster.
        if (outcome == store::flight_outcome::finished && !leading.gave_up()) continue;
        auto const status = make();
        if (!is_kept_) leading.give_up();
        return status;
    }
}

}  // namespace

compile_begun compile_program(program& p, std::vector<std::string> options) {
    if (is_shut_in()) {
        if (self().jit() == jit_policy::forbid) return {.status = forbid_shut_in(p), .steps = nullptr};
        return compile_alone::begin(std::make_unique<compile_alone>(p, std::move(options)));
    }
    auto request = std::make_unique<compile_request>(p, std::move(options));
    if (auto const status = request->run()) return {.status = *status, .steps = nullptr};
    return {.status = nvrtc_success, .steps = std::move(request)};
}

compile_begun compile_as_it_is(void* real, int count, char const* const* options) {
    return compile_alone::begin(std::make_unique<compile_alone>(real, count, options));
}

}  // namespace kiln::intercept
