// SPDX-License-Identifier: Apache-2.0
#include "intercept/real_program.hpp"

#include "compile/open_hook.hpp"

namespace kiln::intercept {

namespace {

constexpr char const* output_kinds[] = {"PTX", "CUBIN", "LTOIR", "OptiXIR", "NVVM", "TileIR"};

}  // namespace

real_program::~real_program() {
    if (handle_ != nullptr) library_.call("nvrtcDestroyProgram", 0, &handle_);
}

int real_program::create(foreign_program const& asked, std::optional<std::string> const& name,
                         flow_callback const& watcher) {
    std::vector<char const*> names, texts;
    for (auto const& [header, text] : asked.headers) {
        names.push_back(header.c_str());
        texts.push_back(text.c_str());
    }
    auto const count = static_cast<int>(names.size());
    int status = library_.call("nvrtcCreateProgram", nvrtc_builtin_failure, &handle_, asked.source.c_str(),
                               name ? name->c_str() : nullptr, count, count > 0 ? texts.data() : nullptr,
                               count > 0 ? names.data() : nullptr);
    if (status != 0) handle_ = nullptr;
    for (auto const& expression : asked.expressions) {
        if (status == 0)
            status = library_.call("nvrtcAddNameExpression", nvrtc_builtin_failure, handle_, expression.c_str());
    }
    if (status == 0 && watcher.function != nullptr) {
        status =
            library_.call("nvrtcSetFlowCallback", nvrtc_builtin_failure, handle_, watcher.function, watcher.payload);
    }
    return status;
}

int real_program::compile(std::vector<std::string> const& options) {
    std::vector<char const*> words;
    for (auto const& option : options) words.push_back(option.c_str());
    char const* const* const list = words.empty() ? nullptr : words.data();
    return library_.call("nvrtcCompileProgram", nvrtc_builtin_failure, handle_, static_cast<int>(words.size()), list);
}

int real_program::compile_alone(std::vector<std::string> const& options) {
    compile::without_capture const alone;
    return compile(options);
}

relative_names real_program::what_it_makes_of_relative_names() {
    int major = 0, minor = 0;
    bool const is_known = library_.call("nvrtcVersion", nvrtc_builtin_failure, &major, &minor) == 0;
    return is_known && std::pair{major, minor} < std::pair{13, 1} ? relative_names::left : relative_names::made_whole;
}

foreign_answer::output real_program::output(char const* kind) {
    foreign_answer::output out{.name = kind, .status = nvrtc_invalid_program, .data = {}};
    auto const getter = fmt::format("nvrtcGet{}", kind);
    std::size_t size = 0;
    out.status = library_.call((getter + "Size").c_str(), nvrtc_invalid_program, handle_, &size);
    if (out.status != 0) return out;
    out.data.resize(size);
    if (size > 0) out.status = library_.call(getter.c_str(), nvrtc_builtin_failure, handle_, out.data.data());
    return out;
}

std::string real_program::log() {
    std::size_t size = 0;
    std::string out;
    if (library_.call("nvrtcGetProgramLogSize", nvrtc_builtin_failure, handle_, &size) != 0) return out;
    out.resize(size);
    if (size > 0) library_.call("nvrtcGetProgramLog", nvrtc_builtin_failure, handle_, out.data());
    return out;
}

foreign_answer real_program::everything(std::vector<std::string> const& expressions) {
    foreign_answer out;
    for (auto const* kind : output_kinds) {
        // Versions differ in what there is.
        if (library_.symbol(fmt::format("nvrtcGet{}Size", kind).c_str()) != nullptr)
            out.outputs.push_back(output(kind));
    }
    out.log = log();
    for (auto const& expression : expressions) {
        char const* lowered = nullptr;
        int const status =
            library_.call("nvrtcGetLoweredName", nvrtc_builtin_failure, handle_, expression.c_str(), &lowered);
        if (status == 0 && lowered != nullptr) out.lowered.emplace_back(expression, lowered);
    }
    out.pch_status = library_.call("nvrtcGetPCHCreateStatus", 0, handle_);
    return out;
}

namespace {

foreign_product unusable(std::string why) {
    foreign_product none;
    none.entry.answer.log = std::move(why);
    return none;
}

}  // namespace

compile_watch::compile_watch(foreign_program const& asked, foreign_call const& call)
    : asked_{asked}, call_{call}, own_{own_texts(asked, call.options)}, capture_{call.roots, own_} {
    if (own_.may_name_the_time()) objection_ = "it may ask for the time";
    else if (call.is_virtual() && own_.may_name_a_file()) objection_ = may_ask_its_name;
}

void compile_watch::begin(calls whom) {
    if (whom == calls::the_program) active_here_.emplace(capture_);
    else active_.emplace(capture_);
}

foreign_product compile_watch::end(real_program& made, int status) {
    bool const is_all_seen = !active_here_ || active_here_->has_seen_all();
    active_.reset();
    active_here_.reset();
    if (!is_all_seen) return unusable("something was read on another thread");
    capture_.finish(made.what_it_makes_of_relative_names());
    if (capture_.fault()) return unusable(capture_.fault()->message());
    foreign_product out;
    out.status = status;
    out.entry = {.looks = capture_.looks(), .answer = made.everything(asked_.expressions)};
    out.known = capture_.known();
    out.how = status == 0 ? foreign_product::outcome::made : foreign_product::outcome::failed;
    if (!call_.is_virtual()) return out;
    // Where the real names cannot be put back.
    if (tells_virtual_names(with_real_paths(out.entry.answer.log, call_.roots)))
        return unusable("its log tells where its files are");
    if (status != 0) return out;
    for (auto const& one : out.entry.answer.outputs) {
        if (tells_virtual_names(one.data)) return unusable("it tells where its files are");
    }
    return out;
}

foreign_product compile_watched(real_program& fresh, foreign_program const& asked, foreign_call const& call) {
    compile_watch watch{asked, call};
    if (!watch.objection().empty()) return unusable(watch.objection());
    int status = fresh.create(asked, call.name, {});
    if (status == 0) {
        fresh.find_compiler();
        watch.begin(compile_watch::calls::nobody);
        status = fresh.compile(call.options);
    }
    return watch.end(fresh, status);
}

}  // namespace kiln::intercept
