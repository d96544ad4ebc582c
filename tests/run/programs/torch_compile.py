# SPDX-License-Identifier: Apache-2.0
"""PyTorch: torch.compile of a small model."""

from _program import check, context, done, imports

if __name__ == "__main__":  # its workers may import this file
    with imports():
        import numpy
        import torch

    with context():
        torch.empty(1, device="cuda")
        torch.cuda.synchronize()

    random = numpy.random.default_rng(4)
    first, second = (random.standard_normal(shape).astype(numpy.float32) / 8 for shape in ((128, 64), (16, 128)))
    host = random.standard_normal((256, 64)).astype(numpy.float32)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128, bias=False), torch.nn.GELU(approximate="tanh"), torch.nn.Linear(128, 16, bias=False), torch.nn.Softmax(-1)).cuda()
    with torch.no_grad():
        net[0].weight.copy_(torch.from_numpy(first))
        net[2].weight.copy_(torch.from_numpy(second))
        got = torch.compile(net)(torch.from_numpy(host).cuda()).cpu().numpy()
    hidden = host @ first.T
    hidden = hidden * 0.5 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (hidden + 0.044715 * hidden**3)))
    scores = numpy.exp(hidden @ second.T)
    check(numpy.allclose(got, scores / scores.sum(-1, keepdims=True), atol=1e-3), "the model")
    done()
