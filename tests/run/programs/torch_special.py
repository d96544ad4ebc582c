# SPDX-License-Identifier: Apache-2.0
"""PyTorch: four functions that it compiles at their first call."""

from _program import check, context, done, imports

with imports():
    import numpy
    import torch

with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()


def there(host):
    return torch.from_numpy(host).cuda()


zeta = torch.special.zeta(there(numpy.array([2.0, 4.0])), there(numpy.ones(2))).cpu().numpy()
check(numpy.allclose(zeta, [numpy.pi**2 / 6, numpy.pi**4 / 90]), "zeta")
airy = torch.special.airy_ai(there(numpy.zeros(2))).cpu().numpy()
check(numpy.allclose(airy, 0.3550280538878172), "airy_ai")
left = numpy.arange(1, 1025, dtype=numpy.int64)
right = left[::-1].copy() * 6
check(numpy.array_equal(torch.gcd(there(left), there(right)).cpu().numpy(), numpy.gcd(left, right)), "gcd")
check(numpy.array_equal(torch.lcm(there(left), there(right)).cpu().numpy(), numpy.lcm(left, right)), "lcm")
done()
