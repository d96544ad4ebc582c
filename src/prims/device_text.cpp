// SPDX-License-Identifier: Apache-2.0
// From a request to the units a compiler is given.
#include "prims/operator_text.hpp"
#include "prims/sources.hpp"

#include <map>
#include <mutex>

namespace kiln::prims {

namespace {

bool uses_cub(algorithm what) { return what != algorithm::transform && what != algorithm::gather; }

// kiln/prims/spec.cuh: the types by the names the device text uses.
std::string spec_text(request const& r) {
    std::string out = "#pragma once\n#include \"kiln/prims/names.cuh\"\n";
    if (needs_half(r)) out += "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n";
    out += r.value.definition + "\n";
    if (r.mapped.size != 0 && r.mapped != r.value) out += r.mapped.definition + "\n";
    out += fmt::format("using kiln_value = {};\n", r.value.name);
    auto const check = [&](std::string_view name, element_type const& type) {
        out += fmt::format(
            "static_assert(sizeof({0}) == {1} && alignof({0}) == {2}, \"{0}: the host's type has {1} bytes aligned to "
            "{2}\");\n",
            name, type.size, type.align);
    };
    check("kiln_value", r.value);
    if (r.mapped.size != 0) {
        out += fmt::format("using kiln_mapped = {};\n", r.mapped.name);
        check("kiln_mapped", r.mapped);
    }
    return out;
}

std::vector<std::string> options_of(request const& r, part which) {
    std::vector<std::string> out{"-std=c++17", "-default-device"};
    if (which == part::skeleton) {
        out.emplace_back("-rdc=true");
        out.emplace_back("-gen-opt-lto");  // saves a tenth of every link, or more
    }
    if (!uses_cub(r.what)) return out;
    // One header of CCCL parses in exponential time at the default depth; nothing here needs more than this.
    out.emplace_back("-D_CCCL_META_UNROLL_LIMIT=4");
    out.emplace_back("-DCUB_RUNTIME_FUNCTION=__device__");
    if (!needs_half(r)) {
        out.emplace_back("-DCCCL_DISABLE_FP16_SUPPORT");
        out.emplace_back("-DCCCL_DISABLE_BF16_SUPPORT");
    }
    out.emplace_back("-DCCCL_DISABLE_NVFP8_SUPPORT");
    return out;
}

// The two reductions share one template.
std::string_view text_of(request const& r, part which) {
    bool const reduction = r.what == algorithm::reduce || r.what == algorithm::segmented_reduce;
    return which == part::skeleton && reduction ? "reductions" : name_of(r.what);
}

std::vector<std::string> template_kernels(request const& r) {
    auto out = all_kernels(r.what);
    if (text_of(r, part::skeleton) != "reductions") return out;
    out = all_kernels(algorithm::reduce);
    for (auto& kernel : all_kernels(algorithm::segmented_reduce)) out.push_back(std::move(kernel));
    return out;
}

std::string source_of(request const& r, part which, header_source from, std::vector<std::string> const& kernels) {
    std::string out;
    for (auto const& define : r.defines) out += fmt::format("#define {}\n", define);
    if (which == part::skeleton) out += "#define KILN_PRIM_LINKED\n";
    if (from == header_source::plain) out += "#define KILN_PRIM_PLAIN\n";
    out += fmt::format("#include \"kiln/prims/{}.cu\"\n", text_of(r, which));
    for (auto const& kernel : kernels) out += fmt::format("using kiln_device::{};\n", kernel);
    return out;
}

// Every operator and every entry point of an algorithm shares one template, whoever asks for it.
std::string template_name(request const& r) {
    auto const value =
        r.value.kind == scalar::record ? fmt::format("{}bytes{}", r.value.size, r.value.align) : r.value.label();
    auto out = fmt::format("{} {}", text_of(r, part::skeleton), value);
    if (r.mapped.size != 0) out += " " + r.mapped.label();
    for (auto const& define : r.defines) out += " " + define;
    return out + " template";
}

}  // namespace

unit device_unit(request const& asked, part which, header_source from) {
    auto const r = which == part::skeleton ? shape_of(asked) : asked;
    auto kernels = which == part::whole ? r.kernels : template_kernels(r);
    unit out{.name = which == part::whole ? r.name : template_name(r), .source = source_of(r, which, from, kernels)};
    out.kernels = std::move(kernels);
    out.options = options_of(r, which);
    out.exports = {std::string{info_name}};
    out.headers = kernel_headers_of(text_of(r, which));
    out.headers.push_back({"kiln/prims/spec.cuh", spec_text(r)});
    if (which == part::whole && r.by)
        out.headers.push_back({"kiln/prims/written_operator.cuh", operator_text(r, linkage::local)});
    if (from == header_source::pinned) {
        auto const carried = pinned();
        if (carried) out.headers.insert(out.headers.end(), carried->files.begin(), carried->files.end());
    }
    out.licence = "Apache-2.0 WITH LLVM-exception";
    return out;
}

unit operator_unit(request const& r) {
    unit out{.name = r.name + " operator",
             .source = "#include \"kiln/prims/spec.cuh\"\n" + operator_text(r, linkage::external)};
    // 940: a function that ends without a value.
    out.options = {"-std=c++17", "-default-device", "-rdc=true", "-diag-error=940"};
    for (auto const& h : kernel_headers()) {
        if (h.name == "kiln/prims/names.cuh") out.headers.push_back(h);
    }
    out.headers.push_back({"kiln/prims/spec.cuh", spec_text(r)});
    if (needs_half(r)) {
        if (auto const carried = pinned())
            out.headers.insert(out.headers.end(), carried->files.begin(), carried->files.end());
    }
    return out;
}

namespace {

// Asked for several times before the first call, and tens of kilobytes of text.
base::digest text_digest(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::string, base::digest, std::less<>> known;
    std::scoped_lock const lock{mutex};
    auto const at = known.find(name);
    if (at != known.end()) return at->second;
    return known.emplace(name, digest_of(kernel_headers_of(name))).first->second;
}

}  // namespace

base::digest family_of(request const& asked, part which) {
    auto const r = which == part::skeleton ? shape_of(asked) : asked;
    base::key_builder key{"kiln.prims.family.v1"};
    key.add("kernels", text_digest(text_of(r, which))).add("algorithm", text_of(r, which)).add("types", spec_text(r));
    for (auto const& define : r.defines) key.add("define", define);
    for (auto const& option : options_of(r, which)) key.add("option", option);
    if (which == part::skeleton) return key.add("part", "skeleton").finish();
    for (auto const& kernel : r.kernels) key.add("kernel", kernel);
    if (r.by) {
        key.add("operator", operator_text(r, linkage::external));
        key.add("image", r.by->image());
    }
    return key.finish();
}

}  // namespace kiln::prims
