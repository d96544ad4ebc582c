// SPDX-License-Identifier: Apache-2.0
// What the samples share: a unit on the GPU or a polite end without one, and arrays that are there and back in one line.
#pragma once

#include <kiln/engine.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sample {

constexpr int no_gpu = 77;

// The unit on the first GPU. Where there is none it is compiled all the same, and the program ends.
inline kiln::ready_unit load(kiln::unit const& u) {
    auto& engine = kiln::engine::process();
    if (auto const gpu = kiln::devices(); !gpu) {
        auto const made = engine.artifact_sync(u, kiln::target::parse("sm_90").value()).value();
        std::printf("%s: no GPU; compiled for sm_90: %zu bytes\n", u.name.c_str(), made.what->image.size());
        std::exit(no_gpu);
    }
    return engine.get_sync(u).value();
}

template <class T>
class array {
public:
    array(kiln::stream_ref on, std::vector<T> const& from)
        : memory_{kiln::device_memory::make(from.size() * sizeof(T)).value()}, size_{from.size()} {
        memory_.upload_sync(on, from).value();
    }
    array(kiln::stream_ref on, std::size_t size) : array{on, std::vector<T>(size)} {}
    [[nodiscard]] T* get() const { return memory_.template as<T>(); }
    [[nodiscard]] std::vector<T> read_sync(kiln::stream_ref on) const {
        std::vector<T> out(size_);
        memory_.download_sync(on, out).value();
        return out;
    }

private:
    kiln::device_memory memory_;
    std::size_t size_;
};

// The program's end: what was compared, and the exit status.
inline int verdict(char const* name, std::size_t compared, std::size_t wrong, double largest_error = 0) {
    std::printf("%s: %zu results, %zu wrong, largest error %.2g\n", name, compared, wrong, largest_error);
    return wrong == 0 ? 0 : 1;
}

template <class Body>
int run(Body body) {
    try {
        return body();
    } catch (kiln::error const& e) {
        std::fprintf(stderr, "%s\n%s", e.what(), e.log().c_str());
        return 1;
    }
}

}  // namespace sample
