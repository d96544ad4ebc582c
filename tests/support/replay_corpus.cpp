// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer where there is no clang. It takes the same arguments as far as scripts/fuzz gives them:
//
//     fuzz_NAME FOLDER...                               every file once, whole and cut short at a few places
//     fuzz_NAME -max_total_time=60 NEW FOLDER...        then changes of them, at random, for so many seconds
//                                                       -seed=N -timeout=25 -artifact_prefix=DIR/NAME-
//
// In a build with KILN_FUZZ the compiler calls back at every block of the code: an input that reaches a new one is kept, in
// memory and in NEW. In other builds changes are blind. An input that ends the program is written to a file first.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

#if defined(__GNUC__) && !defined(__clang__)
#define KILN_UNCOUNTED __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage))
#else
#define KILN_UNCOUNTED
#endif

namespace {

constexpr std::size_t most_input = 64 << 10;
constexpr std::size_t slots = std::size_t{1} << 20;

// One byte per block of code, by its address. Threads of a target may write at once: a lost mark is found again.
unsigned char seen[slots];
std::size_t blocks = 0;

std::string const* running = nullptr;
std::string artifact_prefix = "./";

// Called while the program dies: nothing but system calls.
void save_running() {
    if (running == nullptr) return;
    std::array<char, 512> name;
    std::snprintf(name.data(), name.size(), "%scrash-%ld", artifact_prefix.c_str(), static_cast<long>(::getpid()));
    int const file = ::open(name.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return;
    [[maybe_unused]] auto const written = ::write(file, running->data(), running->size());
    ::close(file);
    std::fprintf(stderr, "the input that did it: %s\n", name.data());
    running = nullptr;
}

void on_signal(int number) {
    if (number == SIGALRM) std::fprintf(stderr, "one input takes too long\n");
    save_running();
    ::signal(number == SIGALRM ? SIGABRT : number, SIG_DFL);
    ::raise(number == SIGALRM ? SIGABRT : number);
}

void feed(std::string const& input) {
    // A heap block of exactly this size, so that AddressSanitizer sees a read past the end.
    std::vector<std::uint8_t> const exact(input.begin(), input.end());
    running = &input;
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    running = nullptr;
}

std::string read(std::filesystem::path const& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

// One small change, as bad luck and attackers make them.
class mutator {
public:
    explicit mutator(std::uint64_t seed) : random_{seed} {}

    std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

    std::string changed(std::vector<std::string> const& corpus) {
        auto out = corpus[below(corpus.size())];
        for (auto left = std::size_t{1} << below(5); left > 0; --left) change(out, corpus[below(corpus.size())]);
        if (out.size() > most_input) out.resize(most_input);
        return out;
    }

private:
    void change(std::string& text, std::string const& other) {
        auto const at = below(text.size() + 1);
        auto const size = std::min<std::size_t>(1 + below(std::size_t{1} << below(9)), text.size() - at);
        switch (below(10)) {
            case 0:
                if (size > 0) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 1:
                if (size > 0) text[at] = static_cast<char>(random_());
                break;
            case 2: text.insert(at, 1 + below(8), static_cast<char>(random_())); break;
            case 3: text.erase(at, size); break;
            case 4: text.insert(below(text.size() + 1), text.substr(at, size)); break;
            case 5: text.replace(below(text.size() + 1), 0, other, below(other.size() + 1), 1 + below(64)); break;
            case 6: text.resize(at); break;
            case 7: number(text, at); break;
            case 8: digits(text, at); break;
            default: text = text.substr(0, at) + other.substr(below(other.size() + 1)); break;
        }
    }
    // A length, a count or an offset, little-endian, of a size that is on the edge of something.
    void number(std::string& text, std::size_t at) {
        std::array<std::uint64_t, 12> const edges{0,           1,
                                                  0x7f,        0xff,
                                                  0xffff,      0x7fffffff,
                                                  0x80000000,  0xffffffff,
                                                  ~0ull,       0x8000000000000000ull,
                                                  text.size(), text.size() - at};
        auto const value = edges[below(edges.size())] + below(3) - 1;
        auto const width = std::size_t{1} << below(4);
        for (std::size_t i = 0; i < width && at + i < text.size(); ++i)
            text[at + i] = static_cast<char>(value >> (8 * i));
    }
    void digits(std::string& text, std::size_t at) {
        static constexpr std::array<char const*, 8> words{
            "-1", "1e999", "18446744073709551616", "9223372036854775808", "nan", "0x10", "null", "2147483648"};
        text.insert(at, words[below(words.size())]);
    }

    std::mt19937_64 random_;
};

struct options {
    std::vector<std::filesystem::path> folders;
    double seconds = 0;
    std::uint64_t seed = 1;
    unsigned timeout = 25;
};

options parse(int argc, char** argv) {
    options out;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        auto const value = [&](std::string_view name) -> char const* {
            return word.starts_with(name) ? argv[i] + name.size() : nullptr;
        };
        if (auto const* v = value("-max_total_time=")) out.seconds = std::strtod(v, nullptr);
        else if (auto const* v2 = value("-seed=")) out.seed = std::strtoull(v2, nullptr, 10);
        else if (auto const* v3 = value("-timeout="))
            out.timeout = static_cast<unsigned>(std::strtoul(v3, nullptr, 10));
        else if (auto const* v4 = value("-artifact_prefix=")) artifact_prefix = v4;
        else if (!word.starts_with('-')) out.folders.emplace_back(argv[i]);  // what only libFuzzer knows is passed over
    }
    return out;
}

void keep(std::filesystem::path const& folder, std::string const& input) {
    std::array<char, 32> name;
    std::snprintf(name.data(), name.size(), "%016zx", std::hash<std::string>{}(input));
    std::ofstream{folder / name.data(), std::ios::binary} << input;
}

// How many were run.
std::size_t fuzz(options const& o, std::vector<std::string> corpus) {
    using clock = std::chrono::steady_clock;
    auto const until = clock::now() + std::chrono::duration<double>{o.seconds};
    mutator change{o.seed};
    if (corpus.empty()) corpus.emplace_back();
    std::size_t runs = 0;
    for (; (runs & 63) != 0 || clock::now() < until; ++runs) {
        if ((runs & 1023) == 0) ::alarm(o.timeout);
        auto const input = change.changed(corpus);
        auto const before = blocks;
        feed(input);
        if (blocks == before) continue;
        corpus.push_back(input);
        keep(o.folders.front(), input);
    }
    ::alarm(0);
    std::fprintf(stderr, "#%zu DONE cov: %zu corp: %zu\n", runs, blocks, corpus.size());
    return runs;
}

}  // namespace

// Calls nothing: what it called would call it back.
extern "C" KILN_UNCOUNTED void __sanitizer_cov_trace_pc() {
    auto const block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    auto const at = (block ^ block >> 20) % slots;
    if (seen[at] != 0) return;
    seen[at] = 1;
    ++blocks;
}
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

int main(int argc, char** argv) {
    auto const o = parse(argc, argv);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_running);
    for (int const number : {SIGABRT, SIGALRM}) ::signal(number, on_signal);
    if (__sanitizer_set_death_callback == nullptr) {
        for (int const number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, on_signal);
    }
    std::vector<std::string> corpus;
    auto const replay = [&](std::filesystem::path const& file) {
        auto const input = read(file);
        ::alarm(o.timeout);
        for (std::size_t part = 0; part < 8; ++part) feed(input.substr(0, input.size() * part / 8));
        feed(input);
        corpus.push_back(input.substr(0, most_input));
    };
    for (auto const& given : o.folders) {  // or one file: an input that ended a target
        if (std::filesystem::is_regular_file(given)) replay(given);
        else
            for (auto const& entry : std::filesystem::recursive_directory_iterator{given})
                if (entry.is_regular_file()) replay(entry.path());
    }
    ::alarm(0);
    if (o.seconds > 0 && !o.folders.empty()) {
        std::fprintf(stderr, "stat::number_of_executed_units: %zu\n", fuzz(o, std::move(corpus)));
        return 0;
    }
    std::printf("%zu files replayed\n", corpus.size());
    return corpus.empty() ? 1 : 0;
}
