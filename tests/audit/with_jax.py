# SPDX-License-Identifier: Apache-2.0
"""Programs for `kiln audit`: with_jax.py NAME [TIMES]."""

import sys

import jax
import jax.numpy as jnp


def one_jit(times):
    step = jax.jit(lambda v: jnp.tanh(v @ v) * 0.5)
    values = jnp.ones((2048, 2048))
    for _ in range(times):
        values = step(values)
    values.block_until_ready()


def new_shapes(times):
    step = jax.jit(lambda v: jnp.tanh(v) * 0.5 + v.sum())
    for size in range(times):
        step(jnp.ones(1024 + size)).block_until_ready()


def reads_op_by_op(times):
    values = jnp.ones((256, 256))
    for _ in range(times):
        values = values * 1.001 + 0.5
        float(values[0, 0])


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print("done", sys.argv[1])
