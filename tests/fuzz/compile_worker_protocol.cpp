// SPDX-License-Identifier: Apache-2.0
// Any bytes as what one side of a worker's socket hears. The first byte chooses: 0, a stream of frames, fed in uneven
// pieces, with every body read by both sides; else the body of one frame, so that its fields are reached.
#include "compile/job.hpp"
#include "compile/worker_protocol.hpp"
#include "fuzz/fuzz.hpp"

using namespace kiln;
using fuzz::must;

namespace {

// What is accepted can be written, and is the same when it is read again.
void hello(base::byte_span body) {
    auto const said = compile::decode_hello(body);
    if (!said) return;
    (void)compile::check_protocol(*said);
    auto const again = compile::decode_hello(compile::encode(*said));
    must(again && again->protocol == said->protocol && again->pid == said->pid && again->kiln == said->kiln);
}

void limits(base::byte_span body) {
    auto const said = compile::decode_limits(body);
    if (!said) return;
    auto const written = compile::encode(*said);
    must(base::as_text(written) == base::as_text(body));
}

void job(base::byte_span body) {
    auto const asked = compile::decode_job(body);
    if (!asked) return;
    (void)asked->name();
    auto const written = compile::encode(*asked);
    auto const again = compile::decode_job(written);
    must(again && compile::encode(*again) == written);
    // A worker that lies: the product of the job, and not.
    artifact made{.unit = asked->name(), .target = target::parse("sm_90", artifact_kind::cubin).value()};
    (void)compile::check_product(*asked, made);
}

void product(base::byte_span body) {
    auto const made = compile::decode_artifact(body);
    if (!made) return;
    auto const written = compile::encode(*made);
    must(base::as_text(written) == base::as_text(body));
    compile::job const asked{{},
                             compile::compile_job{.unit = {.name = made->unit, .source = {}}, .target = made->target}};
    (void)compile::check_product(asked, *made);
}

void failure(base::byte_span body) {
    auto const said = compile::decode_failure(body);
    auto const again = compile::decode_failure(compile::encode(said));
    must(again.why.code() == said.why.code() && again.why.message() == said.why.message() &&
         again.why.log() == said.why.log() && again.why.status() == said.why.status());
    must(compile::encode(again) == compile::encode(said));
}

void all_bodies(base::byte_span body) {
    hello(body);
    limits(body);
    auto const numbered = compile::decode_numbered(body);
    if (!numbered) return;
    must(base::as_text(compile::encode(*numbered)) == base::as_text(body));
    job(numbered->payload);
    product(numbered->payload);
    failure(numbered->payload);
}

void stream(base::byte_span data) {
    compile::frame_parser whole, pieces;
    whole.feed(data);
    for (std::size_t at = 0; at < data.size();) {
        auto const size = std::min<std::size_t>(1 + at % 13, data.size() - at);
        pieces.feed(data.subspan(at, size));
        at += size;
    }
    for (;;) {
        auto const one = whole.next();
        auto const other = pieces.next();
        must(one.has_value() == other.has_value());
        if (!one) return must(!whole.next());  // a stream that is lost stays lost
        must(one->has_value() == other->has_value());
        if (!*one) return;
        must((*one)->kind == (*other)->kind && (*one)->body == (*other)->body);
        auto const again = compile::make_frame((*one)->kind, (*one)->body);
        must(again.has_value() && again->size() == compile::frame_header_bytes + (*one)->body.size());
        all_bodies((*one)->body);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const [which, rest] = fuzz::choose(fuzz::bytes_of(data, size), 6);
    switch (which) {
        case 0: stream(rest); break;
        case 1: hello(rest); break;
        case 2: limits(rest); break;
        case 3: job(rest); break;
        case 4: product(rest); break;
        default: failure(rest); break;
    }
    return 0;
}
