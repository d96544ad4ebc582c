// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/wkt.hpp>

#include "base/check.hpp"
#include "spatial/rows.hpp"
#include "spatial/text_rows.hpp"

#include <algorithm>
#include <charconv>

namespace kiln::spatial {

namespace {

constexpr std::pair<std::string_view, family> words[] = {
    {"POINT", family::point},
    {"LINESTRING", family::linestring},
    {"POLYGON", family::polygon},
    {"MULTIPOINT", family::multipoint},
    {"MULTIPOLYGON", family::multipolygon},
    {"MULTILINESTRING", family::multilinestring},
};

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class reader {
public:
    reader(std::string_view text, std::size_t row, geometry_builder& to) : text_{text}, row_{row}, to_{to} {}

    result<void> read() {
        auto word = next_word();
        if (word == "SRID") {  // of EWKT; the number says nothing about the plane
            auto const end = text_.find(';', at_);
            if (end == std::string_view::npos) return expected("';' after the SRID");
            at_ = end + 1;
            word = next_word();
        }
        if (word.empty() && at_end()) return to_.null(), result<void>{};
        if (word == "NULL") return to_.null(), finished();
        auto const* const known =
            std::find_if(std::begin(words), std::end(words), [&](auto& w) { return w.first == word; });
        if (known == std::end(words)) {
            return fail(errc::unsupported, "WKT, row {}: '{}' is none of the six families of simple features", row_,
                        word.empty() ? std::string{text_.substr(0, 20)} : shown(word));
        }
        to_.begin(known->second);
        KILN_CHECK(body(known->second));
        to_.end();
        return finished();
    }

private:
    result<void> body(family kind) {
        auto const mark = at_;
        if (auto const word = next_word(); word == "EMPTY") return {};
        else if (word == "Z" || word == "M" || word == "ZM")
            return fail(errc::unsupported, "WKT, row {}: {} coordinates; only x and y are taken", row_, word);
        at_ = mark;
        switch (kind) {
            case family::point: return between([&] { return vertex(); });
            case family::linestring: return vertices();
            case family::multipoint: return list([&] { return multipoint_member(); });
            case family::polygon: return rings();
            case family::multilinestring: return list([&] { return to_.begin_line(), vertices_or_empty(); });
            case family::multipolygon:
                return list([&] { return to_.begin_polygon(), is_empty() ? result<void>{} : rings(); });
            case family::mixed: break;
        }
        return {};
    }

    // With or without brackets of its own: both are written.
    result<void> multipoint_member() {
        if (is_empty()) return fail(errc::unsupported, "WKT, row {}: an empty point inside a multipoint", row_);
        return peek() == '(' ? between([&] { return vertex(); }) : vertex();
    }
    result<void> rings() {
        return list([&] { return to_.begin_ring(), vertices_or_empty(); });
    }
    result<void> vertices_or_empty() { return is_empty() ? result<void>{} : vertices(); }
    result<void> vertices() {
        return list([&] { return vertex(); });
    }

    template <class One>
    result<void> list(One one) {
        return between([&]() -> result<void> {
            for (;;) {
                KILN_CHECK(one());
                if (peek() != ',') return {};
                ++at_;
            }
        });
    }
    template <class Inside>
    result<void> between(Inside inside) {
        if (peek() != '(') return expected("'('");
        ++at_;
        KILN_CHECK(inside());
        if (peek() != ')') return expected("',' or ')'");
        ++at_;
        return {};
    }
    result<void> vertex() {
        KILN_TRY(double const x, number());
        KILN_TRY(double const y, number());
        to_.vertex(x, y);
        return {};
    }
    result<double> number() {
        skip();
        auto const read = number_at(text_.substr(at_));
        if (read.kind == number_kind::none) return expected("a number");
        if (read.kind == number_kind::beyond_doubles)
            return fail(errc::invalid_argument, "WKT, row {}: '{}' at column {} is beyond what a double holds", row_,
                        shown(text_.substr(at_, read.length)), at_ + 1);
        at_ += read.length;
        return read.value;
    }

    void skip() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }
    char peek() { return skip(), at_ < text_.size() ? text_[at_] : '\0'; }
    bool at_end() { return skip(), at_ == text_.size(); }
    bool is_empty() {
        auto const mark = at_;
        if (next_word() == "EMPTY") return true;
        at_ = mark;
        return false;
    }
    std::string next_word() {
        skip();
        std::string out;
        for (; at_ < text_.size() && is_letter(text_[at_]); ++at_) out.push_back(static_cast<char>(text_[at_] & ~0x20));
        return out;
    }
    result<void> finished() { return at_end() ? result<void>{} : expected("the end"); }
    error expected(std::string_view what) {
        skip();
        return fail(errc::invalid_argument, "WKT, row {}, column {}: {} expected, not '{}'", row_, at_ + 1, what,
                    at_ < text_.size() ? text_.substr(at_, 12) : std::string_view{"the end"});
    }

