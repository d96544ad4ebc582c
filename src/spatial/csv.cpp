// SPDX-License-Identifier: Apache-2.0
#include "spatial/text_rows.hpp"

#include <charconv>

namespace kiln::spatial {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
    auto const is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}
std::string in_small(std::string_view text) {
    std::string out{trimmed(text)};
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    return out;
}

// Records of fields, as RFC 4180 has them: a field in quotes may hold separators, line ends and, doubled, quotes.
class records {
public:
    explicit records(text_source const& from) : in_{from}, rest_{from.text} {
        auto const first = rest_.substr(0, rest_.find('\n'));
        for (char const c : {'\t', ';'})
            if (first.find(c) != first.npos && first.find(',') == first.npos) separator_ = c;
    }

    // Where there is one column, a line with nothing in it has nothing in that column.
    void keep_blank_lines() { keeps_blank_lines_ = true; }

    // False at the end. Lines with nothing in them are no records.
    result<bool> next() {
        while (!keeps_blank_lines_ && !rest_.empty() && trimmed(rest_.substr(0, rest_.find('\n'))).empty()) take_line();
        if (rest_.empty()) return false;
        fields_.clear();
        first_line_ = line_;
        for (;;) {
            fields_.emplace_back();
            KILN_TRY(bool const more, field(fields_.back()));
            if (!more) return true;
        }
    }
    [[nodiscard]] std::vector<std::string> const& fields() const noexcept { return fields_; }
    [[nodiscard]] std::uint32_t line() const noexcept { return first_line_; }

private:
    void take_line() {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
        ++line_;
    }
    // Whether another field follows.
    result<bool> field(std::string& to) {
        auto const begin = rest_.find_first_not_of(' ');
        if (begin != rest_.npos && rest_[begin] == '"') {
            rest_.remove_prefix(begin + 1);
            for (;;) {
                auto const quote = rest_.find('"');
                if (quote == rest_.npos)
                    return refuse(errc::invalid_argument, in_, first_line_, "a quoted field without an end");
                to += rest_.substr(0, quote);
                line_ += static_cast<std::uint32_t>(std::count(rest_.data(), rest_.data() + quote, '\n'));
                rest_.remove_prefix(quote + 1);
                if (!rest_.starts_with('"')) break;
                to += '"';
                rest_.remove_prefix(1);
            }
            auto const after = rest_.substr(0, rest_.find_first_of({std::array{separator_, '\n'}.data(), 2}));
            if (!trimmed(after).empty())
                return refuse(errc::invalid_argument, in_, line_, "'{}' after a quoted field", after.substr(0, 12));
            rest_.remove_prefix(after.size());
        } else {
            auto const end = std::min(rest_.find_first_of({std::array{separator_, '\n'}.data(), 2}), rest_.size());
            to = trimmed(rest_.substr(0, end));
            rest_.remove_prefix(end);
        }
        if (rest_.empty()) return false;
        bool const more = rest_.front() == separator_;
        line_ += more ? 0 : 1;
        rest_.remove_prefix(1);
        return more;
    }

    text_source in_;
    std::string_view rest_;
    char separator_ = ',';
    bool keeps_blank_lines_ = false;
    std::uint32_t line_ = 1, first_line_ = 1;
    std::vector<std::string> fields_;
};

class table_reader {
public:
    table_reader(text_source const& from, read_options const& how) : in_{from}, how_{how}, records_{from} {}

    result<rows_of_file> read() {
        KILN_TRY(bool const any, records_.next());
        if (!any) return refuse(errc::invalid_argument, in_, 1, "no CSV here: the text is empty");
        header_ = records_.fields();
        if (header_.size() == 1) records_.keep_blank_lines();
        KILN_CHECK(find_columns());
        rows_of_file out;
        for (;;) {
            KILN_TRY(bool const more, records_.next());
            if (!more) break;
            if (records_.fields().size() != header_.size())
                return wrong("{} fields where the first line has {}", records_.fields().size(), header_.size());
            KILN_CHECK(row());
            out.lines.push_back(records_.line());
            if (id_) out.ids.push_back(records_.fields()[*id_]);
        }
        KILN_TRY(out.rows, to_.finish());
        return out;
    }

private:
    template <class... Args>
    error wrong(fmt::format_string<Args...> format, Args&&... args) {
        return refuse(errc::invalid_argument, in_, records_.line(), "row {}: {}", to_.rows(),
                      fmt::format(format, std::forward<Args>(args)...));
    }

