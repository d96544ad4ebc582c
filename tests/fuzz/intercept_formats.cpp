// SPDX-License-Identifier: Apache-2.0
// Any bytes as what `kiln run` reads that another process, another run or somebody else wrote. The first byte chooses: an answer
// that is kept, a job, a product, a list of headers, the log of a run, a record, a name in a capsule, a path a compiler asks for, a
// program with its options.
#include "fuzz/fuzz.hpp"
#include "intercept/capsule_file.hpp"
#include "intercept/foreign_job.hpp"
#include "intercept/foreign_store.hpp"
#include "intercept/other_targets.hpp"
#include "intercept/program_name.hpp"
#include "intercept/run_events.hpp"
#include "intercept/run_record.hpp"

using namespace kiln;
using namespace kiln::intercept;
using fuzz::must;

namespace {

// What is accepted can be written, and is the same when it is read again.
void entry(base::byte_span data) {
    auto const read = decode_foreign_entry(data);
    if (!read) return;
    auto const again = decode_foreign_entry(encode(*read));
    must(again && *again == *read);
    look_roots const roots{.source_directory = "/s", .include_directories = {"/a", "/b"}};
    for (auto const& one : read->looks) (void)roots.locate(one);
    (void)with_real_paths(read->answer.log, roots);
    (void)key_of({}, read->looks);
}

void job(base::byte_span data) {
    auto const read = decode_foreign_job(data);
    if (!read) return;
    auto const written = encode(*read);
    must(base::as_text(written) == base::as_text(data));
    auto const& options = read->call.options;
    (void)name_for_people(read->program);
    (void)target_in(options);
    (void)unkeepable_option(options);
    (void)digests_of(read->program, read->call, read->toolchain);
    if (auto const hidden = virtual_call(read->program, options)) must(hidden->is_virtual());
    if (auto const other = options_for(options, "sm_80")) must(other->size() == options.size());
}

void product(base::byte_span data) {
    auto const read = decode_foreign_product(data);
    if (!read) return;
    must((read->how == foreign_product::outcome::unusable) ||
         (read->how == foreign_product::outcome::made) == (read->status == nvrtc_success));
    auto const again = decode_foreign_product(encode(*read));
    must(again && again->entry == read->entry && again->status == read->status && again->how == read->how &&
         again->known == read->known);
}

void headers(base::byte_span data) {
    auto const read = decode_known_files(data);
    if (!read.empty()) must(base::as_text(encode(std::span{read})) == base::as_text(data));
}

void log(base::byte_span data) {
    for (auto const& h : parse_run_log(base::as_text(data)).happenings) {
        must(from_line(to_line(h)) == from_line(to_line(*from_line(to_line(h)))));
        for (auto const& one : events_of(h, 1'000'000'000)) (void)one;
    }
    (void)program_name(base::as_text(data));
    (void)program_in(base::as_text(data));
    (void)cost_in(base::as_text(data));
}

void capsule_name(std::string_view name) {
    if (!stays_inside(name)) return;
    auto const whole = (std::filesystem::path{"/folder"} / name).lexically_normal().native();
    must(whole.starts_with("/folder/") && whole.size() > std::string_view{"/folder/"}.size());
}

void path(std::string_view text) {
    auto const read = parse_look(text);
    if (!read || read->from == look::root::as_named) return;
    look_roots const roots{.source_directory = "/s", .include_directories = {"/a"}};
    if (auto const real = roots.locate(*read)) must(real->starts_with("/s/") || real->starts_with("/a/"));
}

void program(std::string_view text) {
    auto const line = text.find('\n');
    std::vector<std::string> options;
    for (std::string_view rest = text.substr(0, line); !rest.empty();) {
        auto const blank = std::min(rest.find(' '), rest.size());
        options.emplace_back(rest.substr(0, blank));
        rest.remove_prefix(std::min(rest.size(), blank + 1));
    }
    foreign_program const asked{.source = std::string{line == text.npos ? "" : text.substr(line + 1)},
                                .name = "/tmp/x/k.cu",
                                .headers = {},
                                .expressions = {}};
    (void)name_for_people(asked);
    (void)target_in(options);
    (void)unkeepable_option(options);
    auto const literal = literal_call(asked, options, "/");
    must(literal.options == options && !literal.is_virtual());
    if (auto const hidden = virtual_call(asked, options)) must(hidden->options.size() == options.size());
    if (auto const other = options_for(options, "sm_100")) must(target_in(*other) != "default");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const [which, rest] = fuzz::choose(fuzz::bytes_of(data, size), 9);
    switch (which) {
        case 0: entry(rest); break;
        case 1: job(rest); break;
        case 2: product(rest); break;
        case 3: headers(rest); break;
        case 4: log(rest); break;
        case 5: (void)parse_run_record(base::as_text(rest)); break;
        case 6: capsule_name(base::as_text(rest)); break;
        case 7: path(base::as_text(rest)); break;
        default: program(base::as_text(rest)); break;
    }
    return 0;
}
