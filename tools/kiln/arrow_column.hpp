// SPDX-License-Identifier: Apache-2.0
// One column of the batches of an Arrow stream, row by row as text: what GDAL reads of a file.
#pragma once

#include <kiln/runtime/interop.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::cli {

// Untold: nobody says; what is valid UTF-8 is taken for that, anything else for Latin-1.
enum class text_encoding : std::uint8_t { utf8, latin1, untold };
// In UTF-8.
[[nodiscard]] std::string decoded(std::string_view text, text_encoding from);

class arrow_column {
public:
    arrow_column(ArrowSchema const& schema, std::int64_t at, text_encoding encoding);

    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] std::string const& format() const noexcept { return format_; }
    [[nodiscard]] bool is_geometry() const noexcept { return is_geometry_; }  // as WKB
    [[nodiscard]] bool is_text() const noexcept { return format_ == "u" || format_ == "U"; }
    // Text, a number or a truth value.
    [[nodiscard]] bool is_name() const noexcept;
    // A date with a time, of which the stream does not tell the zone.
    [[nodiscard]] bool is_time_without_zone() const noexcept {
        return format_.starts_with("ts") && format_.size() <= 4;
    }

    // Of one row of a batch; nothing where it is null.
    [[nodiscard]] std::optional<std::string> value(ArrowArray const& batch, std::int64_t row) const;
    // What it is in JSON; nothing where JSON has nothing like it.
    [[nodiscard]] std::optional<std::string> in_json(ArrowArray const& batch, std::int64_t row) const;

private:
    [[nodiscard]] bool is_moment() const noexcept { return format_ == "tdD" || format_.starts_with("ts"); }
    [[nodiscard]] std::optional<std::string> moment(ArrowArray const& batch, std::int64_t row) const;
    [[nodiscard]] std::optional<std::string> as(std::string_view format, ArrowArray const& batch,
                                                std::int64_t row) const;

    std::int64_t at_;
    std::string name_, format_;
    text_encoding encoding_;
    bool is_geometry_;
};

}  // namespace kiln::cli
