# SPDX-License-Identifier: Apache-2.0
"""PyTorch: attention and convolution by cuDNN, which compiles by a private function of NVRTC."""

from _program import check, context, done, imports, skip

with imports():
    import numpy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

with context():
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()

random = numpy.random.default_rng(3)


def there(*shape):
    """Random numbers on the device, and the same on the host as the device sees them."""
    values = torch.from_numpy(random.standard_normal(shape).astype(numpy.float32)).to("cuda", torch.bfloat16)
    return values, values.float().cpu().numpy()


(q, host_q), (k, host_k), (v, host_v) = (there(2, 8, 256, 64) for _ in range(3))
try:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        attention = torch.nn.functional.scaled_dot_product_attention(q, k, v)
except RuntimeError as e:
    if "No available kernel" not in str(e):
        raise
    skip("this cuDNN has no attention for this GPU")
scores = numpy.exp(host_q @ host_k.swapaxes(-1, -2) / 8)
want = scores / scores.sum(-1, keepdims=True) @ host_v
check(numpy.allclose(attention.float().cpu().numpy(), want, atol=3e-2), "attention")

(image, host_image), (weight, host_weight) = there(4, 32, 28, 28), there(64, 32, 3, 3)
image, weight = (t.to(memory_format=torch.channels_last) for t in (image, weight))
got = torch.nn.functional.conv2d(image, weight, padding=1).float().cpu().numpy()
padded = numpy.pad(host_image, ((0, 0), (0, 0), (1, 1), (1, 1)))
want = sum(numpy.einsum("nchw,oc->nohw", padded[:, :, y : y + 28, x : x + 28], host_weight[:, :, y, x]) for y in range(3) for x in range(3))
check(numpy.allclose(got, want, atol=0.2, rtol=2e-2), "convolution")
done()
