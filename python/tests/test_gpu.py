# SPDX-License-Identifier: Apache-2.0
"""Everything that needs a GPU: arrays of torch, CuPy, JAX and NumPy through every primitive, beside NumPy."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import kiln
from conftest import SAXPY, Run

pytestmark = pytest.mark.usefixtures("gpu")
CAP = kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))


def torch_array(x: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x).cuda()


def cupy_array(x: Any) -> Any:
    return pytest.importorskip("cupy").asarray(x)


def jax_array(x: Any) -> Any:
    return pytest.importorskip("jax.numpy").asarray(x)


def on_host(x: Any) -> Any:
    return x.cpu().numpy() if hasattr(x, "cpu") else x.get() if hasattr(x, "get") else numpy.asarray(x)


LIBRARIES: dict[str, Callable[..., Any]] = {"torch": torch_array, "cupy": cupy_array, "jax": jax_array, "numpy": lambda x: x}
both = pytest.mark.parametrize("library", ["torch", "cupy"])
every = pytest.mark.parametrize("library", LIBRARIES)


@every
def test_scan(library: Any) -> None:
    host = numpy.random.default_rng(1).integers(0, 10, 100_000).astype("i4")
    x = LIBRARIES[library](host)
    assert numpy.array_equal(on_host(kiln.inclusive_scan(x)), numpy.cumsum(host, dtype="i4"))
    assert numpy.array_equal(on_host(kiln.exclusive_scan(x, init=numpy.int32(5)))[:3], [5, 5 + host[0], 5 + host[0] + host[1]])
    assert on_host(kiln.inclusive_scan(x, CAP)).max() == 100
    assert type(kiln.inclusive_scan(x)).__module__.partition(".")[0] in (library, library + "lib")


@every
def test_lambdas(library: Any) -> None:
    host = numpy.random.default_rng(9).integers(-50, 50, 10_000).astype("i4")
    x = LIBRARIES[library](host)
    assert numpy.array_equal(on_host(kiln.inclusive_scan(x, lambda a, b: a if a > b else b)), numpy.maximum.accumulate(host))
    assert numpy.array_equal(on_host(kiln.select_sync(x, lambda a: a % 7 == 3)), host[host % 7 == 3])
    assert numpy.array_equal(on_host(kiln.transform(x, lambda a: a // 4)), host // 4)
    far = kiln.transform(x, lambda a: abs(a))
    capped = kiln.inclusive_scan(far, kiln.op(lambda a, b, s: min(a + b, s), s=numpy.int32(1000)))
    assert numpy.array_equal(on_host(capped), numpy.minimum(numpy.cumsum(abs(host)), 1000))
    halves = kiln.transform(x, lambda a: a / 2, to="float64") if library != "jax" else kiln.transform(x, lambda a: a / 2, to="float32")
    assert numpy.array_equal(on_host(halves), host / 2)


def library_of(x: Any) -> Any:
    return type(x).__module__.partition(".")[0].removesuffix("lib")


@every
def test_all_primitives(library: Any) -> None:
    to = LIBRARIES[library]
    rng = numpy.random.default_rng(2)
    host = rng.integers(-1000, 1000, 50_001).astype("i4")
    x = to(host)
    assert kiln.reduce_sync(x) == host.sum(dtype="i4")
    assert kiln.reduce_sync(x, "max", init=numpy.int32(-2000)) == host.max()
    offsets = numpy.array([0, 10, 10, 5000, 50_001], dtype="i4")
    assert numpy.array_equal(on_host(kiln.segmented_reduce(x, to(offsets))), [host[a:b].sum(dtype="i4") for a, b in zip(offsets, offsets[1:])])
    assert numpy.array_equal(on_host(kiln.select_sync(x, kiln.op("a > 0"))), host[host > 0])
    assert numpy.array_equal(on_host(kiln.select_sync(x, to((host % 2 == 0).astype("u1")))), host[host % 2 == 0])
    ordered = numpy.sort(host)
    assert numpy.array_equal(on_host(kiln.lower_bound(to(ordered), x)), numpy.searchsorted(ordered, host, "left"))
    assert numpy.array_equal(on_host(kiln.upper_bound(to(ordered), x)), numpy.searchsorted(ordered, host, "right"))
    values = numpy.arange(host.size, dtype="i4")
    keys, carried = kiln.radix_sort(x, to(values))
    assert numpy.array_equal(on_host(keys), ordered) and numpy.array_equal(on_host(carried), numpy.argsort(host, kind="stable"))
    assert numpy.array_equal(on_host(kiln.radix_sort(x, descending=True)), ordered[::-1])
    assert numpy.array_equal(on_host(kiln.merge_sort(x, op="greater")), ordered[::-1])
    assert numpy.array_equal(on_host(kiln.unique_by_key_sync(to(ordered))), numpy.unique(host))
    assert numpy.array_equal(on_host(kiln.transform(x, kiln.op("a * 2.5f"), to="float32")), host * numpy.float32(2.5))
    assert numpy.array_equal(on_host(kiln.gather(x, to(values[::-1].copy()))), host[::-1])


@every
def test_results_are_of_the_first_inputs_library(library: Any) -> None:
    x = LIBRARIES[library](numpy.arange(100, dtype="i4"))
    kept, count = kiln.select(x, "a % 2 == 0")
    keys, values, runs = kiln.unique_by_key(x, x)
    for one in (kept, count, keys, values, runs, kiln.gather(x, x), kiln.lower_bound(x, x), kiln.reduce(x), *kiln.radix_sort(x, x)):
        assert library_of(one) == library
    assert (on_host(count)[0], on_host(runs)[0]) == (50, 100)


@every
@pytest.mark.parametrize("type", ["int8", "uint16", "int64", "float32", "float64"])
def test_types(library: Any, type: Any) -> None:
    if library == "jax" and type.endswith("64"):
        pytest.skip("JAX has 64 bits only where they are switched on")
    host = numpy.random.default_rng(5).integers(0, 100, 1000).astype(type)
    x = LIBRARIES[library](host)
    assert numpy.array_equal(on_host(kiln.inclusive_scan(x, "max")), numpy.maximum.accumulate(host))
    assert kiln.reduce_sync(x, "min") == host.min()


def test_what_jax_is_still_computing_is_waited_for() -> None:
    jax = pytest.importorskip("jax")
    if all(d.platform == "cpu" for d in jax.devices()):
        pytest.skip("JAX has no GPU here")
    for _ in range(5):
        a = jax.numpy.ones((4096, 4096), dtype="float32")
        for _ in range(30):  # some time, which nobody waits for here
            a = a @ a * jax.numpy.float32(1 / 4096)
        x = a[0, :1000].astype("int32")
        assert on_host(kiln.inclusive_scan(x)).tolist() == list(range(1, 1001))


def test_half_precision() -> None:
    torch = pytest.importorskip("torch")
    for type in (torch.float16, torch.bfloat16):
        x = torch.randint(0, 8, (100,), device="cuda").to(type)
        assert torch.equal(kiln.inclusive_scan(x, "max"), torch.cummax(x, 0).values)


@every
def test_sizes_at_the_edge(library: Any) -> None:
    for n in (0, 1, 2):
        x = LIBRARIES[library](numpy.arange(n, dtype="i4"))
        assert on_host(kiln.inclusive_scan(x)).tolist() == numpy.cumsum(numpy.arange(n)).tolist()
        assert on_host(kiln.select_sync(x, "a == 1")).tolist() == [1] * (n == 2)


@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("semiring", ["max_plus", "min_plus", "max_mul"])
def test_tropical(library: Any, semiring: Any) -> None:
    to = LIBRARIES[library]
    a, b = numpy.random.default_rng(3).random((3, 40, 50), dtype="f4"), numpy.random.default_rng(4).random((3, 50, 30), dtype="f4")
    there = kiln.tropical.product(to(a), to(b), semiring)
    assert library_of(there) == library
    assert numpy.array_equal(on_host(there), kiln.tropical.product(a, b, semiring))
    assert numpy.array_equal(on_host(kiln.tropical.product(to(a), to(b[0]), semiring)), kiln.tropical.product(a, b[0], semiring))
    c, won = kiln.tropical.product(to(a), to(b), semiring, winners="int32")
    expected = kiln.tropical.product(a, b, semiring, winners="int32")
    assert numpy.array_equal(on_host(c), expected[0]) and numpy.array_equal(on_host(won), expected[1])


@both
def test_kernels(library: Any, saxpy: kiln.Unit) -> None:
    x, y = LIBRARIES[library](numpy.ones(1000, "f4")), LIBRARIES[library](numpy.full(1000, 2, "f4"))
    k = saxpy.kernel("saxpy")
    k(4, 256, (1000, 3.0, x, y))
    assert (on_host(y) == 5).all()
    k((4, 1), (256,), (numpy.int32(1000), numpy.float32(1), x, y))
    assert (on_host(y) == 6).all()
    with pytest.raises(kiln.InvalidArgument, match="4 parameters, 3"):
        k(4, 256, (1000, 3.0, x))
    with pytest.raises(kiln.InvalidArgument, match="does not fit"):
        k(4, 256, (1 << 40, 3.0, x, y))
    with pytest.raises(kiln.InvalidArgument, match="argument 2 has 8 bytes"):
        k(4, 256, (1000, numpy.float64(3), x, y))
    with pytest.raises(kiln.InvalidArgument, match="device memory"):
        k(4, 256, (1000, 3.0, numpy.ones(1000, "f4"), y))
    with pytest.raises(TypeError, match="not an array"):
        k(4, 256, (1000, 3.0, "x", y))
    with pytest.raises(kiln.NotFound):
        saxpy.kernel("nosuch")


def test_bad_arrays() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(1000, dtype=torch.int32, device="cuda")
    scan = kiln.make_inclusive_scan("int32")
    with pytest.raises(kiln.InvalidArgument, match=r"not contiguous: shape \[500\], strides \[2\]"):
        kiln.inclusive_scan(x[::2])
    with pytest.raises(kiln.InvalidArgument, match="float32"):
        scan(x.float())
    with pytest.raises(kiln.Unsupported, match="complex64"):
        kiln.inclusive_scan(x.to(torch.complex64))
    with pytest.raises(kiln.InvalidArgument, match="room for 10 items, 1000 are needed"):
        scan(x, out=x[:10])
    with pytest.raises(kiln.InvalidArgument, match="on the host"):
        scan(x, out=x.cpu())
    with pytest.raises(kiln.InvalidArgument, match="requires a gradient"):
        kiln.inclusive_scan(torch.zeros(3, device="cuda", requires_grad=True))
    assert kiln.inclusive_scan(x[:0]).shape == (0,)
    jax_numpy = pytest.importorskip("jax.numpy")
    with pytest.raises((kiln.InvalidArgument, kiln.Unsupported, TypeError)):
        scan(jax_numpy.arange(10, dtype="int32"), out="x")


def test_the_callers_stream_is_used() -> None:
    torch = pytest.importorskip("torch")
    n = 1 << 24
    x = torch.zeros(n, dtype=torch.int32, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for i in range(1, 20):
            x.fill_(i)
            y = kiln.inclusive_scan(x)
            last = y[-1].item()  # waits for the side stream alone
            assert last == numpy.int64(i * n).astype("i4")


def test_a_stream_that_is_named_waits_for_the_arrays_own() -> None:
    """Poisoned data: what the array's library has queued and not done is in the result, and what it queues next comes after."""
    torch = pytest.importorskip("torch")
    n = 1 << 26
    x, y = torch.zeros(n, dtype=torch.int32, device="cuda"), torch.empty(n, dtype=torch.int32, device="cuda")
    scan = kiln.make_inclusive_scan("int32")
    scan(x, out=y)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    for _ in range(3):
        x.zero_()
        for i in range(1, 6):
            x.fill_(i)
        scan(x, out=y, stream=side)
        x.fill_(-1)  # after the scan, although on another stream
        total = y[-1].item()
        assert total == numpy.int64(5 * n).astype("i4")


