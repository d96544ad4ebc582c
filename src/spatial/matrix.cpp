// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/relate.hpp>

#include "base/check.hpp"

#include <algorithm>

namespace kiln::spatial {

namespace {

constexpr part parts[] = {part::interior, part::boundary, part::exterior};

bool matches_entry(char wanted, int got) noexcept {
    switch (wanted) {
        case '*': return true;
        case 'T': return got >= 0;
        case 'F': return got < 0;
        default: return got == wanted - '0';
    }
}

// Patterns of this file are right.
bool is(matrix const& m, std::string_view pattern) noexcept {
    std::size_t i = 0;
    for (auto const left : parts)
        for (auto const right : parts)
            if (!matches_entry(pattern[i++], m.at(left, right))) return false;
    return true;
}

bool crosses(matrix const& m) noexcept {
    int const a = m.left_dimension(), b = m.right_dimension();
    if (a < b) return is(m, "T*T******");
    if (a > b) return is(m, "T*****T**");
    return a == 1 && is(m, "0********");
}
bool overlaps(matrix const& m) noexcept {
    int const a = m.left_dimension();
    if (a != m.right_dimension()) return false;
    return is(m, a == 1 ? "1*T***T**" : "T*T***T**");
}
bool covers(matrix const& m) noexcept {
    return is(m, "T*****FF*") || is(m, "*T****FF*") || is(m, "***T**FF*") || is(m, "****T*FF*");
}
bool covered_by(matrix const& m) noexcept {
    return is(m, "T*F**F***") || is(m, "*TF**F***") || is(m, "**FT*F***") || is(m, "**F*TF***");
}
bool touches(matrix const& m) noexcept {
    if (m.left_dimension() == 0 && m.right_dimension() == 0) return false;
    return is(m, "FT*******") || is(m, "F**T*****") || is(m, "F***T****");
}

}  // namespace

std::string matrix::text() const {
    std::string out;
    for (auto const left : parts)
        for (auto const right : parts) out += "F012"[at(left, right) + 1];
    return out;
}

result<bool> matrix::matches(std::string_view pattern) const {
    if (pattern.size() != 9 || pattern.find_first_not_of("TF*012") != std::string_view::npos)
        return fail(errc::invalid_argument, "relate: '{}' is not nine of T, F, *, 0, 1 and 2", pattern);
    return is(*this, pattern);
}

std::string_view name_of(predicate what) noexcept {
    switch (what) {
        case predicate::intersects: return "intersects";
        case predicate::disjoint: return "disjoint";
        case predicate::contains: return "contains";
        case predicate::contains_properly: return "contains_properly";
        case predicate::within: return "within";
        case predicate::covers: return "covers";
        case predicate::covered_by: return "covered_by";
        case predicate::touches: return "touches";
        case predicate::crosses: return "crosses";
        case predicate::overlaps: return "overlaps";
        case predicate::equals: return "equals";
    }
    return "unknown";
}

bool holds(predicate what, matrix const& of) noexcept {
    switch (what) {
        case predicate::intersects: return !is(of, "FF*FF****");
        case predicate::disjoint: return is(of, "FF*FF****");
        case predicate::contains: return is(of, "T*****FF*");
        case predicate::contains_properly: return is(of, "T**FF*FF*");
        case predicate::within: return is(of, "T*F**F***");
        case predicate::covers: return covers(of);
        case predicate::covered_by: return covered_by(of);
        case predicate::touches: return touches(of);
        case predicate::crosses: return crosses(of);
        case predicate::overlaps: return overlaps(of);
        case predicate::equals: return of.left_dimension() == of.right_dimension() && is(of, "T*F**FFF*");
    }
    return false;
}

}  // namespace kiln::spatial
