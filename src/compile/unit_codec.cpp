// SPDX-License-Identifier: Apache-2.0
#include "compile/unit_codec.hpp"

namespace kiln::compile {

void put_texts(base::byte_writer& w, std::vector<std::string> const& texts) {
    w.put_u32(static_cast<std::uint32_t>(texts.size()));
    for (auto const& t : texts) w.put_text(t);
}

std::vector<std::string> get_texts(base::byte_reader& r) {
    std::vector<std::string> out(r.get_count(4));
    for (auto& t : out) t = r.get_text();
    return out;
}

void put_unit(base::byte_writer& w, unit const& u) {
    w.put_text(u.name);
    w.put_text(u.source);
    put_texts(w, u.kernels);
    put_texts(w, u.options);
    w.put_u32(static_cast<std::uint32_t>(u.headers.size()));
    for (auto const& h : u.headers) {
        w.put_text(h.name);
        w.put_text(h.text);
    }
    put_texts(w, u.include_dirs);
    w.put_text(u.directory);
    put_texts(w, u.exports);
    w.put_text(u.licence);
}

unit get_unit(base::byte_reader& r) {
    unit u;
    u.name = r.get_text();
    u.source = r.get_text();
    u.kernels = get_texts(r);
    u.options = get_texts(r);
    u.headers.resize(r.get_count(8));
    for (auto& h : u.headers) {
        h.name = r.get_text();
        h.text = r.get_text();
    }
    u.include_dirs = get_texts(r);
    u.directory = r.get_text();
    u.exports = get_texts(r);
    u.licence = r.get_text();
    return u;
}

void put_carried(base::byte_writer& w, unit const& u) {
    w.put_u32(static_cast<std::uint32_t>(u.carried.size()));
    for (auto const& h : u.carried) {
        w.put_text(h.place);
        w.put_text(h.text);
    }
}

void get_carried(base::byte_reader& r, unit& u) {
    u.carried.resize(r.get_count(8));
    for (auto& h : u.carried) {
        h.place = r.get_text();
        h.text = r.get_text();
    }
}

}  // namespace kiln::compile
