# SPDX-License-Identifier: Apache-2.0
"""JAX: one function under jit."""

from _program import check, context, done, imports, skip

with imports():
    import jax
    import jax.numpy as jnp
    import numpy

with context():
    if jax.devices()[0].platform == "cpu":
        skip("this JAX has no GPU")

host = numpy.linspace(-2, 2, 1 << 14, dtype=numpy.float32)
got = numpy.asarray(jax.jit(lambda a: jnp.sin(a) * a + jnp.max(a))(jax.device_put(host)))
check(numpy.allclose(got, numpy.sin(host) * host + host.max(), atol=1e-4), "jit")
done()
