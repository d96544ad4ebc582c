// SPDX-License-Identifier: Apache-2.0
//
// Words in device memory by which the blocks of a kernel wait for one another. Every stream has its own, since kernels of one
// stream run one after the other. They are zero between kernels: whoever uses them leaves them so.
#pragma once

#include "cuda/context.hpp"

#include <cstdint>

namespace kiln::runtime {

inline constexpr unsigned signal_words = 1024;

// signal_words of them, kept for the stream as long as the process lives. Null where there are none to be had, and a kernel
// must do without: while the stream is being captured, because its graphs may run beside it; on drivers that cannot tell one
// stream from another; without memory. Allocates at the first call for a stream.
[[nodiscard]] std::uint32_t* signals_of(cuda::context const& where, stream_ref on) noexcept;

}  // namespace kiln::runtime
