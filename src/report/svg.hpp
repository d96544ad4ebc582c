// SPDX-License-Identifier: Apache-2.0
// Writes pictures: shapes and words one after the other, drawn in that order. Attributes are the caller's own text; words
// and tooltips may be anybody's and are made safe.
#pragma once

#include <string>
#include <string_view>

namespace kiln::report {

// Between tags and in attributes, of SVG and of HTML. What is neither text nor UTF-8 is left out or replaced.
[[nodiscard]] std::string escaped(std::string_view text);

struct svg_point {
    double x = 0;
    double y = 0;
};
struct svg_box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};

class svg {
public:
    struct page {
        double width = 0;
        double height = 0;
        int font_size = 12;
    };
    explicit svg(page const& size);

    void words(svg_point at, std::string_view text, std::string_view attributes = {});
    // What is set above the line after them: 2^20.
    void words_with_exponent(svg_point at, std::string_view text, std::string_view exponent,
                             std::string_view attributes = {});
    void line(svg_point from, svg_point to, std::string_view attributes);
    void box(svg_box const& where, std::string_view attributes, std::string_view tooltip = {});
    void dot(svg_point at, double radius, std::string_view attributes, std::string_view tooltip = {});
    // "1.0,2.0 3.0,4.0 "
    void path(std::string_view points, std::string_view attributes);

    [[nodiscard]] std::string finish() &&;

private:
    std::string out_;
};

}  // namespace kiln::report