def test_an_array_may_go_right_after_the_call() -> None:
    torch = pytest.importorskip("torch")
    n = 1 << 25
    side = torch.cuda.Stream()
    scan = kiln.make_inclusive_scan("int32")
    y = torch.empty(n, dtype=torch.int32, device="cuda")
    scan(torch.ones(n, dtype=torch.int32, device="cuda"), out=y)
    for _ in range(5):
        scan(torch.ones(n, dtype=torch.int32, device="cuda"), out=y, stream=side)
        trash = torch.full((n,), 7, dtype=torch.int32, device="cuda")  # would be given the same memory
        assert y[-1].item() == n
        del trash


def test_rows_may_go_right_after_the_call() -> None:
    torch = pytest.importorskip("torch")
    from kiln import spatial

    n = 1 << 24
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        spatial.bounds((torch.ones(9, dtype=torch.float64, device="cuda"),) * 2)
        for _ in range(5):
            boxes = spatial.bounds((torch.ones(n, dtype=torch.float64, device="cuda"), torch.ones(n, dtype=torch.float64, device="cuda")))
            trash = [torch.full((n,), 7.0, dtype=torch.float64, device="cuda") for _ in range(2)]  # would be given the same memory
            assert boxes.max_x.numpy_sync().max() == 1 and boxes.max_y.numpy_sync().max() == 1
            del trash


