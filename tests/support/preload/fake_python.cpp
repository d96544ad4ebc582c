// SPDX-License-Identifier: Apache-2.0
//
// A Python that stands still, laid out as CPython 3.13's headers have it (64 bits, with the interpreter's lock): the recorder's frame walker is tested
// on machines that have no such Python. The stack is step() at /home/ann/train.py:12, called through C by main() at /home/ann/train.py:40.
#include <cstdint>
#include <cstring>

namespace {

struct object {
    std::int64_t references = 1;
    void const* type = nullptr;
};
struct sized : object {
    std::int64_t size = 0;
};
struct text : object {
    std::int64_t length = 0, hash = -1;
    std::uint32_t state = 0x64, padding = 0;  // one byte a character, compact, ASCII
    char data[40] = {};
    explicit text(char const* from) : length{static_cast<std::int64_t>(std::strlen(from))} {
        std::memcpy(data, from, std::strlen(from));
    }
};
struct line_table : sized {
    std::int64_t hash = -1;
    unsigned char data[8];
};
struct code : sized {
    void *constants = nullptr, *names = nullptr, *exceptions = nullptr;
    int flags = 0, arguments = 0, by_position = 0, by_name = 0, stack = 0, first_line = 0, locals_and_more = 0,
        frame_size = 0, locals = 0, cells = 0, free = 0;
    std::uint32_t version = 0;
    void *local_names = nullptr, *local_kinds = nullptr;
    text const *file = nullptr, *name = nullptr, *qualified = nullptr;
    line_table const* lines = nullptr;
    void *weak = nullptr, *executors = nullptr, *cached = nullptr;
    std::uintptr_t instrumented = 0;
    void* monitoring = nullptr;
    int first_traceable = 0;
    void* extra = nullptr;
    unsigned char instructions[16] = {};
};
struct frame {
    object const* executable = nullptr;
    frame* previous = nullptr;
    void *function = nullptr, *globals = nullptr, *builtins = nullptr, *locals = nullptr, *as_object = nullptr;
    unsigned char const* instruction = nullptr;
    int stack_top = 0;
    std::uint16_t return_offset = 0;
    char owner = 0;
};
struct thread {
    void *previous = nullptr, *next = nullptr, *interpreter = nullptr;
    std::uintptr_t eval_breaker = 0;
    std::uint32_t status = 0;
    int whence = 0, state = 0, depth_left = 0, depth_most = 0, c_depth_left = 0, headroom = 0, tracing = 0, event = 0;
    frame* current = nullptr;
};

text const file{"/home/ann/train.py"}, step{"step"}, run{"main"};

// Eight instructions, all of the line that is so far after the first.
line_table lines_after(unsigned char delta) {
    line_table out;
    out.size = 2;
    out.data[0] = 0x80 | 13 << 3 | 7;  // a line and no column, for eight
    out.data[1] = static_cast<unsigned char>(delta << 1);
    return out;
}
line_table const two_after = lines_after(2), ten_after = lines_after(10);

code code_of(text const& name, int first_line, line_table const& lines) {
    code out;
    out.file = &file;
    out.name = out.qualified = &name;
    out.first_line = first_line;
    out.lines = &lines;
    return out;
}
code const step_code = code_of(step, 10, two_after), main_code = code_of(run, 30, ten_after);
object const none;

struct still_thread {
    frame outer, of_c, inner;
    thread self;
    still_thread() {
        outer.executable = &main_code;
        outer.instruction = main_code.instructions + 6;
        of_c.executable = &none;
        of_c.owner = 3;
        of_c.previous = &outer;
        inner.executable = &step_code;
        inner.instruction = step_code.instructions + 4;
        inner.previous = &of_c;
        self.current = &inner;
    }
};

}  // namespace

extern "C" char const* Py_GetVersion() { return "3.13.1 (main)"; }
extern "C" void* PyGILState_GetThisThreadState() {
    static still_thread only;
    return &only.self;
}
