// SPDX-License-Identifier: Apache-2.0
#include "compile/reproduction.hpp"

#include "base/digest.hpp"
#include "base/directory.hpp"
#include "base/files.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <charconv>

namespace kiln::compile {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "kiln reproduction 1\n";
constexpr std::string_view job_label = "job: ";
constexpr std::size_t most_file_bytes = std::size_t{512} << 20;

class report {
public:
    explicit report(std::string_view start) : text_{start} {}

    // Values are put on one line each, so that nothing in them can look like another field.
    void field(std::string_view label, std::string_view value) {
        text_ += fmt::format("{}: ", label);
        for (char const c : value) text_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        text_ += '\n';
    }
    void fields(std::string_view label, std::vector<std::string> const& values) {
        for (auto const& v : values) field(label, v);
    }
    void lines(std::string_view label, std::string_view text) {
        if (text.empty()) return;
        text_ += fmt::format("{}:\n", label);
        while (!text.empty()) {
            auto const line = text.substr(0, text.find('\n'));
            text_ += fmt::format("| {}\n", line);
            text.remove_prefix(std::min(text.size(), line.size() + 1));
        }
    }
    [[nodiscard]] std::string const& text() const noexcept { return text_; }

private:
    std::string text_;
};

void describe(report& r, compile_job const& c) {
    r.field("unit", c.unit.name);
    r.field("target", fmt::format("{} {}", c.target.arch.name(), name_of(c.target.kind)));
    r.fields("kernel", c.unit.kernels);
    r.fields("option", c.unit.options);
    r.fields("uncached option", c.unit.uncached_options);
    r.fields("include directory", c.unit.include_dirs);
    if (!c.unit.directory.empty()) r.field("source directory", c.unit.directory);
    for (auto const& h : c.unit.headers) r.field("header in memory", h.name);
    r.lines("source", c.unit.source);
}

void describe(report& r, link_job const& l) {
    r.field("link", l.name);
    r.field("target", fmt::format("{} {}", l.target.arch.name(), name_of(l.target.kind)));
    r.fields("kernel", l.kernels);
    r.fields("option", l.options);
    for (auto const& i : l.inputs)
        r.field("input", fmt::format("{} ({} bytes of {})", i.name, i.image.size(), name_of(i.kind)));
}

std::string describe(reproduction const& what) {
    report r{first_line};
    r.field("kiln", kiln::version);
    r.field("ended", what.reason);
    r.field("nvrtc", what.work.tools.nvrtc);
    r.field("nvjitlink", what.work.tools.nvjitlink);
    r.fields("toolkit headers", what.work.tools.toolkit_includes);
    std::visit([&](auto const& work) { describe(r, work); }, what.work.task);
    r.lines("last words", what.last_words);
    return r.text();
}

// Leaves room for one more. Whatever goes wrong here costs disk space only.
void remove_oldest(fs::path const& directory, fs::path const& keep, std::size_t most) {
    std::error_code ignored;
    std::vector<std::pair<fs::file_time_type, fs::path>> files;
    (void)base::for_each_name(directory, [&](std::string_view name) {
        auto const file = directory / name;
        if (file.extension() == reproduction_suffix && file != keep)
            files.emplace_back(fs::last_write_time(file, ignored), file);
    });
    std::ranges::sort(files);
    for (std::size_t i = 0; i + most < files.size() + 1; ++i) fs::remove(files[i].second, ignored);
}

}  // namespace

base::bytes encode(reproduction const& r) {
    auto const encoded = encode(r.work);
    base::byte_writer w;
    w.put_raw(base::as_bytes(describe(r)));
    w.put_raw(base::as_bytes(fmt::format("{}{}\n", job_label, encoded.size())));
    w.put_raw(encoded);
    return std::move(w).take();
}

result<fs::path> write_reproduction(fs::path const& directory, reproduction const& r, std::size_t most) {
    KILN_CHECK(base::make_directories(directory));
    auto const name = base::sha256_of(encode(r.work)).hex().substr(0, 16);
    auto const file = directory / (name + std::string{reproduction_suffix});
    remove_oldest(directory, file, most);
    KILN_CHECK(base::replace_file(file, encode(r)));
    return file;
}

result<job> decode_reproduction(base::byte_span data, std::string_view origin) {
    auto rest = base::as_text(data);
    auto const bad = [&](std::string_view why) { return fail(errc::corrupt, "{}: {}", origin, why); };
    if (!rest.starts_with(first_line)) return bad("not a reproduction file of this version of Kiln");
    while (!rest.starts_with(job_label)) {
        auto const end = rest.find('\n');
        if (end == rest.npos) return bad("the file ends before the job");
        rest.remove_prefix(end + 1);
    }
    rest.remove_prefix(job_label.size());
    std::size_t size = 0;
    auto const [end, why] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (why != std::errc{} || !rest.starts_with('\n') || rest.size() - 1 != size)
        return bad("the job's length is wrong");
    auto work = decode_job(base::as_bytes(rest.substr(1)));
    if (!work) return std::move(work).error().within(origin);
    return work;
}

result<job> read_reproduction(fs::path const& file) {
    KILN_TRY(auto const data, base::read_file(file, most_file_bytes));
    if (!data) return fail(errc::not_found, "{}: no such file", file.native());
    return decode_reproduction(*data, file.native());
}

}  // namespace kiln::compile