def test_jax_arrays_of_the_host_and_then_of_a_device(python: Run) -> None:
    pytest.importorskip("jax")
    python("""import jax, kiln, numpy
here = jax.device_put(numpy.ones((2, 2), 'f4'), jax.devices('cpu')[0])
assert kiln.tropical.product(here, here).tolist() == [[2, 2], [2, 2]]
there = jax.device_put(numpy.arange(3, dtype='i4'), jax.devices()[0])
if next(iter(there.devices())).platform != 'cpu':
    assert kiln.inclusive_scan(there).tolist() == [0, 1, 3]
    try: kiln.make_inclusive_scan('int32')(there, out=there)
    except kiln.InvalidArgument as why: assert 'cannot be written to' in str(why)
    else: raise AssertionError('an array of JAX was written to')
""", XLA_PYTHON_CLIENT_PREALLOCATE="false")


@both
def test_nothing_waits_and_nothing_moves(library: Any) -> None:
    """But for what ends in _sync: with handles that were made before."""
    to = LIBRARIES[library]
    x, ordered, offsets = to(numpy.arange(1000, dtype="i4") % 7), to(numpy.arange(1000, dtype="i4")), to(numpy.array([0, 10, 1000], "i4"))
    mask, matrix = to(numpy.ones(1000, "?")), to(numpy.ones((30, 30), "f4"))

    def all() -> None:
        kiln.inclusive_scan(x, CAP), kiln.exclusive_scan(x), kiln.reduce(x), kiln.segmented_reduce(x, offsets), kiln.select(x, mask), kiln.select(x, kiln.op("a > 2"))
        kiln.lower_bound(ordered, x), kiln.upper_bound(ordered, x), kiln.radix_sort(x, x), kiln.merge_sort(x, x), kiln.unique_by_key(x, x), kiln.transform(x, "a * 2"), kiln.gather(x, x)
        kiln.tropical.product(matrix, matrix, "min_plus", winners="int32")

    all()
    before = kiln.activity()
    with kiln.no_sync(), kiln.no_transfers():
        all()
    after = kiln.activity()
    for what in ("synchronisations", "transfers_to_device", "transfers_to_host"):
        assert after[what] == before[what], what


