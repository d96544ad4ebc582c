// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where there is no clang: gives every file of the corpus folders to the target once,
// whole and cut short at a few places.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

void feed(std::string const& input, std::size_t size) {
    // A heap block of exactly this size, so that AddressSanitizer sees a read past the end.
    std::string const exact{input, 0, size};
    LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(exact.data()), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
    int files = 0;
    for (int i = 1; i < argc; ++i) {
        for (auto const& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
            if (!entry.is_regular_file()) continue;
            std::ifstream in{entry.path(), std::ios::binary};
            std::string const input{std::istreambuf_iterator<char>{in}, {}};
            for (std::size_t part = 0; part <= 8; ++part) feed(input, input.size() * part / 8);
            ++files;
        }
    }
    std::printf("%d files replayed\n", files);
    return files == 0 ? 1 : 0;
}
