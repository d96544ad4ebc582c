# SPDX-License-Identifier: Apache-2.0
"""Triton: one kernel."""

from _program import check, context, done, imports

with imports():
    import numpy
    import torch
    import triton
    import triton.language as tl


@triton.jit
def multiply_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    tl.store(out + at, a * tl.load(y + at, mask=at < n) + a, mask=at < n)


with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()

host = numpy.arange(10000, dtype=numpy.float32) / 7
values = torch.from_numpy(host).cuda()
out = torch.empty_like(values)
multiply_add[(triton.cdiv(host.size, 1024),)](values, values, out, host.size, BLOCK=1024)
check(numpy.allclose(out.cpu().numpy(), host * host + host, rtol=1e-5), "multiplied and added")
done()
