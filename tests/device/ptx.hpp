// SPDX-License-Identifier: Apache-2.0
// Kernels for the device tests, as PTX that every GPU from compute capability 7.5 on takes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kiln::device_tests {

// add_value(unsigned* data, unsigned value, unsigned count): data[i] += value
// shared_last(unsigned* out, unsigned bytes): writes to the last word of `bytes` of dynamic shared memory and reads it back
inline constexpr std::string_view kernels_ptx = R"(
.version 7.0
.target sm_75
.address_size 64

.extern .shared .align 4 .b8 buffer[];

.visible .entry add_value(.param .u64 p_data, .param .u32 p_value, .param .u32 p_count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p_data];
    ld.param.u32 %r1, [p_value];
    ld.param.u32 %r2, [p_count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra done;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    add.u32 %r7, %r7, %r1;
    st.global.u32 [%rd4], %r7;
done:
    ret;
}

.visible .entry shared_last(.param .u64 p_out, .param .u32 p_bytes)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p_out];
    ld.param.u32 %r1, [p_bytes];
    mov.u32 %r2, buffer;
    add.u32 %r2, %r2, %r1;
    st.volatile.shared.u32 [%r2+-4], %r1;
    ld.volatile.shared.u32 %r3, [%r2+-4];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r3;
    ret;
}

.visible .entry nothing()
{
    ret;
}
)";

inline std::span<std::byte const> kernels_image() {
    return {reinterpret_cast<std::byte const*>(kernels_ptx.data()), kernels_ptx.size()};
}

}  // namespace kiln::device_tests
