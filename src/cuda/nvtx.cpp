// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvtx.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define KILN_HAS_NVTX 1
#else
#define KILN_HAS_NVTX 0
#endif

namespace kiln::cuda {

namespace {

bool const asked_for = [] {
    auto const* const text = ::secure_getenv("KILN_NVTX");
    return KILN_HAS_NVTX != 0 && text != nullptr && *text == '1';
}();

#if KILN_HAS_NVTX
nvtxDomainHandle_t domain() noexcept {
    static nvtxDomainHandle_t const made = nvtxDomainCreateA("kiln");
    return made;
}

// "wait saxpy sm_90", off the heap, as much as there is room for.
class range_name {
public:
    range_name(std::string_view what, std::string_view unit, std::string_view target) noexcept {
        append(what);
        append(" ");
        append(unit);
        append(target.empty() ? "" : " ");
        append(target);
    }
    [[nodiscard]] nvtxEventAttributes_t attributes() const noexcept {
        nvtxEventAttributes_t out{};
        out.version = NVTX_VERSION;
        out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        out.messageType = NVTX_MESSAGE_TYPE_ASCII;
        out.message.ascii = chars_.data();
        return out;
    }

private:
    void append(std::string_view text) noexcept {
        auto const n = std::min(text.size(), chars_.size() - 1 - size_);
        std::memcpy(chars_.data() + size_, text.data(), n);
        size_ += n;
    }
    std::array<char, 160> chars_{};
    std::size_t size_ = 0;
};
#endif

}  // namespace

bool nvtx_is_on() noexcept { return asked_for; }

#if KILN_HAS_NVTX
void nvtx_range::push(std::string_view what, std::string_view unit, std::string_view target) noexcept {
    range_name const name{what, unit, target};
    auto const attributes = name.attributes();
    nvtxDomainRangePushEx(domain(), &attributes);
    open_ = true;
}
void nvtx_range::pop() noexcept { nvtxDomainRangePop(domain()); }

void nvtx_span::begin(std::string_view what, std::string_view unit, std::string_view target) noexcept {
    if (!nvtx_is_on()) return;
    end();
    range_name const name{what, unit, target};
    auto const attributes = name.attributes();
    id_ = nvtxDomainRangeStartEx(domain(), &attributes);
    open_ = true;
}
void nvtx_span::end() noexcept {
    if (!open_) return;
    nvtxDomainRangeEnd(domain(), id_);
    open_ = false;
}
#else
void nvtx_range::push(std::string_view, std::string_view, std::string_view) noexcept {}
void nvtx_range::pop() noexcept {}
void nvtx_span::begin(std::string_view, std::string_view, std::string_view) noexcept {}
void nvtx_span::end() noexcept {}
#endif

}  // namespace kiln::cuda
