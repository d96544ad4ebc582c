# SPDX-License-Identifier: Apache-2.0
"""Programs with one defect each, for `kiln audit`: with_torch.py NAME [TIMES]. The counts follow from TIMES alone."""

import sys
import time

import torch


def two(size=1024):
    return torch.randn(size, size, device="cuda"), torch.randn(size, size, device="cuda")


def reads_a_scalar(times):
    left, right = two()
    for _ in range(times):
        total = (left @ right).sum()
        total.item()


def waits_for_the_device(times):
    left, right = two()
    for _ in range(times):
        product = left @ right
        torch.cuda.synchronize()
        product.add_(1)


def times_itself(times):
    left, right = two()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(times):
        begin.record()
        left @ right
        end.record()
        torch.cuda.synchronize()
        begin.elapsed_time(end)


def sizes_an_output(times):
    values = torch.randn(1 << 20, device="cuda")
    for step in range(times):
        kept = values[values > step / times]
        kept.mul_(2)


def uploads(times, pinned=False):
    size = 32 << 20
    host = torch.randint(256, (size + 4096 * times,), dtype=torch.uint8)
    if pinned:
        host = host.pin_memory()
    for step in range(times):  # other bytes in each step: this is about how they travel
        there = host[4096 * step : 4096 * step + size].to("cuda", non_blocking=True)
        there.add_(1)
    torch.cuda.synchronize()


def uploads_pinned(times):
    uploads(times, True)


def empties_the_pool(times):
    for _ in range(times):
        held = [torch.empty(32 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
        for one in held:
            one.zero_()
        del held, one
        torch.cuda.empty_cache()


def adds_to_little(times):
    little = torch.zeros(64, device="cuda")
    for _ in range(times):
        for _ in range(20):
            little.add_(1)
    torch.cuda.synchronize()


def adds_in_a_graph(times):
    little = torch.zeros(64, device="cuda")
    little.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            little.add_(1)
    for _ in range(times):
        graph.replay()
    torch.cuda.synchronize()


def on_the_cpu(times):
    values = torch.randn(256, 256)
    for _ in range(times):
        values = torch.tanh(values @ values)


def profiles_itself(times):
    left, right = two()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        for _ in range(times):
            left @ right
        torch.cuda.synchronize()


def never_ends(times):
    left, right = two()
    while True:
        left @ right
        torch.cuda.synchronize()
        time.sleep(0.005)


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print("done", sys.argv[1])
