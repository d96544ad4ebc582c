# SPDX-License-Identifier: Apache-2.0
"""PyTorch: an operation of one's own by jiterator."""

from _program import check, context, done, imports

with imports():
    import numpy
    import torch

with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()

host = numpy.linspace(-3, 3, 4096, dtype=numpy.float32)
values = torch.from_numpy(host).cuda()
operation = torch.cuda.jiterator._create_jit_fn("template <typename T> T op(T a, T b, T alpha) { return -a + alpha * b * b; }", alpha=1.0)
check(numpy.allclose(operation(values, values, alpha=2.0).cpu().numpy(), -host + 2 * host * host, atol=1e-4), "jiterator")
done()
