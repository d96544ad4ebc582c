// SPDX-License-Identifier: Apache-2.0
#include "python_frames.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

namespace kiln::recorder {

namespace {

struct layout {
    unsigned version;
    long thread_frame,
        cframe_frame;  // cframe_frame: what the thread points to has the frame there; direct: is the frame
    long frame_code, frame_previous, frame_instruction, frame_owner;
    long code_file, code_function, code_first_line, code_lines, code_bytes;
    long text_data, wide_text_data;  // of ASCII alone, and of others
};
constexpr long direct = -1;
constexpr layout known[] = {
    {311, 56, 8, 32, 48, 56, 69, 112, 128, 72, 136, 184, 48, 72},
    {312, 56, 0, 0, 8, 56, 70, 112, 128, 68, 136, 192, 40, 56},
    {313, 72, direct, 0, 8, 56, 70, 112, 128, 68, 136, 200, 40, 56},
};
constexpr long bytes_size = 16, bytes_data = 32, text_length = 16, text_state = 32;
constexpr unsigned ascii_text = 0x40;
constexpr char owned_by_c = 3;
constexpr int most_walked = 400;

enum class state : int { unseen, works, off };
std::atomic<state> now{state::unseen};
layout const* used = nullptr;
char const* off_because = "";

template <class T>
T at(void const* p, long offset) {
    T out;
    std::memcpy(&out, static_cast<char const*>(p) + offset, sizeof out);
    return out;
}

template <class T>
bool peek(void const* p, long offset, T& out) {
    ::iovec here{&out, sizeof out};
    ::iovec there{const_cast<char*>(static_cast<char const*>(p)) + offset, sizeof out};
    return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof out);
}

auto state_getter() {
    static auto const get = reinterpret_cast<void* (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    return get;
}
void* thread_state() {
    auto const get = state_getter();
    return get == nullptr ? nullptr : get();
}

// Bytes for each character: 1, 2 or 4. 0: they are not in the object.
unsigned width_of_text(std::uint32_t state) {
    constexpr unsigned compact = 0x20;
    auto const width = (state >> 2) & 7u;
    return (state & compact) != 0 && (width == 1 || width == 2 || width == 4) ? width : 0;
}

bool looks_like_text(void const* object, layout const& l) {
    std::int64_t length = 0;
    std::uint32_t state = 0;
    char begin[4] = {};
    if (!peek(object, text_length, length) || length < 1 || length > 4096 || !peek(object, text_state, state))
        return false;
    if ((state & ascii_text) == 0) return width_of_text(state) != 0;
    if (!peek(object, l.text_data, begin)) return false;
    for (int i = 0; i < std::min<std::int64_t>(length, 4); ++i)
        if (static_cast<unsigned char>(begin[i]) < 32) return false;
    return true;
}

bool stack_looks_right(void* thread, layout const& l) {
    void const* frame = nullptr;
    if (!peek(thread, l.thread_frame, frame)) return false;
    if (l.cframe_frame != direct && !peek(frame, l.cframe_frame, frame)) return false;
    int n = 0;
    for (; frame != nullptr && n < 200; ++n) {
        char owner = 0;
        void const *code = nullptr, *file = nullptr, *function = nullptr;
        if (!peek(frame, l.frame_owner, owner)) return false;
        if (owner != owned_by_c &&
            (!peek(frame, l.frame_code, code) || !peek(code, l.code_file, file) ||
             !peek(code, l.code_function, function) || !looks_like_text(file, l) || !looks_like_text(function, l)))
            return false;
        if (!peek(frame, l.frame_previous, frame)) return false;
    }
    return n > 0;
}

// Two threads that come here at once find the same.
void look(void* thread) {
    auto const say = reinterpret_cast<char const* (*)()>(::dlsym(RTLD_DEFAULT, "Py_GetVersion"));
    char const* const version = say == nullptr ? "" : say();
    layout const* found = nullptr;
    for (auto const& l : known)
        if (std::strncmp(version, "3.", 2) == 0 && std::strtoul(version + 2, nullptr, 10) == l.version - 300)
            found = &l;
    if (found == nullptr) {
        off_because = "this version of Python is not known";
        now = state::off;
    } else if (!stack_looks_right(thread, *found)) {
        off_because = "this Python is built differently";
        now = state::off;
    } else {
        used = found;
        now = state::works;
    }
}

// The location table of PEP 626.
int line_of(python_frame const& f) {
    auto const* const table = at<void const*>(f.code, used->code_lines);
    auto const* p = static_cast<unsigned char const*>(table) + bytes_data;
    auto const* const end = p + at<std::int64_t>(table, bytes_size);
    int line = at<int>(f.code, used->code_first_line);
    auto const number = [&] {
        unsigned value = 0;
        for (unsigned shift = 0; p < end; shift += 6) {
            auto const byte = *p++;
            value |= (byte & 63u) << (shift & 31u);
            if ((byte & 64u) == 0) break;
        }
        return value;
    };
    auto const signed_number = [&] {
        auto const u = number();
        return (u & 1) != 0 ? -static_cast<int>(u >> 1) : static_cast<int>(u >> 1);
    };
    for (long position = 0; p < end;) {
        int const kind = (*p >> 3) & 15, length = (*p & 7) + 1;
        ++p;
        switch (kind) {
            case 15: break;
            case 14:
                line += signed_number();
                number(), number(), number();
                break;
            case 13: line += signed_number(); break;
            case 10:
            case 11:
            case 12:
                line += kind - 10;
                p += 2;
                break;
            default: p += 1;
        }
        if (f.instruction < position + length) return kind == 15 ? 0 : line;
        position += length;
    }
    return 0;
}

void put_utf8(std::string& out, std::uint32_t c) {
    auto const put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    auto const rest = [&](unsigned shift) { put(0x80u | ((c >> shift) & 0x3fu)); };
    if (c < 0x80) return put(c);
    if (c >= 0xdc80 && c <= 0xdcff) return put(c & 0xffu);  // a byte of a file's name that is no character
    if (c < 0x800) return put(0xc0u | (c >> 6)), rest(0);
    if (c < 0x10000) return put(0xe0u | (c >> 12)), rest(6), rest(0);
    put(0xf0u | ((c >> 18) & 7u)), rest(12), rest(6), rest(0);
}

std::string text_of(void const* object) {
    if (object == nullptr) return "?";
    auto const length = at<std::int64_t>(object, text_length);
    auto const state = at<std::uint32_t>(object, text_state);
    auto const width = width_of_text(state);
    if (width == 0 || length < 0 || length > 4096) return "?";
    auto const* const characters = static_cast<char const*>(object);
    if ((state & ascii_text) != 0) return {characters + used->text_data, static_cast<std::size_t>(length)};
    std::string out;
    for (std::int64_t i = 0; i < length; ++i) {
        std::uint32_t c = 0;
        std::memcpy(&c, characters + used->wide_text_data + i * width, width);
        put_utf8(out, c);
    }
    return out;
}

}  // namespace

int python_frames::take(python_frame* out) noexcept {
    if (now == state::off) return 0;
    auto* const thread = thread_state();
    if (thread == nullptr) return 0;
    if (now == state::unseen) look(thread);
    if (now != state::works) return 0;
    int n = 0, beyond = 0;
    std::array<python_frame, outermost> last;  // of those beyond the innermost
    auto const* frame = at<void const*>(thread, used->thread_frame);
    if (used->cframe_frame != direct) frame = at<void const*>(frame, used->cframe_frame);
    for (int walked = 0; frame != nullptr && walked < most_walked; ++walked) {
        auto const* const here = frame;
        frame = at<void const*>(frame, used->frame_previous);
        if (at<char>(here, used->frame_owner) == owned_by_c) continue;
        auto const* const code = at<void const*>(here, used->frame_code);
        auto const from = reinterpret_cast<std::intptr_t>(code) + used->code_bytes;
        python_frame const f{code, static_cast<long>(at<std::intptr_t>(here, used->frame_instruction) - from) / 2};
        if (n < innermost) out[n++] = f;
        else last[static_cast<std::size_t>(beyond++ % outermost)] = f;
    }
    for (int i = std::max(0, beyond - outermost); i < beyond; ++i)
        out[n++] = last[static_cast<std::size_t>(i % outermost)];
    return n;
}

bool python_frames::is_here() noexcept { return state_getter() != nullptr; }
unsigned python_frames::version() noexcept { return now == state::works ? used->version : 0; }
char const* python_frames::why_off() noexcept { return now == state::off ? off_because : ""; }

std::string python_frames::text(python_frame const* frames, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        out += text_of(at<void const*>(frames[i].code, used->code_file));
        out += '\t' + std::to_string(line_of(frames[i])) + '\t';
        out += text_of(at<void const*>(frames[i].code, used->code_function)) + '\n';
    }
    return out;
}

std::uint64_t python_frames::identity(python_frame const* frames, int count) noexcept {
    std::uint64_t h = 14695981039346656037u;
    auto const mix = [&](std::uint64_t v) { h = (h ^ v) * 0x9e37'79b9'7f4a'7c15u, h ^= h >> 29; };
    for (int i = 0; i < count; ++i) {
        mix(reinterpret_cast<std::uintptr_t>(frames[i].code));
        mix(static_cast<std::uint64_t>(frames[i].instruction));
        mix(reinterpret_cast<std::uintptr_t>(at<void const*>(frames[i].code, used->code_file)));
        mix(reinterpret_cast<std::uintptr_t>(at<void const*>(frames[i].code, used->code_lines)));
    }
    return h == 0 ? 1 : h;
}

}  // namespace kiln::recorder
