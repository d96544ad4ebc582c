// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/geometry.hpp>

#include "base/check.hpp"
#include "spatial/row_facts.hpp"
#include "spatial/rows.hpp"

namespace kiln::spatial {

std::string_view name_of(family kind) noexcept {
    switch (kind) {
        case family::point: return "point";
        case family::linestring: return "linestring";
        case family::polygon: return "polygon";
        case family::multipoint: return "multipoint";
        case family::multilinestring: return "multilinestring";
        case family::multipolygon: return "multipolygon";
        case family::mixed: return "mixed";
    }
    return "unknown";
}

namespace {

bool is_family(std::int8_t number) noexcept { return number >= 1 && number <= static_cast<int>(single_families); }

// Where all parts of an array are.
class place {
public:
    template <class T>
    void see(buffer<T> const& b) noexcept {
        if (b.empty()) return;
        if (seen_ && (b.where() != where_ || (on_device(where_) && b.device() != device_))) same_ = false;
        seen_ = true, where_ = b.where(), device_ = b.device();
    }
    template <class T>
    void see(std::optional<buffer<T>> const& b) noexcept {
        if (b) see(*b);
    }
    void see(geometry_parts const& parts) noexcept {
        see(parts.x), see(parts.y);
        for (auto const& offsets : parts.offsets) see(offsets);
        see(parts.validity);
    }
    [[nodiscard]] bool same() const noexcept { return same_; }
    [[nodiscard]] residency where() const noexcept { return where_; }
    [[nodiscard]] int device() const noexcept { return device_; }

private:
    bool seen_ = false, same_ = true;
    residency where_ = residency::host;
    int device_ = 0;
};

place place_of(geometry_parts const& parts) noexcept {
    place out;
    out.see(parts);
    return out;
}

result<void> check_validity(std::optional<buffer<std::uint8_t>> const& validity, std::size_t rows) {
    if (validity && validity->size() < (rows + 7) / 8)
        return fail(errc::invalid_argument, "geometries: {} bytes of validity for {} rows", validity->size(), rows);
    return {};
}

bool bit(std::optional<buffer<std::uint8_t>> const& validity, std::size_t row) noexcept {
    return !validity || (validity->data()[row / 8] >> (row % 8) & 1U) != 0;
}

}  // namespace

result<geometries> geometries::make(geometry_parts parts) {
    auto const levels = levels_of(parts.kind);
    if (parts.kind < family::point || parts.kind > family::multipolygon)
        return fail(errc::invalid_argument, "geometries: no single family has number {}", static_cast<int>(parts.kind));
    if (parts.x.size() != parts.y.size())
        return fail(errc::invalid_argument, "geometries: {} values of x and {} of y", parts.x.size(), parts.y.size());
    for (std::size_t i = 0; i < parts.offsets.size(); ++i) {
        if ((i < levels) == parts.offsets[i].empty())
            return fail(errc::invalid_argument, "geometries: {} has {} level(s) of offsets, and level {} is {}",
                        name_of(parts.kind), levels, i, parts.offsets[i].empty() ? "missing" : "one too many");
    }
    auto const place = place_of(parts);
    if (!place.same()) return fail(errc::invalid_argument, "geometries: parts are in different memories");
    geometries out;
    out.kind_ = parts.kind;
    out.rows_ = levels == 0 ? parts.x.size() : parts.offsets[0].size() - 1;
    out.where_ = place.where(), out.device_ = place.device();
    KILN_CHECK(check_validity(parts.validity, out.rows_));
    out.parts_ = std::make_shared<geometry_parts const>(std::move(parts));
    out.facts_ = std::make_shared<row_facts>();
    return out;
}

result<geometries> geometries::make(mixed_parts parts) {
    if (parts.type.size() != parts.child_row.size())
        return fail(errc::invalid_argument, "geometries: {} types and {} rows of children", parts.type.size(),
                    parts.child_row.size());
    KILN_CHECK(check_validity(parts.validity, parts.type.size()));
    place all;
    all.see(parts.type), all.see(parts.child_row), all.see(parts.validity);
    unsigned seen = 0;
    for (auto const& child : parts.children) {
        auto const mask = 1U << static_cast<unsigned>(child.kind());
        if (child.kind() == family::mixed || child.chosen() || (seen & mask) != 0)
            return fail(errc::invalid_argument,
                        "geometries: a mixed array has one child of each family, without views");
        seen |= mask;
        all.see(child.parts());
    }
    if (!all.same()) return fail(errc::invalid_argument, "geometries: parts are in different memories");
    geometries out;
    out.kind_ = family::mixed;
    out.rows_ = parts.type.size();
    out.where_ = all.where(), out.device_ = all.device();
    out.mixed_ = std::make_shared<mixed_parts const>(std::move(parts));
    out.facts_ = std::make_shared<row_facts>();
    return out;
}

result<geometries> geometries::points(buffer<double> x, buffer<double> y,
                                      std::optional<buffer<std::uint8_t>> validity) {
    geometry_parts parts;
    parts.kind = family::point;
    parts.x = std::move(x), parts.y = std::move(y);
    parts.validity = std::move(validity);
    return make(std::move(parts));
}

geometry_parts const& geometries::parts() const noexcept {
    static geometry_parts const none;
    return parts_ ? *parts_ : none;
}
mixed_parts const& geometries::mixed() const noexcept {
    static mixed_parts const none;
    return mixed_ ? *mixed_ : none;
}

std::size_t geometries::vertices() const noexcept {
    if (kind_ != family::mixed) return parts().x.size();
    std::size_t out = 0;
    for (auto const& child : mixed_->children) out += child.vertices();
    return out;
}

std::size_t geometries::bytes() const noexcept {
    std::size_t out = chosen_ ? chosen_->raw().bytes() : 0;
    if (kind_ == family::mixed) {
        out += mixed_->type.raw().bytes() + mixed_->child_row.raw().bytes();
        if (mixed_->validity) out += mixed_->validity->raw().bytes();
        for (auto const& child : mixed_->children) out += child.bytes();
        return out;
    }
    auto const& p = parts();
    out += p.x.raw().bytes() + p.y.raw().bytes();
    for (auto const& offsets : p.offsets) out += offsets.raw().bytes();
    if (p.validity) out += p.validity->raw().bytes();
    return out;
}

result<geometries> geometries::view(buffer<std::int32_t> chosen) const {
    if (!chosen.empty() && rows_ > 0 && on_device(chosen.where()) != on_device(where_))
        return fail(errc::invalid_argument, "geometries: a view's rows must be where the geometries are");
    auto out = *this;
    out.rows_ = chosen.size();
    out.facts_ = std::make_shared<row_facts>();
    out.facts_->are_borders = facts_ && facts_->are_borders;
    if (chosen_) {
        if (where_ == residency::device)
            return fail(errc::unsupported, "geometries: a view of a view on a device: choose rows on the host");
        auto through = buffer<std::int32_t>::on_host(chosen.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            auto const row = chosen.data()[i];
            bool const there = row >= 0 && static_cast<std::size_t>(row) < rows_;
            through.data()[i] = there ? chosen_->data()[row] : -1;  // validate() finds it
        }
        chosen = std::move(through);
    }
    out.chosen_ = std::move(chosen);
    return out;
}

std::size_t geometries::memory_row(std::size_t row) const noexcept {
    return chosen_ ? static_cast<std::size_t>(chosen_->data()[row]) : row;
}

bool geometries::is_null(std::size_t row) const noexcept {
    row = memory_row(row);
    return !bit(kind_ == family::mixed ? mixed_->validity : parts().validity, row);
}

bool geometries::is_empty(std::size_t row) const noexcept {
    if (is_null(row)) return false;
    auto const [parts, at] = locate_row(*this, row);
    if (parts == nullptr) return true;
    if (parts->kind == family::point) return std::isnan(parts->x.data()[at]) && std::isnan(parts->y.data()[at]);
    // A polygon of no vertices in one ring is as empty as one without rings.
    auto first = static_cast<std::size_t>(parts->offsets[0].data()[at]);
    auto last = static_cast<std::size_t>(parts->offsets[0].data()[at + 1]);
    for (std::size_t level = 1; level < levels_of(parts->kind); ++level) {
        first = static_cast<std::size_t>(parts->offsets[level].data()[first]);
        last = static_cast<std::size_t>(parts->offsets[level].data()[last]);
    }
    return first == last;
}

family geometries::kind_of(std::size_t row) const noexcept {
    if (kind_ != family::mixed) return kind_;
    auto const number = mixed_->type.data()[memory_row(row)];
    return is_family(number) ? static_cast<family>(number) : family::mixed;
}

template <class Move>
result<geometries> geometries::moved(Move move) const {
    auto out = *this;
    bool placed = false;
    auto const each = [&]<class T>(buffer<T>& b) -> result<void> {
        KILN_TRY(b, move(b));
        if (!b.empty() && !placed) out.where_ = b.where(), out.device_ = b.device(), placed = true;
        return {};
    };
    if (chosen_) KILN_CHECK(each(*out.chosen_));
    if (kind_ == family::mixed) {
        auto parts = *mixed_;
        KILN_CHECK(each(parts.type));
        KILN_CHECK(each(parts.child_row));
        if (parts.validity) KILN_CHECK(each(*parts.validity));
        for (auto& child : parts.children) {
            KILN_TRY(child, child.moved(move));
        }
        out.mixed_ = std::make_shared<mixed_parts const>(std::move(parts));
        return out;
    }
    auto parts = this->parts();
    KILN_CHECK(each(parts.x));
    KILN_CHECK(each(parts.y));
    for (auto& offsets : parts.offsets)
        if (!offsets.empty()) KILN_CHECK(each(offsets));
    if (parts.validity) KILN_CHECK(each(*parts.validity));
    out.parts_ = std::make_shared<geometry_parts const>(std::move(parts));
    return out;
}

result<geometries> geometries::to_device(stream_ref on, int device) const {
    return moved([&](auto const& b) { return b.to_device(on, device); });
}
result<geometries> geometries::to_host_sync(stream_ref on) const {
    return moved([&](auto const& b) { return b.to_host_sync(on); });
}

}  // namespace kiln::spatial
