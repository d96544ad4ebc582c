# SPDX-License-Identifier: Apache-2.0
"""PyTorch: Fourier transforms of several sizes (cuFFT), and a sparse product (cuSPARSE)."""

from _program import check, context, done, imports

with imports():
    import numpy
    import torch

with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()

random = numpy.random.default_rng(2)
for size in (1 << 14, 3 * 5 * 7 * 11 * 13, 10007):
    host = random.standard_normal((4, size))
    check(numpy.allclose(torch.fft.fft(torch.from_numpy(host).cuda()).cpu().numpy(), numpy.fft.fft(host), atol=1e-6), f"of {size}")
host = random.standard_normal((8, 8, 96, 96)).astype(numpy.float32)
in_three = torch.fft.rfftn(torch.from_numpy(host).cuda(), dim=(1, 2, 3)).cpu().numpy()
check(numpy.allclose(in_three, numpy.fft.rfftn(host, axes=(1, 2, 3)), atol=1e-2), "in three dimensions")
dense = random.standard_normal((512, 64)).astype(numpy.float32)
product = (torch.eye(512).to_sparse_csr().cuda() * 2) @ torch.from_numpy(dense).cuda()
check(numpy.allclose(product.cpu().numpy(), dense * 2), "sparse")
done()
