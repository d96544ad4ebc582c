// SPDX-License-Identifier: Apache-2.0
#include "audit/long_recording.hpp"

#include "audit/recording_format.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::bench {

namespace {

namespace format = audit::format;

constexpr std::uint64_t second = 1'000'000'000;
constexpr int kernels_in_a_step = 10;

// Records of a kind gather until a chunk is full, as in the recorder.
class writer {
public:
    explicit writer(std::filesystem::path const& file) : out_{file, std::ios::binary} {
        out_.write(format::file_magic.data(), format::file_magic.size());
        std::array<char, 8> rest{};
        rest[0] = static_cast<char>(format::version);
        out_.write(rest.data(), rest.size());
    }
    ~writer() {
        for (auto const& [kind, bytes] : open_) write_chunk(kind, bytes);
    }
    writer(writer const&) = delete;
    writer& operator=(writer const&) = delete;

    std::uint32_t string(std::string const& text) {
        std::vector<unsigned char> bytes;
        auto const put = [&](std::uint32_t v) {
            for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<unsigned char>(v >> (8 * i)));
        };
        put(++strings_);
        put(static_cast<std::uint32_t>(text.size()));
        bytes.insert(bytes.end(), text.begin(), text.end());
        write_chunk(format::chunk::strings, bytes);
        return strings_;
    }
    template <class Record>
    void add(Record const& r) {
        auto& bytes = open_[Record::kind];
        auto const at = bytes.size();
        bytes.resize(at + format::bytes_of<Record>());
        format::write_record(r, bytes.data() + at);
        ++records;
        if (bytes.size() + format::bytes_of<Record>() <= format::most_chunk_bytes) return;
        write_chunk(Record::kind, bytes);
        bytes.clear();
    }

    std::uint64_t records = 0;

private:
    void write_chunk(format::chunk kind, std::vector<unsigned char> const& bytes) {
        if (bytes.empty()) return;
        format::chunk_header head;
        head.type = static_cast<std::uint16_t>(kind);
        head.length = static_cast<std::uint32_t>(bytes.size());
        head.sequence = chunks_++;
        std::array<unsigned char, format::chunk_header_bytes> packed{};
        format::write_record(head, packed.data());
        head.crc = format::crc32c(bytes.data(), bytes.size(), format::crc32c(packed.data(), packed.size()));
        format::write_record(head, packed.data());
        out_.write(reinterpret_cast<char const*>(packed.data()), packed.size());
        out_.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }

    std::ofstream out_;
    std::map<format::chunk, std::vector<unsigned char>> open_;
    std::uint32_t strings_ = 0;
    std::uint64_t chunks_ = 0;
};

}  // namespace

long_recording write_long_recording(std::filesystem::path const& to, std::uint64_t launches) {
    std::filesystem::create_directories(to);
    std::ofstream{to / "run.json"} << R"({"format":"kiln-recording","version":1,"command":["long"],"wall_s":60})";
    auto const file = to / "p1.0.kilnrec";
    long_recording out{.launches = launches};
    {
        writer w{file};
        auto const launch = w.string("cudaLaunchKernel_v7000"), copy = w.string("cudaMemcpyAsync_v3020");
        auto const wait = w.string("cudaStreamSynchronize_v3020");
        auto const line = w.string("/home/ann/train.py\t12\tstep\n"),
                   reading = w.string("/home/ann/train.py\t15\tstep\n");
        std::array<std::uint32_t, kernels_in_a_step> names{};
        for (std::size_t i = 0; i < names.size(); ++i) names[i] = w.string("layer_" + std::to_string(i));
        w.add(format::process_record{.pid = 1, .started = second, .begun = 2 * second, .level = 1});
        w.add(format::device_record{.multiprocessors = 132, .major = 9, .name = w.string("NVIDIA H200")});
        w.add(format::context_record{.id = 1, .null_stream = 7});
        std::uint64_t at = 3 * second, gpu = at;
        std::uint32_t id = 0;
        auto const call = [&](std::uint32_t name, std::uint64_t takes) {
            w.add(format::call_record{.correlation = ++id, .thread = 9, .start = at, .end = at + takes, .name = name});
            at += takes;
        };
        auto const site = [&](std::uint32_t stack) {
            w.add(format::site_record{.correlation = id, .thread = 9, .stack = stack, .time = at, .cpu = at});
        };
        for (std::uint64_t n = 0; n < launches;) {
            for (std::size_t k = 0; k < names.size() && n < launches; ++k, ++n) {
                call(launch, 4000);
                if (at % second < 20'000'000) site(line);
                gpu = std::max(gpu, at) + 500;
                format::kernel_record r{.correlation = id, .stream = 7, .start = gpu, .end = gpu + 6000};
                r.grid_x = 200;
                r.grid_y = r.grid_z = r.block_y = r.block_z = 1;
                r.block_x = 256;
                r.registers = 32;
                r.name = names[k];
                w.add(r);
                gpu = r.end;
                at += 2000;
            }
            call(copy, 3000);
            site(reading);
            gpu = std::max(gpu, at) + 500;
            w.add(format::copy_record{.correlation = id,
                                      .stream = 7,
                                      .start = gpu,
                                      .end = gpu + 1500,
                                      .bytes = 4,
                                      .direction = 2,
                                      .source = 3,
                                      .target = 1,
                                      .flags = 1});
            gpu += 1500;
            call(wait, std::max(gpu, at) - at + 2000);
            site(reading);
            w.add(format::wait_record{.correlation = id, .type = 3, .stream = 7, .start = at - 2000, .end = at});
            at += 20'000;
        }
        w.add(format::end_record{.time = std::max(at, gpu)});
        out.records = w.records;
    }
    out.bytes = std::filesystem::file_size(file);
    return out;
}

}  // namespace kiln::bench
