// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_entry.hpp"

#include <algorithm>

namespace kiln::intercept {

namespace {

constexpr std::string_view magic = "KILNFRGN";
constexpr std::uint32_t format_version = 1;

void put_look(base::byte_writer& w, look const& one) {
    w.put_u8(static_cast<std::uint8_t>(one.from));
    w.put_u16(one.index);
    w.put_text(one.path);
    w.put_u8(static_cast<std::uint8_t>(one.content ? 1 + one.file : 0));
    if (one.content) w.put_raw(std::as_bytes(std::span{one.content->bytes}));
}

look get_look(base::byte_reader& r) {
    look out;
    auto const root = r.get_u8();
    if (root > static_cast<std::uint8_t>(look::root::include_directory)) r.spoil();
    out.from = static_cast<look::root>(root);
    out.index = r.get_u16();
    out.path = r.get_text();
    auto const present = r.get_u8();
    if (present == 0) return out;
    out.file = static_cast<std::uint8_t>(present - 1);
    out.content.emplace();
    auto const raw = base::as_text(r.get_raw(out.content->bytes.size()));
    if (raw.size() == out.content->bytes.size()) std::ranges::copy(raw, out.content->bytes.begin());
    return out;
}

}  // namespace

foreign_answer::output const* foreign_answer::find(std::string_view name) const noexcept {
    auto const at = std::ranges::find(outputs, name, &output::name);
    return at == outputs.end() ? nullptr : &*at;
}

base::bytes encode(foreign_entry const& what) {
    base::byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(format_version);
    w.put_u32(static_cast<std::uint32_t>(what.looks.size()));
    for (auto const& one : what.looks) put_look(w, one);
    w.put_u32(static_cast<std::uint32_t>(what.answer.outputs.size()));
    for (auto const& one : what.answer.outputs) {
        w.put_text(one.name);
        w.put_u32(static_cast<std::uint32_t>(one.status));
        w.put_text(one.data);
    }
    w.put_text(what.answer.log);
    w.put_u32(static_cast<std::uint32_t>(what.answer.lowered.size()));
    for (auto const& [expression, name] : what.answer.lowered) {
        w.put_text(expression);
        w.put_text(name);
    }
    w.put_u32(static_cast<std::uint32_t>(what.answer.pch_status));
    return std::move(w).take();
}

result<foreign_entry> decode_foreign_entry(base::byte_span data) {
    base::byte_reader r{data};
    if (base::as_text(r.get_raw(magic.size())) != magic || r.get_u32() != format_version)
        return fail(errc::corrupt, "not an answer of a foreign compile, or of another version");
    foreign_entry out;
    for (auto n = r.get_count(8); n > 0; --n) out.looks.push_back(get_look(r));
    for (auto n = r.get_count(12); n > 0; --n) {
        foreign_answer::output one;
        one.name = r.get_text();
        one.status = static_cast<int>(r.get_u32());
        one.data = r.get_text();
        out.answer.outputs.push_back(std::move(one));
    }
    out.answer.log = r.get_text();
    for (auto n = r.get_count(8); n > 0; --n) {
        auto expression = r.get_text();
        out.answer.lowered.emplace_back(std::move(expression), r.get_text());
    }
    out.answer.pch_status = static_cast<int>(r.get_u32());
    if (!r.done()) return fail(errc::corrupt, "the answer of a foreign compile is damaged");
    return out;
}

}  // namespace kiln::intercept
