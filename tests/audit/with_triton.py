# SPDX-License-Identifier: Apache-2.0
"""Programs for `kiln audit`: with_triton.py NAME [TIMES]."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scale(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count) * 3, mask=at < count)


@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (256, 512, 1024, 2048) for w in (4, 8)], key=["count"])
@triton.jit
def tuned(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.exp(tl.load(source + at, mask=at < count)), mask=at < count)


@triton.jit
def shifted(source, target, count, BY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count) + BY, mask=at < count)


@triton.jit
def slow(source, target, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + at)
    for _ in range(rounds):
        value = value * 1.0001 + 0.5
    tl.store(target + at, value)


source = torch.ones(1 << 20, device="cuda")
target = torch.empty_like(source)
count = source.numel()


def once(times):
    scale[(count // 1024,)](source, target, count, BLOCK=1024)
    torch.cuda.synchronize()


def tunes(times):
    for _ in range(times):
        tuned[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](source, target, count)
    torch.cuda.synchronize()


def new_constants(times):
    for step in range(times):
        shifted[(count // 1024,)](source, target, count, BY=step, BLOCK=1024)
    torch.cuda.synchronize()


def few_blocks(times):
    for _ in range(times):
        slow[(8,)](source, target, 20000, BLOCK=1024)
    torch.cuda.synchronize()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    print("done", sys.argv[1])
