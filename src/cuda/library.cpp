// SPDX-License-Identifier: Apache-2.0
#include "cuda/library.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace kiln::cuda {

namespace {

constexpr std::uint32_t fatbin_magic = 0xBA55ED50;

bool starts_with(base::byte_span image, void const* magic, std::size_t size) {
    return image.size() >= size && std::memcmp(image.data(), magic, size) == 0;
}

bool is_elf(base::byte_span image) { return starts_with(image, ELFMAG, SELFMAG); }
bool is_fatbin(base::byte_span image) { return starts_with(image, &fatbin_magic, sizeof fatbin_magic); }

// True when `count` records of `size` bytes from `offset` lie inside the image.
bool inside(base::byte_span image, std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
    return offset <= image.size() && (size == 0 || count <= (image.size() - offset) / size);
}

result<void> check_elf(base::byte_span image) {
    Elf64_Ehdr head;
    if (image.size() < sizeof head)
        return fail(errc::corrupt, "cubin of {} bytes: shorter than its header", image.size());
    std::memcpy(&head, image.data(), sizeof head);
    bool ok = head.e_ident[EI_CLASS] == ELFCLASS64 && inside(image, head.e_phoff, head.e_phnum, head.e_phentsize) &&
              inside(image, head.e_shoff, head.e_shnum, head.e_shentsize) &&
              (head.e_shnum == 0 || head.e_shentsize == sizeof(Elf64_Shdr));
    for (std::size_t i = 0; ok && i < head.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, image.data() + head.e_shoff + i * sizeof section, sizeof section);
        ok = section.sh_type == SHT_NOBITS || inside(image, section.sh_offset, section.sh_size, 1);
    }
    if (!ok) return fail(errc::corrupt, "cubin of {} bytes: shorter than its sections", image.size());
    return {};
}

result<void> check_fatbin(base::byte_span image) {
    struct {
        std::uint32_t magic;
        std::uint16_t version;
        std::uint16_t header_size;
        std::uint64_t body_size;
    } head{};
    if (image.size() < sizeof head)
        return fail(errc::corrupt, "fatbin of {} bytes: shorter than its header", image.size());
    std::memcpy(&head, image.data(), sizeof head);
    if (!inside(image, head.header_size, head.body_size, 1)) {
        return fail(errc::corrupt, "fatbin of {} bytes: its header says {}", image.size(),
                    head.header_size + head.body_size);
    }
    return {};
}

constexpr std::size_t log_size = 8192;

kernel_resources resources_of(driver_api const& api, CUfunction function) {
    kernel_resources out;
    auto const ask = [&](CUfunction_attribute which, int& into) {
        if (api.func_get_attribute(&into, which, function) != CUDA_SUCCESS) into = 0;
    };
    ask(CU_FUNC_ATTRIBUTE_NUM_REGS, out.registers);
    ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, out.static_shared_bytes);
    ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, out.local_bytes);
    ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, out.max_threads);
    return out;
}

}  // namespace

result<void> check_image(base::byte_span image) {
    if (image.empty()) return fail(errc::corrupt, "image of 0 bytes");
    if (is_elf(image)) return check_elf(image);
    if (is_fatbin(image)) return check_fatbin(image);
    // The driver takes everything else for PTX: text up to the first zero.
    auto const text = base::as_text(image);
    if (text.find(".version") == text.npos)
        return fail(errc::corrupt, "image of {} bytes: neither cubin, fatbin nor PTX", image.size());
    return {};
}

library::library(std::shared_ptr<context const> where) noexcept : context_{std::move(where)} {}

library::~library() {
    if (handle_ != nullptr) release_in<&driver_api::library_unload>(*context_, handle_);
}

result<void> library::load(base::byte_span image) {
    bool const text = !is_elf(image) && !is_fatbin(image);
    std::string const terminated{text ? base::as_text(image) : std::string_view{}};
    void const* const code = text ? static_cast<void const*>(terminated.c_str()) : image.data();
    // The driver compiles PTX, perhaps only when a kernel is asked for, so its log outlives this call.
    if (!is_elf(image)) log_.resize(log_size);
    CUjit_option jit[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log_.data(), reinterpret_cast<void*>(log_.size())};
    CUlibraryOption* const no_options = nullptr;
    void** const no_values = nullptr;
    CUlibrary loaded = nullptr;
    KILN_CHECK(call<&driver_api::library_load_data>(context_->api(), &loaded, code, jit, values,
                                                    is_elf(image) ? 0U : 2U, no_options, no_values, 0U));
    handle_ = loaded;
    return {};
}