    result<void> find_columns() {
        if (!how_.id.empty()) {
            KILN_TRY(id_, column(how_.id));
        }
        if (!how_.wkt.empty()) {
            KILN_TRY(wkt_, column(how_.wkt));
            return {};
        }
        if (how_.x.empty() != how_.y.empty())
            return refuse(errc::invalid_argument, in_, records_.line(),
                          "a column for {} and none for {}; name both, or neither", how_.x.empty() ? "y" : "x",
                          how_.x.empty() ? "x" : "y");
        if (!how_.x.empty()) {
            KILN_TRY(x_, column(how_.x));
            KILN_TRY(y_, column(how_.y));
            return {};
        }
        for (auto const* name : {"wkt", "geometry", "geom", "the_geom"}) {
            KILN_TRY(wkt_, find(name));
            if (wkt_) return {};
        }
        constexpr std::pair<char const*, char const*> usual[] = {
            {"x", "y"}, {"lon", "lat"}, {"lng", "lat"}, {"long", "lat"}, {"longitude", "latitude"}};
        for (auto const& [x, y] : usual) {
            KILN_TRY(x_, find(x));
            KILN_TRY(y_, find(y));
            if (x_ && y_) return {};
        }
        return refuse(errc::invalid_argument, in_, records_.line(),
                      "no column wkt, geometry, x and y, or lon and lat; there are: {}", shown_names(header_));
    }
    // One that is written just so before others; of several nobody knows which is meant.
    result<std::optional<std::size_t>> find(std::string_view name) const {
        for (bool const is_exact : {true, false}) {
            std::optional<std::size_t> found;
            for (std::size_t i = 0; i < header_.size(); ++i) {
                if (is_exact ? header_[i] != name : in_small(header_[i]) != in_small(name)) continue;
                if (found) return refuse(errc::invalid_argument, in_, records_.line(), "two columns '{}'", shown(name));
                found = i;
            }
            if (found) return found;
        }
        return std::optional<std::size_t>{};
    }
    result<std::optional<std::size_t>> column(std::string const& name) const {
        KILN_TRY(auto const at, find(name));
        if (at) return at;
        return refuse(errc::invalid_argument, in_, records_.line(), "no column '{}'; there are: {}", name,
                      shown_names(header_));
    }

    result<void> row() {
        auto const& fields = records_.fields();
        if (wkt_) {
            if (auto done = read_wkt_row(fields[*wkt_], to_); !done)
                return std::move(done).error().within(fmt::format("{}, line {}", in_.name, records_.line()));
            return {};
        }
        auto const &x = fields[*x_], &y = fields[*y_];
        if (x.empty() && y.empty()) return to_.null(), result<void>{};
        KILN_TRY(double const x_value, number(*x_));
        KILN_TRY(double const y_value, number(*y_));
        to_.begin(family::point);
        to_.vertex(x_value, y_value);
        to_.end();
        return {};
    }
    result<double> number(std::size_t column) {
        auto const text = trimmed(records_.fields()[column]);
        auto const read = number_at(text);
        if (read.kind == number_kind::none || read.length != text.size())
            return wrong("'{}' in column {} is no number", shown(text), header_[column]);
        if (read.kind == number_kind::beyond_doubles)
            return wrong("'{}' in column {} is beyond what a double holds", shown(text), header_[column]);
        return read.value;
    }

    text_source in_;
    read_options const& how_;
    records records_;
    std::vector<std::string> header_;
    std::optional<std::size_t> x_, y_, wkt_, id_;
    geometry_builder to_;
};

}  // namespace

leading_number number_at(std::string_view text) noexcept {
    bool const has_plus = text.starts_with('+') && !text.starts_with("+-");
    auto const* const first = text.data() + (has_plus ? 1 : 0);
    leading_number out;
    auto const [end, problem] = std::from_chars(first, text.data() + text.size(), out.value);
    if (problem == std::errc::invalid_argument) return {};
    out.kind = problem == std::errc{} ? number_kind::number : number_kind::beyond_doubles;
    out.length = static_cast<std::size_t>(end - text.data());
    return out;
}

result<rows_of_file> read_csv(text_source const& from, read_options const& how) {
    return table_reader{from, how}.read();
}

}  // namespace kiln::spatial
