// SPDX-License-Identifier: Apache-2.0
// What `kiln spatial` reads and writes.
#pragma once

#include "command.hpp"
#include "progress.hpp"

#include <kiln/spatial/files.hpp>

namespace kiln::cli {

struct spatial_input {
    std::string file;  // "-": standard input
    std::string id;
    std::string layer = {};  // of a file that has several
};
struct spatial_reading {
    std::string format = "auto";
    std::string x, y, wkt;
    bool keeps_properties = false;  // for rows that are written again
};
struct spatial_layer {
    std::string file;
    spatial::rows_of_file data;

    [[nodiscard]] spatial::geometries const& rows() const noexcept { return data.rows; }
    // What a row is called: its id, or its number.
    [[nodiscard]] std::string name(std::int32_t row) const;
    [[nodiscard]] json name_in_json(std::int32_t row) const;
    [[nodiscard]] json id_in_json(std::string const& id) const;  // a number where ids are numbers
};

// errc::invalid_argument with file, line and reason.
[[nodiscard]] result<spatial_layer> read_layer(spatial_input const& from, spatial_reading const& how);

// Steps of long work on stderr: on a terminal, or where the files are large enough to wait for.
class spatial_progress {
public:
    spatial_progress(std::string title, std::size_t steps, std::vector<std::string> const& files);
    void step(std::string_view what) { bar_.step(what); }

private:
    progress bar_;
};

// A field of a CSV, in quotes where it needs them.
[[nodiscard]] std::string csv_field(std::string_view text);

enum class spatial_output : std::uint8_t { csv, geojson, wkb, wkt };
// ".geojson" of A.GEOJSON.
[[nodiscard]] std::string ending_of(std::string const& file);
[[nodiscard]] spatial_output output_kind(std::string const& file);  // by its name

}  // namespace kiln::cli