result<std::shared_ptr<library const>> library::make(std::shared_ptr<context const> where, base::byte_span image,
                                                     std::span<std::string const> names) {
    KILN_CHECK(check_image(image));
    KILN_TRY(auto const scope, current_context::enter(*where));
    // A copy: on failure the library goes before the scope does, and must not take the context with it.
    std::shared_ptr<library> out{new library{where}};
    if (auto filled = out->fill(image, names); !filled) {
        auto const& info = out->context_->info();
        return std::move(filled)
            .error()
            .with_log(std::string{out->log_.c_str()})
            .within(fmt::format("device {} ({}, {})", info.ordinal, info.name, info.target()));
    }
    return std::shared_ptr<library const>{std::move(out)};
}

result<std::shared_ptr<library const>> library::adopt(std::shared_ptr<context const> where, CUfunction function,
                                                      std::shared_ptr<void const> keep) {
    if (function == nullptr) return fail(errc::invalid_argument, "adopt_kernel: the function is null");
    KILN_TRY(auto const scope, current_context::enter(*where));
    auto const& api = where->api();
    char const* name = nullptr;
    // Also the first question to the driver about it: what is no function of this context is refused here.
    if (api.func_get_name != nullptr) {
        auto asked = call<&driver_api::func_get_name>(api, &name, function);
        if (!asked) return std::move(asked).error().within("adopt_kernel");
    }
    std::shared_ptr<library> out{new library{where}};
    out->keep_ = std::move(keep);
    out->kernels_.push_back({name == nullptr ? "(adopted)" : name, function, nullptr, resources_of(api, function)});
    return std::shared_ptr<library const>{std::move(out)};
}

result<device_variable> library::variable(std::string const& name) const {
    auto const& api = context_->api();
    KILN_TRY(auto const scope, current_context::enter(*context_));
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    auto got = handle_ == nullptr ? result<void>{fail(errc::not_found, "the kernel was adopted, not loaded here")}
                                  : call<&driver_api::library_get_global>(api, &address, &bytes, handle_, name.c_str());
    if (!got && got.error().status() == CUDA_ERROR_NOT_FOUND && api.library_get_managed != nullptr)
        got = call<&driver_api::library_get_managed>(api, &address, &bytes, handle_, name.c_str());
    if (!got) return std::move(got).error().within(fmt::format("variable '{}'", name));
    return device_variable{shared_from_this(), reinterpret_cast<void*>(address), bytes};
}

result<void> library::fill(base::byte_span image, std::span<std::string const> names) {
    KILN_CHECK(load(image));
    std::vector<std::string> wanted{names.begin(), names.end()};
    if (wanted.empty()) {
        KILN_TRY(wanted, all_names());
    }
    kernels_.reserve(wanted.size());
    for (auto const& name : wanted) KILN_CHECK(resolve(name));
    return {};
}

result<std::vector<std::string>> library::all_names() const {
    auto const& api = context_->api();
    unsigned count = 0;
    KILN_CHECK(call<&driver_api::library_get_kernel_count>(api, &count, handle_));
    std::vector<CUkernel> kernels(count);
    KILN_CHECK(call<&driver_api::library_enumerate_kernels>(api, kernels.data(), count, handle_));
    std::vector<std::string> out;
    for (auto* kernel : kernels) {
        char const* name = nullptr;
        KILN_CHECK(call<&driver_api::kernel_get_name>(api, &name, kernel));
        out.emplace_back(name);
    }
    if (out.empty()) return fail(errc::not_found, "the image holds no kernel");
    return out;
}

result<void> library::resolve(std::string const& name) {
    auto const& api = context_->api();
    CUkernel kernel = nullptr;
    auto got = call<&driver_api::library_get_kernel>(api, &kernel, handle_, name.c_str());
    if (!got) return std::move(got).error().within(fmt::format("kernel '{}'", name));
    CUfunction function = nullptr;
    got = call<&driver_api::kernel_get_function>(api, &function, kernel);
    // Lazy loading would put the code on the device at the first launch. Older drivers cannot be asked.
    if (got && api.func_load != nullptr) got = call<&driver_api::func_load>(api, function);
    if (!got) return std::move(got).error().within(fmt::format("kernel '{}'", name));
    kernels_.push_back({name, function, kernel, resources_of(api, function)});
    return {};
}

std::vector<std::string> library::names() const {
    std::vector<std::string> out;
    for (auto const& kernel : kernels_) out.push_back(kernel.name);
    return out;
}

result<std::shared_ptr<function const>> library::find(std::string_view name) const {
    auto const at = std::ranges::find(kernels_, name, &resolved::name);
    if (at == kernels_.end())
        return fail(errc::not_found, "no kernel '{}' was loaded; there are: {}", name, fmt::join(names(), ", "));
    return std::make_shared<function const>(shared_from_this(), *at);
}

}  // namespace kiln::cuda
