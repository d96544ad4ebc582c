// SPDX-License-Identifier: Apache-2.0
// run_job for link jobs: LTO-IR, PTX or cubins into one image by nvJitLink.
#include "base/clock.hpp"
#include "compile/compiler.hpp"
#include "compile/environment.hpp"
#include "compile/includes.hpp"
#include "compile/options.hpp"
#include "compile/program_end.hpp"
#include "compile/toolchain.hpp"

#include <unistd.h>

namespace kiln::compile {

namespace {

class link_session {
public:
    link_session(cuda::nvjitlink_api const& api, nvJitLinkHandle handle) : api_{api}, handle_{handle} {}
    ~link_session() { api_.destroy(&handle_); }
    link_session(link_session const&) = delete;
    link_session& operator=(link_session const&) = delete;
    [[nodiscard]] nvJitLinkHandle get() const noexcept { return handle_; }

    [[nodiscard]] std::string log() const {
        return text(api_.get_error_log_size, api_.get_error_log) + text(api_.get_info_log_size, api_.get_info_log);
    }

private:
    [[nodiscard]] std::string text(nvJitLinkResult (*get_size)(nvJitLinkHandle, std::size_t*),
                                   nvJitLinkResult (*get_text)(nvJitLinkHandle, char*)) const {
        std::size_t size = 0;
        if (get_size(handle_, &size) != NVJITLINK_SUCCESS || size <= 1) return {};
        std::string out(size, '\0');
        if (get_text(handle_, out.data()) != NVJITLINK_SUCCESS) return {};
        out.resize(out.find('\0') == out.npos ? size : out.find('\0'));
        return out;
    }
    cuda::nvjitlink_api const& api_;
    nvJitLinkHandle handle_;
};

error link_error(link_job const& l, nvJitLinkResult status, std::string_view what, std::string log) {
    auto const first = log.substr(0, log.find('\n'));
    return fail(errc::link_failed, "'{}' for {} does not link: {}: {} {}", l.name, l.target.arch.name(), what,
                cuda::words(status), first)
        .with_status(static_cast<int>(status))
        .with_log(std::move(log));
}

std::vector<std::string> arguments_of(link_job const& l) {
    std::vector<std::string> out{"-arch=" + l.target.arch.name()};
    bool lto = false;
    for (auto const& in : l.inputs) lto = lto || in.kind == artifact_kind::ltoir;
    if (lto) out.emplace_back("-lto");
    if (l.target.kind == artifact_kind::ptx) out.emplace_back("-ptx");
    if (lto && !l.kernels.empty()) {
        std::string used;
        for (auto const& k : l.kernels) used += (used.empty() ? "" : ",") + k;
        out.push_back("-kernels-used=" + used);
        if (!l.exports.empty()) {
            std::string variables;
            for (auto const& e : l.exports) variables += (variables.empty() ? "" : ",") + e;
            out.push_back("-variables-used=" + variables);
        }
        out.emplace_back("-optimize-unused-variables");
    }
    out.insert(out.end(), l.options.begin(), l.options.end());
    return out;
}

nvJitLinkInputType type_of(artifact_kind kind) {
    switch (kind) {
        case artifact_kind::cubin: return NVJITLINK_INPUT_CUBIN;
        case artifact_kind::ptx: return NVJITLINK_INPUT_PTX;
        case artifact_kind::ltoir: return NVJITLINK_INPUT_LTOIR;
    }
    return NVJITLINK_INPUT_NONE;
}

result<std::vector<std::byte>> image_of(cuda::nvjitlink_api const& api, link_session const& session,
                                        link_job const& l) {
    bool const ptx = l.target.kind == artifact_kind::ptx;
    std::size_t size = 0;
    auto status = (ptx ? api.get_linked_ptx_size : api.get_linked_cubin_size)(session.get(), &size);
    if (status != NVJITLINK_SUCCESS) return link_error(l, status, "size of the result", session.log());
    if (size <= 1) return fail(errc::link_failed, "'{}': the linker reported success and gave an empty image", l.name);
    std::vector<std::byte> out(size);
    status = ptx ? api.get_linked_ptx(session.get(), reinterpret_cast<char*>(out.data()))
                 : api.get_linked_cubin(session.get(), out.data());
    if (status != NVJITLINK_SUCCESS) return link_error(l, status, "result", session.log());
    return out;
}

}  // namespace

result<product> run_link(job const& j, link_job const& l) {
    base::stopwatch const watch;
    computing_as_usual const usual;
    KILN_CHECK(check_link_options(l.options));
    KILN_CHECK(check_compilers());
    KILN_TRY(auto const api, cuda::load_nvjitlink(j.tools.nvjitlink, watcher_of_exit_functions()));
    keep_exit_functions(api->library.handle);
    auto const wanted = arguments_of(l);
    auto const arguments = without_threads_that_misread(wanted);
    std::vector<char const*> raw;
    for (auto const& a : arguments) raw.push_back(a.c_str());
    nvJitLinkHandle handle = nullptr;
    if (auto const status = api->create(&handle, static_cast<std::uint32_t>(raw.size()), raw.data());
        status != NVJITLINK_SUCCESS) {
        return link_error(l, status, "options", handle != nullptr ? link_session{*api, handle}.log() : std::string{});
    }
    link_session const session{*api, handle};
    for (auto const& in : l.inputs) {
        auto const status =
            api->add_data(session.get(), type_of(in.kind), in.image.data(), in.image.size(), in.name.c_str());
        if (status != NVJITLINK_SUCCESS) return link_error(l, status, in.name, session.log());
    }
    if (auto const status = api->complete(session.get()); status != NVJITLINK_SUCCESS) {
        return link_error(l, status, "link", session.log());
    }
    artifact out{.unit = l.name, .target = l.target, .toolchain = toolchain_text(*api)};
    out.compiler = fmt::format("nvJitLink {}.{}", api->major, api->minor);
    out.log = session.log();
    if (!result_changing_variable(environ).empty() || arguments.size() != wanted.size())
        out.dependencies.push_back(unseen_reads());
    KILN_TRY(out.image, image_of(*api, session, l));
    KILN_TRY(auto contents, read_image(out, l.exports));
    out.constants = std::move(contents.constants);
    for (auto const& name : l.kernels) {
        KILN_TRY(auto info, kernel_named(contents.kernels, name, name, l.target.kind));
        out.kernels.push_back(std::move(info));
    }
    if (l.kernels.empty()) out.kernels = std::move(contents.kernels);
    if (out.kernels.empty())
        return fail(
            errc::link_failed,
            "'{}': there is no kernel in what was linked; an input that is to be linked is relocatable: compile it "
            "with -rdc=true, or as LTO-IR (artifact_kind::ltoir)",
            l.name);
    KILN_CHECK(check_exports(l.exports, out));
    out.compile_ms = watch.ms();
    return out;
}

}  // namespace kiln::compile