@pytest.mark.parametrize("library", ["torch", "cupy", "numpy"])
def test_a_radix_sort_goes_by_bits(library: Any) -> None:
    """As on the CPU: a NaN with a sign is first, one without last."""
    host = numpy.copysign(numpy.array([numpy.nan, 1, numpy.nan, 0, 0, numpy.inf, numpy.inf], "f4"), numpy.array([1, 1, -1, 1, -1, -1, 1], "f4"))
    for descending, order in ((False, [2, 5, 3, 4, 1, 6, 0]), (True, [0, 6, 1, 3, 4, 5, 2])):
        keys, came = kiln.radix_sort(LIBRARIES[library](host), LIBRARIES[library](numpy.arange(7, dtype="i4")), descending=descending)
        assert on_host(came).tolist() == order and numpy.array_equal(on_host(keys), host[order], equal_nan=True)


@both
def test_capture(library: Any) -> None:
    module = pytest.importorskip(library)
    x = LIBRARIES[library](numpy.ones(1000, "i4"))
    y = LIBRARIES[library](numpy.zeros(1000, "i4"))
    scan = kiln.make_inclusive_scan("int32")
    scan(x, out=y)
    if library == "torch":
        module.cuda.synchronize()
        graph = module.cuda.CUDAGraph()
        with module.cuda.graph(graph):
            scan(x, out=y)
        x.fill_(2)
        graph.replay()
    else:
        module.cuda.Device().synchronize()
        stream = module.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            scan(x, out=y)
            graph = stream.end_capture()
            x.fill(2)
            graph.launch(stream)
            stream.synchronize()
    assert int(y[-1]) == 2000


def test_arrays_of_our_own() -> None:
    there = kiln._kiln.Array.from_host_sync(numpy.arange(6, dtype="f4").reshape(2, 3))
    for library in ("torch", "cupy"):
        module = pytest.importorskip(library)
        taken = module.from_dlpack(there)
        assert tuple(taken.shape) == (2, 3) and on_host(taken)[1, 2] == 5


def test_raw_module() -> None:
    cupy = pytest.importorskip("cupy")
    function = kiln.RawModule(code=SAXPY).get_function("saxpy")
    x, y = cupy.ones(100, "f4"), cupy.zeros(100, "f4")
    function((1,), (128,), (numpy.int32(100), numpy.float32(2), x, y))
    assert float(y.sum()) == 200


@pytest.mark.parametrize("type", ["i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_what_nobody_began_begins_at_what_changes_nothing(type: Any) -> None:
    """As on the CPU. These once began at 0, which is less than all of the numbers here."""
    x = numpy.array([7, 3, 5], type)
    with kiln.execution("gpu"):
        assert [kiln.reduce_sync(x, op) for op in ("plus", "multiply", "min", "max")] == [15, 105, 3, 7]
        assert kiln.exclusive_scan(x, "min").tolist()[1:] == [7, 3]
        assert kiln.segmented_reduce(x, numpy.array([0, 2, 3]), "multiply").tolist() == [21, 5]