    std::string_view text_;
    std::size_t at_ = 0, row_;
    geometry_builder& to_;
};

class writer {
public:
    void null() { rows_.emplace_back("NULL"); }
    void begin(family kind) {
        kind_ = kind;
        polygons_ = members_ = vertices_ = 0;
        auto const* const word =
            std::find_if(std::begin(words), std::end(words), [&](auto& w) { return w.second == kind; });
        rows_.emplace_back(word->first);
    }
    void begin_polygon() {
        close_member();
        if (polygons_ > 0 && members_ == 0) text() += "EMPTY";
        else if (polygons_ > 0) text() += ')';
        text() += polygons_++ == 0 ? " (" : ", ";
        members_ = 0;
    }
    void begin_ring() { begin_member(kind_ == family::multipolygon ? "(" : " ("); }
    void begin_line() { begin_member(" ("); }
    void vertex(double x, double y) {
        bool const inner = members_ > 0;
        text() += vertices_++ > 0 ? ", " : inner ? "(" : " (";
        if (kind_ == family::multipoint) text() += '(';
        put(x), text() += ' ', put(y);
        if (kind_ == family::multipoint) text() += ')';
    }
    void end() {
        if (members_ == 0 && vertices_ == 0 && polygons_ == 0) return void(text() += " EMPTY");
        bool const has_members = members_ > 0;
        close_member();
        if (kind_ == family::multipolygon) text() += has_members ? "))" : "EMPTY)";
        else text() += ')';
    }
    std::vector<std::string> take() { return std::move(rows_); }

private:
    std::string& text() { return rows_.back(); }
    void begin_member(std::string_view opening) {
        close_member();
        text() += members_++ == 0 ? opening : ", ";
        vertices_ = 0;
    }
    // Of a ring or a line; the last bracket is end()'s.
    void close_member() {
        if (members_ == 0) return;
        text() += vertices_ > 0 ? ")" : "EMPTY";
        vertices_ = 0;
    }
    void put(double v) {
        char digits[32];
        auto const [end, problem] = std::to_chars(digits, digits + sizeof(digits), v);
        text().append(digits, end);
    }

    std::vector<std::string> rows_;
    family kind_ = family::point;
    std::size_t polygons_ = 0, members_ = 0, vertices_ = 0;
};

template <class Strings>
result<geometries> read_all(Strings const& rows) {
    geometry_builder to;
    for (std::size_t i = 0; i < rows.size(); ++i) KILN_CHECK((reader{rows[i], i, to}.read()));
    return to.finish();
}

}  // namespace

result<void> read_wkt_row(std::string_view text, geometry_builder& to) { return reader{text, to.rows(), to}.read(); }

result<geometries> from_wkt(std::span<std::string_view const> rows) { return read_all(rows); }
result<geometries> from_wkt(std::span<std::string const> rows) { return read_all(rows); }

result<geometries> from_wkt_lines(std::string_view text) {
    geometry_builder to;
    for (std::size_t row = 0; !text.empty(); ++row) {
        auto const end = std::min(text.find('\n'), text.size());
        KILN_CHECK((reader{text.substr(0, end), row, to}.read()));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return to.finish();
}

result<std::vector<std::string>> to_wkt(geometries const& from) {
    if (from.where() == residency::device) return fail(errc::unsupported, "to_wkt: the geometries are on a device");
    writer to;
    KILN_CHECK(visit_rows(from, to));
    return to.take();
}

}  // namespace kiln::spatial
