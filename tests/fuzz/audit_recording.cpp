// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of a recording: read without harm, and nothing counted twice; and as the lines beside it: what was understood is written
// and read again as the same.
#include "audit/native_lines.hpp"
#include "fuzz/fuzz.hpp"

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    auto const lines = audit::to_text(audit::native_lines_from(base::as_text(input)));
    fuzz::must(audit::to_text(audit::native_lines_from(lines)) == lines);
    audit::string_table strings;
    audit::process_recording read;
    auto const done = audit::parse_process(input, strings, read);
    fuzz::must(done || done.error().code() == errc::corrupt || done.error().code() == errc::unsupported);
    if (!done) return 0;
    fuzz::must(read.bytes == size && read.skipped_bytes <= size);
    auto const records = read.kernels.size() * audit::format::bytes_of<audit::format::kernel_record>() +
                         read.calls.size() * audit::format::bytes_of<audit::format::call_record>();
    fuzz::must(records <= size && read.chunks * audit::format::chunk_header_bytes <= size);
    for (std::size_t i = 0; i < read.kernels.size(); ++i) fuzz::must(read.kernels[i].name < strings.size());
    for (auto const& s : read.sites) fuzz::must(s.stack < strings.size());
    return 0;
}
