// SPDX-License-Identifier: Apache-2.0
//
// Geometry arrays to and from the Arrow C device interface, in the types of GeoArrow 0.2: geoarrow.point, .linestring,
// .polygon, .multipoint, .multilinestring, .multipolygon with separated or interleaved coordinates, and geoarrow.wkb. Separated
// coordinates are taken and given without a copy; interleaved ones and WKB are copied, which needs the data on the host. What is
// imported is released with the last array that uses it; what is exported lives until the other side releases it. Work on a
// device is handed over in stream order, as in <kiln/runtime/interop.hpp>.
//
// The extension's name is read from the schema's metadata. A schema without one is understood by its nesting where that is
// unambiguous: a struct of x and y, by these names, is a point, binary is WKB. Slices are taken as they are, on a device only without an offset. Only rows, and what lies under a null one, may be null.
#pragma once

#include <kiln/runtime/interop.hpp>
#include <kiln/spatial/geometry.hpp>

#include <string>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Takes both structs over, also when it fails. For data on the host `on` is not used.
[[nodiscard]] result<geometries> from_arrow(stream_ref on, ArrowSchema* schema, ArrowDeviceArray* array);
// The same for the C data interface: the host.
[[nodiscard]] result<geometries> from_arrow(ArrowSchema* schema, ArrowArray* array);

enum class coordinates : std::uint8_t { separated, interleaved };
struct arrow_options {
    coordinates layout = coordinates::separated;  // interleaved: copied, on the host
    std::string name = {};                        // of the field
    std::string crs = {};                         // PROJJSON, put into the extension's metadata as it is
};
// errc::unsupported for mixed arrays, which have no type in GeoArrow 0.2 that readers agree on: use to_wkb; and for views, which
// compact() copies.
[[nodiscard]] result<void> to_arrow(stream_ref on, geometries const& what, ArrowSchema* schema, ArrowDeviceArray* array,
                                    arrow_options const& how = {});

}  // namespace spatial
}  // namespace kiln
