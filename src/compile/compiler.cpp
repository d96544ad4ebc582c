// SPDX-License-Identifier: Apache-2.0
// run_job for compile jobs: one NVRTC program from unit to artifact.
#include "compile/compiler.hpp"

#include "base/clock.hpp"
#include "compile/carried_headers.hpp"
#include "compile/cpp_names.hpp"
#include "compile/elf.hpp"
#include "compile/environment.hpp"
#include "compile/internal_names.hpp"
#include "compile/open_hook.hpp"
#include "compile/options.hpp"
#include "compile/precompiling.hpp"
#include "compile/program_end.hpp"
#include "compile/standard_headers.hpp"
#include "compile/toolchain.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unistd.h>

namespace kiln::compile {

namespace {

class program {
public:
    program(cuda::nvrtc_api const& api, nvrtcProgram handle) : api_{api}, handle_{handle} {}
    ~program() { api_.destroy_program(&handle_); }
    program(program const&) = delete;
    program& operator=(program const&) = delete;
    [[nodiscard]] nvrtcProgram get() const noexcept { return handle_; }

    [[nodiscard]] std::string log() const {
        std::size_t size = 0;
        if (api_.get_program_log_size(handle_, &size) != NVRTC_SUCCESS || size <= 1) return {};
        std::string out(size, '\0');
        if (api_.get_program_log(handle_, out.data()) != NVRTC_SUCCESS) return {};
        out.resize(size - 1);
        return out;
    }

private:
    cuda::nvrtc_api const& api_;
    nvrtcProgram handle_;
};

error nvrtc_error(cuda::nvrtc_api const& api, nvrtcResult status, std::string_view what) {
    auto const code = status == NVRTC_ERROR_OUT_OF_MEMORY ? errc::out_of_memory : errc::compile_failed;
    return fail(code, "{}: {}", what, api.words(status)).with_status(static_cast<int>(status));
}

include_roots roots_of(job const& j, compile_job const& c, normalized_options const& options) {
    auto out = compile::roots_of(c.unit);
    out.include_directories.insert(out.include_directories.end(), options.include_dirs.begin(),
                                   options.include_dirs.end());
    out.toolkit = j.tools.toolkit_includes;
    out.real_paths = options.debug;
    return out;
}

bool takes_seed(cuda::nvrtc_api const& api) { return std::pair{api.major, api.minor} >= std::pair{12, 9}; }

bool names_seed(std::span<std::string const> options) {
    return std::ranges::any_of(options, [](std::string const& o) { return o.find("frandom-seed") != o.npos; });
}

std::vector<std::string> arguments_of(cuda::nvrtc_api const& api, compile_job const& c,
                                      normalized_options const& options, include_roots const& roots) {
    auto out = options.arguments;
    out.push_back("--gpu-architecture=" + c.target.arch.name());
    if (c.target.kind == artifact_kind::ltoir) out.emplace_back("-dlto");
    for (auto& include : virtual_include_options(roots)) out.push_back(std::move(include));
    out.insert(out.end(), c.unit.uncached_options.begin(), c.unit.uncached_options.end());
    // One key, the same bytes whoever compiles it: bundles that were built apart can be merged and compared.
    if (takes_seed(api) && !names_seed(out)) out.emplace_back(fixed_seed);
    return out;
}

result<std::vector<std::byte>> image_of(cuda::nvrtc_api const& api, program const& p, artifact_kind kind) {
    auto get_size = kind == artifact_kind::cubin ? api.get_cubin_size
                    : kind == artifact_kind::ptx ? api.get_ptx_size
                                                 : api.get_ltoir_size;
    auto get = kind == artifact_kind::cubin ? api.get_cubin : kind == artifact_kind::ptx ? api.get_ptx : api.get_ltoir;
    std::size_t size = 0;
    if (auto const status = get_size(p.get(), &size); status != NVRTC_SUCCESS)
        return nvrtc_error(api, status, name_of(kind));
    if (size <= 1)
        return fail(errc::compile_failed, "the compiler reported success and gave an empty {}", name_of(kind));
    std::vector<std::byte> out(size);
    if (auto const status = get(p.get(), reinterpret_cast<char*>(out.data())); status != NVRTC_SUCCESS) {
        return nvrtc_error(api, status, name_of(kind));
    }
    return out;
}

// Kernels nobody named get the name they have in the source; overloads, which share one, keep the image's.
void name_as_in_source(std::vector<kernel_info>& kernels) {
    std::map<std::string, int> uses;
    for (auto& k : kernels) ++uses[k.name = cpp_name(k.lowered)];
    for (auto& k : kernels) {
        if (uses[k.name] > 1) k.name = k.lowered;
    }
}

// The artifact's kernels: as asked for, or all that are in the image when none was named.
result<void> describe_kernels(cuda::nvrtc_api const& api, program const& p, kiln::unit const& u, artifact& out) {
    KILN_TRY(auto contents, read_image(out, u.exports));
    out.constants = std::move(contents.constants);
    if (u.kernels.empty()) {
        out.kernels = std::move(contents.kernels);
        name_as_in_source(out.kernels);
        if (out.kernels.empty() && out.target.kind != artifact_kind::ltoir) {
            return fail(errc::compile_failed,
                        "there is no kernel in it; a template is made by naming what is wanted of it, such as "
                        "\"scale<float>\", in unit::kernels (kiln compile --name)");
        }
        return check_exports(u.exports, out);
    }
    for (auto const& name : u.kernels) {
        char const* lowered = nullptr;
        if (auto const status = api.get_lowered_name(p.get(), name.c_str(), &lowered); status != NVRTC_SUCCESS) {
            return nvrtc_error(api, status, name);
        }
        KILN_TRY(auto info, kernel_named(contents.kernels, name, lowered, out.target.kind));
        out.kernels.push_back(std::move(info));
    }
    return check_exports(u.exports, out);
}

// What the compile failed of. Warnings may come before it, and a warning may speak of errors.
std::string_view first_error(std::string_view log) {
    for (auto rest = log; !rest.empty();) {
        auto const line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        for (std::string_view const sign : {": error:", ": error #", ": catastrophic error:"}) {
            if (auto const at = line.find(sign); at < line.find(": warning")) return line;
        }
    }
    return log.substr(0, log.find('\n'));
}

error compile_error(cuda::nvrtc_api const& api, nvrtcResult status, compile_job const& c, include_roots const& roots,
                    std::string log) {
    return nvrtc_error(api, status,
                       fmt::format("unit '{}' does not compile: {}{}", c.unit.name, first_error(log),
                                   missing_header_advice(log, roots.toolkit)))
        .with_log(std::move(log));
}

result<nvrtcProgram> create_program(cuda::nvrtc_api const& api, kiln::unit const& u, include_roots const& roots) {
    std::vector<char const*> texts;
    std::vector<char const*> names;
    for (auto const& h : u.headers) {
        texts.push_back(h.text.c_str());
        names.push_back(h.name.c_str());
    }
    nvrtcProgram handle = nullptr;
    auto const status = api.create_program(&handle, u.source.c_str(), virtual_source_name(u.name, roots).c_str(),
                                           static_cast<int>(names.size()), texts.data(), names.data());
    if (status != NVRTC_SUCCESS) return nvrtc_error(api, status, u.name);
    return handle;
}

}  // namespace

result<cubin_contents> read_image(artifact const& a, std::span<std::string const> exports) {
    cubin_contents out;
    if (a.target.kind == artifact_kind::cubin) return read_cubin(a.image, a.target.arch.number(), exports);
    if (a.target.kind == artifact_kind::ptx) {
        for (auto& name : ptx_entries(base::as_text(a.image))) out.kernels.push_back({name, name});
        std::ranges::sort(out.kernels, {}, &kernel_info::lowered);
    }
    return out;
}

result<kernel_info> kernel_named(std::span<kernel_info const> found, std::string const& name,
                                 std::string const& lowered, artifact_kind kind) {
    if (kind == artifact_kind::ltoir) return kernel_info{name, lowered};
    auto const at = std::ranges::find(found, lowered, &kernel_info::lowered);
    if (at == found.end()) {
        return fail(errc::compile_failed, "the image has no kernel '{}' ('{}'); it has {}", name, lowered,
                    found.size());
    }
    auto info = *at;
    info.name = name;
    return info;
}

result<void> check_exports(std::span<std::string const> exports, artifact const& a) {
    if (a.target.kind == artifact_kind::ltoir) return {};
    for (auto const& name : exports) {
        // The initial bytes are read from cubins alone; that there is such a variable, a text of PTX says as well.
        bool const is_there = a.target.kind == artifact_kind::ptx ? has_ptx_constant(base::as_text(a.image), name)
                                                                  : a.find_constant(name) != nullptr;
        if (!is_there) {
            return fail(errc::compile_failed, "the image has no constant '{}'; declare it extern \"C\" __constant__",
                        name);
        }
    }
    return {};
}

result<product> run_compile(job const& j, compile_job const& c, precompiled_headers* kept) {
    base::stopwatch const watch;
    KILN_CHECK(check_compilers());
    KILN_TRY(auto const api, cuda::load_nvrtc(j.tools.nvrtc, watcher_of_exit_functions()));
    keep_exit_functions(api->library.handle);
    KILN_TRY(auto const options, normalize(c.unit.options));
    auto roots = roots_of(j, c, options);
    bool const seen = hook_opens(api->library.handle).has_value();
    if (!seen) roots.real_paths = true;
    KILN_TRY(auto const handle, create_program(*api, c.unit, roots));
    program const p{*api, handle};
    for (auto const& name : c.unit.kernels) {
        if (auto const status = api->add_name_expression(p.get(), name.c_str()); status != NVRTC_SUCCESS) {
            return nvrtc_error(*api, status, name);
        }
    }
    artifact out{.unit = c.unit.name, .target = c.target, .toolchain = toolchain_text(*api)};
    out.compiler = fmt::format("NVRTC {}.{}", api->major, api->minor);
    include_capture capture{roots};
    precompiling headers{seen ? kept : nullptr,
                         {.api = *api, .work = j, .roots = roots, .source = virtual_source_name(c.unit.name, roots)},
                         capture};
    auto const wanted = arguments_of(*api, c, options, roots);
    auto arguments = without_threads_that_misread(wanted);
    bool const is_as_wanted = arguments.size() == wanted.size();
    for (auto& more : headers.arguments()) arguments.push_back(std::move(more));
    std::vector<char const*> raw;
    for (auto const& a : arguments) raw.push_back(a.c_str());
    auto const status = [&] {
        scoped_capture const active{headers};
        return api->compile_program(p.get(), static_cast<int>(raw.size()), raw.data());
    }();
    // A header that could not be read looks to the compiler like one that is not there: whatever came of it is wrong.
    if (auto const& why = capture.fault()) return error{*why}.within(fmt::format("unit '{}'", c.unit.name));
    auto log = headers.finish(p.get(), status, p.log());
    if (!log) return run_compile(j, c, nullptr);
    out.log = with_real_paths(*std::move(log), roots);
    bool const is_all_seen = seen && is_as_wanted && result_changing_variable(environ).empty();
    if (status != NVRTC_SUCCESS) {
        if (kept != nullptr && is_all_seen) kept->read = capture.dependencies();
        return compile_error(*api, status, c, roots, std::move(out.log));
    }
    out.dependencies = capture.dependencies();
    if (!is_all_seen) out.dependencies.push_back(unseen_reads());
    KILN_TRY(out.image, image_of(*api, p, c.target.kind));
    if (auto described = describe_kernels(*api, p, c.unit, out); !described) {
        return std::move(described).error().within(fmt::format("unit '{}' for {}", c.unit.name, c.target.arch.name()));
    }
    out.compile_ms = watch.ms();
    return out;
}

result<void> check_product(job const& j, product const& made) {
    auto const lie = [&](std::string_view what) {
        return fail(errc::corrupt, "worker protocol: the answer to '{}' has {}", j.name(), what);
    };
    auto const& [target, kernels, exports] = std::visit(
        [](auto const& task) {
            using task_type = std::remove_cvref_t<decltype(task)>;
            if constexpr (std::is_same_v<task_type, compile_job>)
                return std::tie(task.target, task.unit.kernels, task.unit.exports);
            else return std::tie(task.target, task.kernels, task.exports);
        },
        j.task);
    if (made.unit != j.name()) return lie("another name");
    if (!(made.target == target)) return lie("another target");
    if (!made.toolchain.starts_with(std::holds_alternative<compile_job>(j.task) ? "nvrtc " : "nvjitlink "))
        return lie("another compiler");
    if (!kernels.empty() && !std::ranges::equal(made.kernels, kernels, {}, &kernel_info::name))
        return lie("other kernels");
    KILN_CHECK(read_image(made, exports));
    return {};
}

namespace {

result<product> run(job const& j, precompiled_headers* kept) {
    KILN_CHECK(check_environment(environ, trust_of_process()));
    if (auto const* c = std::get_if<compile_job>(&j.task)) return run_compile(j, *c, kept);
    return run_link(j, std::get<link_job>(j.task));
}

}  // namespace

result<product> run_job(job const& j) { return run(j, nullptr); }

result<product> run_job_with(precompiled_headers& kept, job const& j) {
    kept.last = header_use::plain;
    kept.read.reset();
    return run(j, &kept);
}

std::string const& job::name() const noexcept {
    if (auto const* c = std::get_if<compile_job>(&task)) return c->unit.name;
    return std::get<link_job>(task).name;
}

}  // namespace kiln::compile
