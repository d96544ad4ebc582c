// SPDX-License-Identifier: Apache-2.0
#include "report/svg.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace kiln::report {

namespace {

std::string title(std::string_view tooltip) {
    return tooltip.empty() ? std::string{} : "<title>" + escaped(tooltip) + "</title>";
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : base::valid_utf8(text)) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else if (c == '"') out += "&quot;";
        else if (static_cast<unsigned char>(c) >= 0x20) out += c;  // XML has no way to write the others
    }
    return out;
}

svg::svg(page const& size)
    : out_{fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
          "{1:.0f}\" font-family=\"sans-serif\" font-size=\"{2}\">\n<rect width=\"100%\" height=\"100%\" "
          "fill=\"#fff\"/>\n",
          size.width, size.height, size.font_size)} {}

void svg::words(svg_point at, std::string_view text, std::string_view attributes) {
    fmt::format_to(std::back_inserter(out_), "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at.x, at.y, attributes,
                   escaped(text));
}

void svg::words_with_exponent(svg_point at, std::string_view text, std::string_view exponent,
                              std::string_view attributes) {
    fmt::format_to(std::back_inserter(out_),
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}<tspan dy=\"-5\" font-size=\"9\">{}</tspan></text>\n", at.x,
                   at.y, attributes, escaped(text), escaped(exponent));
}

void svg::line(svg_point from, svg_point to, std::string_view attributes) {
    fmt::format_to(std::back_inserter(out_), "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n",
                   from.x, from.y, to.x, to.y, attributes);
}

void svg::box(svg_box const& where, std::string_view attributes, std::string_view tooltip) {
    fmt::format_to(std::back_inserter(out_),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}>{}</rect>\n", where.x,
                   where.y, where.width, where.height, attributes, title(tooltip));
}

void svg::dot(svg_point at, double radius, std::string_view attributes, std::string_view tooltip) {
    fmt::format_to(std::back_inserter(out_), "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" {}>{}</circle>\n", at.x,
                   at.y, radius, attributes, title(tooltip));
}

void svg::path(std::string_view points, std::string_view attributes) {
    fmt::format_to(std::back_inserter(out_), "<polyline points=\"{}\" {}/>\n", points, attributes);
}

std::string svg::finish() && { return std::move(out_) + "</svg>\n"; }

}  // namespace kiln::report
