// SPDX-License-Identifier: Apache-2.0
// A user's program: public headers only, and calls into the library.
#include <kiln/event.hpp>
#include <kiln/result.hpp>
#include <kiln/version.hpp>

#include <cstdio>

namespace {

kiln::result<int> half(int n) {
    if (n % 2 != 0) return kiln::error{kiln::errc::invalid_argument, "odd"};
    return n / 2;
}

}  // namespace

int main() {
    kiln::event_log log;
    log.emit({.kind = kiln::event_kind::note, .unit = "consumer"});
    bool const good = half(4).value() == 2 && !half(3) && kiln::name_of(half(3).error().code()) == "invalid-argument" &&
                      log.count(kiln::event_kind::note) == 1 && !kiln::version.empty();
    std::puts(good ? "kiln works" : "kiln does not work");
    return good ? 0 : 1;
}
