// SPDX-License-Identifier: Apache-2.0
// GEOS, where it is there: what the pack means by its words is compared with it. Never the judge of nearly degenerate signs.
#pragma once

#ifdef KILN_TEST_GEOS

#include <kiln/spatial/wkb.hpp>

#include <geos_c.h>

#include <memory>
#include <string>
#include <vector>

namespace kiln::spatial_tests {

class geos {
public:
    geos() : handle_{GEOS_init_r()} {}
    geos(geos const&) = delete;
    ~geos() {
        for (auto* g : made_) GEOSGeom_destroy_r(handle_, g);
        GEOS_finish_r(handle_);
    }

    // By row; null rows are null pointers.
    std::vector<GEOSGeometry*> read(spatial::geometries const& from) {
        auto const bytes = spatial::to_wkb(from).value();
        auto* const reader = GEOSWKBReader_create_r(handle_);
        std::vector<GEOSGeometry*> out;
        for (std::size_t i = 0; i < bytes.rows(); ++i) {
            auto const first = bytes.offsets()->data()[i], last = bytes.offsets()->data()[i + 1];
            auto* const g = bytes.is_null(i) ? nullptr
                                             : GEOSWKBReader_read_r(handle_, reader, bytes.values().data() + first,
                                                                    static_cast<std::size_t>(last - first));
            out.push_back(g);
            if (g != nullptr) made_.push_back(g);
        }
        GEOSWKBReader_destroy_r(handle_, reader);
        return out;
    }
    std::string relate(GEOSGeometry const* a, GEOSGeometry const* b) {
        std::unique_ptr<char, void (*)(void*)> const text{GEOSRelate_r(handle_, a, b), &GEOSFree};
        return text ? text.get() : "error";
    }
    bool is_valid(GEOSGeometry const* g) { return GEOSisValid_r(handle_, g) == 1; }
    bool is_simple(GEOSGeometry const* g) { return GEOSisSimple_r(handle_, g) == 1; }
    GEOSContextHandle_t handle() { return handle_; }

private:
    GEOSContextHandle_t handle_;
    std::vector<GEOSGeometry*> made_;
};

}  // namespace kiln::spatial_tests

#endif
