# SPDX-License-Identifier: Apache-2.0
"""PyTorch: products by cuBLASLt: with a bias and GELU behind them, in eight bits, integers and not."""

from _program import check, context, done, imports

with imports():
    import numpy
    import torch

with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()

random = numpy.random.default_rng(5)
left, right, bias = (torch.from_numpy(random.standard_normal(shape).astype(numpy.float32)).to("cuda", torch.bfloat16) for shape in ((256, 128), (128, 64), (64,)))


def back(values):
    return values.float().cpu().numpy()


got = back(torch._addmm_activation(bias, left, right, use_gelu=True))
sums = back(left) @ back(right) + back(bias)
want = sums * 0.5 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (sums + 0.044715 * sums**3)))
check(numpy.allclose(got, want, atol=0.2, rtol=2e-2), "bias and GELU")

small = random.integers(-100, 100, (256, 128)), random.integers(-100, 100, (128, 64))
got = torch._int_mm(*(torch.from_numpy(s.astype(numpy.int8)).cuda() for s in small)).cpu().numpy()
check(numpy.array_equal(got, small[0] @ small[1]), "integers of eight bits")

if torch.cuda.get_device_capability() >= (8, 9):
    a, b = left.to(torch.float8_e4m3fn), right.t().contiguous().to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    got = back(torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16))
    check(numpy.allclose(got, back(a) @ back(b), atol=0.2, rtol=2e-2), "fp8")
done()
