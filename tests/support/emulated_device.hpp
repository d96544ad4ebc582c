// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel's text on the host, one block at a time: every thread is a fiber that gives way at barriers and votes. Slow
// and exact; it knows nothing of memory ordering, but every index, tail and decision of the text is the real one. Include the
// text after this header, inside a namespace of its own that also defines the shared memory the text declares.
#pragma once
#pragma GCC system_header  // the text is written for another compiler's warnings

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace kiln::emulated {

struct dim {
    unsigned x = 0, y = 0, z = 0;
};

class block {
public:
    // Runs `body` once per thread. Not reentrant.
    static void run(unsigned threads, std::function<void()> const& body) {
        block b{threads, body};
        current() = &b;
        b.schedule();
        current() = nullptr;
    }
    static block*& current() {
        static block* now = nullptr;
        return now;
    }

    [[nodiscard]] unsigned thread() const { return at_; }
    int all_or(int value) { return meet(everyone_, static_cast<unsigned>(fibers_.size()), value); }
    int warp_or(int value) { return meet(warps_[at_ / 32], 32, value); }
    // Lanes that brought the same value.
    unsigned warp_match(int value) {
        auto const warp = at_ / 32;
        brought_[at_] = value;
        meet(warps_[warp], 32, 0);
        unsigned out = 0;
        for (std::size_t i = 0; i < 32; ++i) out |= brought_[warp * 32 + i] == value ? 1U << i : 0U;
        meet(warps_[warp], 32, 0);
        return out;
    }

private:
    struct meeting {
        unsigned arrived = 0, generation = 0;
        int gathering = 0, result = 0;
    };
    struct fiber {
        ucontext_t context{};
        std::unique_ptr<char[]> stack{new char[stack_bytes]};
        bool done = false;
        meeting const* waits_for = nullptr;
        unsigned since = 0;
    };
    static constexpr std::size_t stack_bytes = 512 << 10;

    block(unsigned threads, std::function<void()> const& body)
        : fibers_(threads), warps_((threads + 31) / 32), brought_(threads), body_{body} {
        for (auto& f : fibers_) {
            ::getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack.get();
            f.context.uc_stack.ss_size = stack_bytes;
            f.context.uc_link = &scheduler_;
            ::makecontext(&f.context, &block::enter, 0);
        }
    }
    static void enter() {
        auto& b = *current();
        b.body_();
        b.fibers_[b.at_].done = true;
    }
    void schedule() {
        for (bool working = true; working;) {
            working = false;
            for (at_ = 0; at_ < fibers_.size(); ++at_) {
                if (fibers_[at_].done) continue;
                working = true;
                auto const& f = fibers_[at_];
                if (f.waits_for != nullptr && f.waits_for->generation == f.since) continue;
                ::swapcontext(&scheduler_, &fibers_[at_].context);
            }
        }
    }
    int meet(meeting& m, unsigned expected, int value) {
        auto const generation = m.generation;
        m.gathering |= value;
        if (++m.arrived == expected) {
            m.result = m.gathering;
            m.arrived = 0;
            m.gathering = 0;
            ++m.generation;
        } else {
            auto& own = fibers_[at_];
            own.waits_for = &m;
            own.since = generation;
            ::swapcontext(&own.context, &scheduler_);
            own.waits_for = nullptr;
        }
        return m.result;
    }

    std::vector<fiber> fibers_;
    std::vector<meeting> warps_;
    std::vector<int> brought_;
    meeting everyone_;
    std::function<void()> const& body_;
    ucontext_t scheduler_{};
    std::size_t at_ = 0;
};

// What a GPU makes of a NaN; hosts differ in its sign.
template <class T>
T canonical(T x) {
    return x != x ? std::abs(std::numeric_limits<T>::quiet_NaN()) : x;
}
template <class T>
    requires std::is_integral_v<T> T canonical(T x) { return x; }

struct thread_index {
    struct member {
        operator int() const { return static_cast<int>(block::current()->thread()); }
    } x;
};

}  // namespace kiln::emulated

#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)

// What the text takes for granted.
namespace kiln::emulated::builtins {

using std::fma;
using std::fmaxf;
using std::fminf;
using std::memcpy;

inline thread_index const threadIdx;
inline dim blockIdx, gridDim, blockDim;

struct __attribute__((aligned(16), may_alias)) int4 {
    int x, y, z, w;
};

template <class T>
T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}
inline float __int_as_float(int x) {
    float out;
    std::memcpy(&out, &x, 4);
    return out;
}
inline int __float_as_int(float x) {
    int out;
    std::memcpy(&out, &x, 4);
    return out;
}
inline long long __double_as_longlong(double x) {
    long long out;
    std::memcpy(&out, &x, 8);
    return out;
}
inline double __longlong_as_double(long long x) {
    double out;
    std::memcpy(&out, &x, 8);
    return out;
}
inline int __mulhi(int x, int y) { return static_cast<int>((static_cast<long long>(x) * y) >> 32); }
inline long long __mul64hi(long long x, long long y) {
    return static_cast<long long>((static_cast<__int128>(x) * y) >> 64);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long const both = static_cast<unsigned long long>(y) << 32 | x;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; ++i)
        out |= static_cast<unsigned>(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
    return out;
}
inline unsigned __cvta_generic_to_shared(void const*) { return 0; }
inline void __syncthreads() { block::current()->all_or(0); }
inline int __syncthreads_or(int x) { return block::current()->all_or(x != 0 ? 1 : 0); }
inline void __syncwarp() { block::current()->warp_or(0); }
inline int __any_sync(unsigned, bool x) { return block::current()->warp_or(x ? 1 : 0); }
inline unsigned __match_any_sync(unsigned, int x) { return block::current()->warp_match(x); }
template <class T>
T atomicExch(T* at, T x) {
    return std::exchange(*at, x);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __all_sync(unsigned, bool x) { return block::current()->warp_or(x ? 0 : 1) == 0 ? 1 : 0; }

}  // namespace kiln::emulated::builtins
