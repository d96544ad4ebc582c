# SPDX-License-Identifier: Apache-2.0
"""What cannot be right is told before anything runs: each message names the argument, what came and what to do. Against a driver
without a GPU, so that these run everywhere."""

import pathlib

import pytest
from conftest import Run

BEGIN = '''
import kiln, numpy, re, sys

class Device:
    def __init__(self, id): self.id = id

class Array:
    """A device array of a library nobody knows."""
    def __init__(self, n=100, type="<i4", *, device=0, pointer=None, strides=None, shape=None, read_only=False, stream=1, said={}):
        self._memory = numpy.zeros(8 * n + 8, "u1")
        self.dtype = numpy.dtype(type)
        self.shape = shape or (n,)
        self.device = Device(device)
        at = self._memory.ctypes.data if pointer is None else pointer
        self.__cuda_array_interface__ = {"shape": self.shape, "typestr": type, "data": (at, read_only), "strides": strides, "version": 3, "stream": stream, **said}
        self.at = at

def raises(kind, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as why:
        assert re.search(words, str(why)), f"{why!s} has no {words!r}"
        return
    raise AssertionError(f"{kind.__name__} was not raised")

class Lent:
    """Memory of a device that somebody lends by DLPack, and which stream it was asked to come before."""
    def __init__(self, asked=None):
        self._memory = kiln.Array.from_host_sync(numpy.zeros(100, "i4"))
        self.dtype, self.shape, self.asked = numpy.dtype("i4"), (100,), [] if asked is None else asked
    def __dlpack__(self, *, stream=None, **more):
        self.asked.append(stream)
        return self._memory.__dlpack__(stream=stream)
    def __dlpack_device__(self): return (2, 0)

class Old(Lent):
    """The same, with an array interface that has no word for streams."""
    @property
    def __cuda_array_interface__(self): return {**self._memory.__cuda_array_interface__, "version": 2}

class Half:
    """Items of 4 bits."""
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **more):
        import ctypes
        words = (ctypes.c_int64 * 1)(100), (ctypes.c_uint8 * 100)()
        tensor = (ctypes.c_uint64 * 9)(ctypes.addressof(words[1]), 2, 1 | (0 | 4 << 8 | 1 << 16) << 32, ctypes.addressof(words[0]), 0, 0, 0, 0)
        self.kept = words, tensor
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(tensor), b"dltensor", None)

class Jax(Lent):
    """As JAX's arrays are: of one type on the host, where they are buffers, and on a device; for reading alone."""
    __module__ = "jaxlib._jax"
    def __init__(self, here=None):
        super().__init__()
        self.here = here
    def __dlpack__(self, **how): return super().__dlpack__(**how) if self.here is None else self.here.__dlpack__(**how)
    def __dlpack_device__(self): return (2, 0) if self.here is None else (1, 0)
    @property
    def __cuda_array_interface__(self):
        if self.here is not None: raise AttributeError("on the host")
        return self._memory.__cuda_array_interface__
    def __buffer__(self, flags):
        if self.here is None: raise BufferError("on a device")
        return memoryview(self.here)

# What ships, so that nothing is compiled.
scan = kiln.make_exclusive_scan("int32")
sort = kiln.make_radix_sort("int32", "int32")
unique = kiln.make_unique_by_key("int32")
segmented = kiln.make_segmented_reduce("float64")
chosen = kiln.make_select("int32", indices=True)
x, y = Array(), Array()
scan(x, out=y)
'''
ROWS = {
    "no array": 'raises(TypeError, "x is a str, not an array: it has neither __dlpack__ nor __cuda_array_interface__ nor the buffer", scan, "x", out=y)',
    "two devices": 'raises(kiln.InvalidArgument, r"x is int32\\[100\\] on cuda:0, out is int32\\[100\\] on cuda:1: bring them", scan, x, out=Array(device=1))',
    "another device": 'raises(kiln.InvalidArgument, "cuda:1, the handle is for cuda:0", scan, Array(device=1), out=Array(device=1))',
    "host and device": 'raises(kiln.InvalidArgument, "out is int32.100. on the host: bring them to one place", scan, x, out=numpy.zeros(100, "i4"))',
    "the host alone": 'raises(kiln.InvalidArgument, "on the host; this handle takes arrays on cuda:0", scan, numpy.zeros(3, "i4"), out=numpy.zeros(3, "i4"))',
    "no memory": 'raises(kiln.InvalidArgument, "x has 100 items and no memory", scan, Array(pointer=0), out=y)',
    "not contiguous": 'raises(kiln.InvalidArgument, r"x is not contiguous: shape \\[50\\], strides \\[2\\]; pass x.contiguous\\(\\)", scan, Array(50, strides=(8,)), out=y)',
    "another type": 'raises(kiln.InvalidArgument, r"x is float32\\[100\\] on cuda:0, the handle is for int32", scan, Array(type="<f4"), out=y)',
    "another type out": 'raises(kiln.InvalidArgument, "out is int64.* the handle is for int32", scan, x, out=Array(type="<i8"))',
    "complex": 'raises(kiln.Unsupported, "complex64", kiln.inclusive_scan, Array(type="<c8"), out=y)',
    "byte order": 'raises(kiln.Unsupported, "\'>i4\' are in another byte order", scan, Array(type=">i4"), out=y)',
    "less than a byte": 'raises(kiln.Unsupported, "x holds type 0 of 4 bits; integers of 8 to 64 bits", scan, Half(), out=y)',
    "text": 'raises(kiln.Unsupported, "<U4", scan, Array(type="<U4"), out=y)',
    "no type": 'raises(kiln.Unsupported, "junk", scan, Array(type="<i4", said={"typestr": "junk"}), out=y)',
    "items of no size": 'raises(kiln.Unsupported, "<i0", scan, Array(strides=(4,), said={"typestr": "<i0"}), out=y)',
    "fewer than none": 'raises(kiln.InvalidArgument, "x cannot have -1 items in dimension 0", scan, Array(shape=(-1,)), out=y)',
    "more than there can be": 'raises(kiln.InvalidArgument, "x cannot have 4611686018427387904 items", scan, Array(shape=(1 << 62, 1 << 62)), out=y)',
    "a field of records": 'raises(kiln.InvalidArgument, "x has items of 4 bytes that lie 6 bytes apart: pass a copy in order", scan, Array(50, strides=(6,)), out=y)',
    "a mask": 'raises(kiln.Unsupported, "x has a mask", scan, Array(said={"mask": 1}), out=y)',
    "no shape": 'raises(TypeError, "x says nothing that makes sense of itself by __cuda_array_interface__", scan, Array(said={"shape": ("a",)}), out=y)',
    "a word is missing": 'a = Array(); del a.__cuda_array_interface__["data"]\nraises(kiln.InvalidArgument, "its __cuda_array_interface__ has no \'data\'", scan, a, out=y)',
    "no capsule": 'class D:\n    def __dlpack__(self, **_): return 5\n    def __dlpack_device__(self): return (2, 0)\nraises(kiln.InvalidArgument, r"x: its __dlpack__\\(\\) gave no DLPack capsule", scan, D(), out=y)',
    "no device": 'class E:\n    def __dlpack__(self, **_): return 5\n    def __dlpack_device__(self): return "x"\nraises(TypeError, "x says nothing that makes sense of itself by __dlpack_device__", scan, E(), out=y)',
    "not handed out": 'class N:\n    def __dlpack__(self, **_): raise BufferError("it has nulls")\n    def __dlpack_device__(self): return (2, 0)\nraises(kiln.InvalidArgument, r"x cannot be taken by DLPack, its __dlpack__\\(\\) says: it has nulls; pass", scan, N(), out=y)',
    "a device that is not told": 'class M:\n    def __dlpack__(self, **_): return 5\n    def __dlpack_device__(self): raise TypeError("no arrays with nulls")\nraises(kiln.InvalidArgument, r"x cannot be taken by DLPack, its __dlpack_device__\\(\\) says: no arrays with nulls", scan, M(), out=y)\nclass O:\n    def __dlpack__(self, **_): return 5\nraises(kiln.InvalidArgument, "no attribute .__dlpack_device__.", scan, O(), out=y)',
    "whatever else a library raises": 'class P:\n    def __dlpack__(self, **_): raise RuntimeError("out of luck")\n    def __dlpack_device__(self): return (2, 0)\nraises(RuntimeError, "^out of luck$", scan, P(), out=y)',
    "too small": 'raises(kiln.InvalidArgument, "out has room for 10 items, 100 are needed", scan, x, out=Array(10))',
    "read only": 'raises(kiln.InvalidArgument, "out cannot be written to", scan, x, out=Array(read_only=True))',
    "of JAX": 'raises(kiln.InvalidArgument, "out cannot be written to", scan, x, out=Jax())',
    "of JAX, on the host and then on a device": 'class Both(Jax): __module__ = "jaxlib._jax"\nraises(kiln.InvalidArgument, "x is int32.3. on the host; this handle takes", scan, Both(numpy.zeros(3, "i4")))\nscan(Both(), out=y)',
    "a device that cannot be": 'for device in (-1, 1 << 40): raises(kiln.InvalidArgument, f"x says that it is on device {device}, which there cannot be", kiln.Array.from_host_sync, Array(device=device, pointer=64))',
    "overlapping": 'raises(kiln.InvalidArgument, "out and x overlap", scan, x, out=Array(pointer=x.at + 4))',
    "in place": "scan(x, out=x)",
    "overlapping sort": 'raises(kiln.InvalidArgument, "out and keys overlap", sort, x, y, out=x, values_out=Array())',
    "overlapping results": 'raises(kiln.InvalidArgument, "out and values_out overlap", sort, x, y, out=(o := Array()), values_out=o)\no = Array(type="<i8")\npairs = kiln.make_unique_by_key("int32", "int32")\nraises(kiln.InvalidArgument, "out and count overlap", pairs, x, y, out=Array(pointer=o.at), values_out=Array(), count=o)\nraises(kiln.InvalidArgument, "count and values_out overlap", pairs, x, y, out=Array(), values_out=Array(pointer=o.at), count=o)\nraises(kiln.InvalidArgument, "count and x overlap", chosen, x, Array(100, "|b1"), out=y, count=Array(1, "<i8", pointer=x.at))',
    "overlapping results of NumPy": 'o = numpy.zeros(3, "i4")\nraises(kiln.InvalidArgument, "out and values_out overlap", kiln.radix_sort, numpy.arange(3, dtype="i4"), numpy.arange(3, dtype="i4"), out=o, values_out=o)',
    "NumPy's results over what is read": 'o = numpy.arange(9, dtype="i4")\nraises(kiln.InvalidArgument, "out and x overlap", kiln.exclusive_scan, o[:5], out=o[2:7])\nraises(kiln.InvalidArgument, "out and keys overlap", kiln.radix_sort, o[:5], o[:5], out=o[:5])\nkiln.exclusive_scan(o, out=o)',
    "not aligned": 'raises(kiln.InvalidArgument, "x has items of 4 bytes that do not begin at a multiple of that: pass a copy", scan, Array(pointer=x.at + 2), out=y)',
    "trimmed where it is": 'a = kiln.Array.from_host_sync(numpy.arange(9, dtype="i4"))\nassert len(kiln.unique_by_key_sync(a)) == 0  # which counts nothing here',
    "values missing": 'raises(kiln.InvalidArgument, "pass values", sort, x, out=y)',
    "values too many": 'raises(kiln.InvalidArgument, "keys alone", unique, x, x, out=y, count=Array(1, "<i8"))',
    "values too few": 'raises(kiln.InvalidArgument, "values has 10 items, keys 100", sort, x, Array(10), out=y, values_out=Array(10))',
    "no offsets": 'raises(kiln.InvalidArgument, "one item more", segmented, Array(type="<f8"), Array(0), out=Array(type="<f8"))',
    "offsets of floats": 'raises(kiln.InvalidArgument, "offsets are float32", segmented, Array(type="<f8"), Array(2, "<f4"), out=Array(type="<f8"))',
    "a mask of words": 'raises(kiln.InvalidArgument, "mask is int32", chosen, x, Array(), out=y, count=Array(1, "<i8"))',
    "a short mask": 'raises(kiln.InvalidArgument, "mask has 5 items, x 100", chosen, x, Array(5, "|b1"), out=y, count=Array(1, "<i8"))',
    "a small count": 'raises(kiln.InvalidArgument, "count is int32", chosen, x, Array(100, "|b1"), out=y, count=Array(1))',
    "an unknown library": 'raises(kiln.InvalidArgument, "an array of __main__: pass out=", kiln.inclusive_scan, x)',
    "destroyed stream": 'raises(kiln.DriverError, "CUDA_ERROR_INVALID_HANDLE", scan, x, out=y, stream=77777)',
    "stream of another device": 'class S:\n    device = Device(1)\n    def __cuda_stream__(self): return (0, 0)\nraises(kiln.InvalidArgument, "stream is of cuda:1, the arrays are on cuda:0", scan, x, out=y, stream=S())',
    "no stream": 'raises(TypeError, "stream must be an int or an object with __cuda_stream__", scan, x, out=y, stream="s")',
    "a stream that is no address": 'for stream in (1 << 70, -(1 << 70)): raises(kiln.InvalidArgument, "stream: -?1180591620717411303424 is no stream.s address", scan, x, out=y, stream=stream)\nclass T:\n    def __cuda_stream__(self): return (0, "x")\nraises(kiln.InvalidArgument, "stream: .x. is no stream.s address", scan, x, out=y, stream=T())',
    "an array's stream that is none": 'for stream in ("x", 1.5, 1 << 70): raises(kiln.InvalidArgument, "x: .* is no stream.s address", scan, Array(stream=stream), out=y)',
    "more items than bytes can be counted": 'for shape, type in (([1 << 32, 1 << 32], "int8"), ([(1 << 61) + 2], "int64")): raises(kiln.InvalidArgument, "an array cannot have", kiln.Array.empty, shape, type)\nassert kiln.Array.empty([0, 1 << 40], "int8").nbytes == 0',
    "a DLPack to come": 'raises(OverflowError, "", kiln.Array.empty([3], "int32").__dlpack__, max_version=(1 << 70, 0))',
    "unknown argument": 'raises(TypeError, r"scan\\(\\) has no argument \'outt\'", scan, x, outt=y)',
    "too many arguments": 'raises(TypeError, "takes 1 positional", scan, x, y)',
    "too few arguments": 'raises(TypeError, "missing its argument \'x\'", scan, out=y)',
    "twice": 'raises(TypeError, "two values", scan, x, x=x, out=y)',
    "a type nobody knows": 'raises(kiln.Unsupported, "items of type \'int33\' are not known", kiln.make_inclusive_scan, "int33")',
    "no operator": 'raises(kiln.CompileFailed, "", kiln.make_inclusive_scan, "int32", "a +* b")',
    "no device of that number": 'raises(kiln.NoDevice, "^there is no device 7; the driver sees 2", kiln.make_inclusive_scan, "int32", device=7)',
    "kernel: too few": 'raises(kiln.InvalidArgument, "has 3 parameters, 2 arguments came", k, 1, 32, (1, x))',
    "kernel: does not fit": 'raises(kiln.InvalidArgument, "argument 1 is 1099511627776, which does not fit into the parameter\'s 4 bytes", k, 1, 32, (1 << 40, x, y))',
    "kernel: a number of another size": 'raises(kiln.InvalidArgument, "argument 1 has 8 bytes, parameter 1 of kernel .* 4", k, 1, 32, (numpy.float64(1), x, y))',
    "kernel: a float that does not fit": 'raises(kiln.InvalidArgument, "argument 1 is 1e.300, which does not fit into the parameter.s 4 bytes", k, 1, 32, (1e300, x, y))\nk(1, 32, (float("inf"), x, y))',
    "kernel: other types than it has": 'raises(kiln.InvalidArgument, "parameter 1 of kernel .k__488. has 4 bytes, and its type 8", unit.kernel, "k__488", types="double, int*, int*")\nraises(kiln.InvalidArgument, "has 3 parameters, and 2 types came", unit.kernel, "k__488", types="int, int*")',
    "kernel: no type": 'raises(kiln.InvalidArgument, "types: .flaot. is no pointer and none of __half, ", unit.kernel, "k__488", types="flaot, int*, int*")\nraises(TypeError, "types: a int is no type", unit.kernel, "k__488", types=[4, "int*", "int*"])',
    "kernel: no int": 'raises(kiln.InvalidArgument, "argument 1 is a float, and the parameter is an integer", typed, 1, 32, (2.0, x, y))\nraises(kiln.InvalidArgument, "argument 1 is a float, and", typed, 1, 32, (numpy.float32(2), x, y))\nraises(kiln.InvalidArgument, "argument 1 is int32.100. on cuda:0, and the parameter is an integer", typed, 1, 32, (x, x, y))\nraises(kiln.InvalidArgument, "argument 1 is None, and", typed, 1, 32, (None, x, y))\nraises(kiln.InvalidArgument, "argument 1 is 2147483648, which does not fit", typed, 1, 32, (1 << 31, x, y))\ntyped(1, 32, (True, x, y)); typed(1, 32, (numpy.int32(3), x, 0))',
    "kernel: no pointer": 'raises(kiln.InvalidArgument, "argument 2 is a float, and the parameter is a pointer", typed, 1, 32, (1, 2.0, y))\nraises(kiln.InvalidArgument, "argument 2 is a bool, and the parameter is a pointer", typed, 1, 32, (1, True, y))',
    "kernel: less than nothing": 'natural = unit.kernel("k__488", types=["unsigned n", "int const*", "int[]"])\nraises(kiln.InvalidArgument, "argument 1 is -1, which does not fit", natural, 1, 32, (-1, x, y))\nnatural(1, 32, ((1 << 32) - 1, x, y))',
    "kernel: a record": 'p = kiln.struct("p", "short a, b;")\nwith_record = unit.kernel("k__488", types=[p, "int*", "int*"])\nraises(kiln.InvalidArgument, "argument 1 is an int, and the parameter is a record", with_record, 1, 32, (1, x, y))\nwith_record(1, 32, (numpy.zeros((), "i2,i2"), x, y))',
    "kernel: of the host": 'raises(kiln.InvalidArgument, "argument 2 is int32.3. on the host: a kernel reads device memory", k, 1, 32, (1, numpy.zeros(3, "i4"), y))',
    "kernel: an int for a struct": 's = kiln.Unit("s", "extern \\"C\\" __global__ void s__393() {}").kernel("s__393")\nraises(kiln.InvalidArgument, "argument 1 is an int, which does not fit into the parameter\'s 3 bytes", s, 1, 1, (5, 1, 2))\nraises(kiln.InvalidArgument, "argument 2 is an int, .* 9 bytes", s, 1, 1, (numpy.zeros((), "V3"), 1, 2))',
    "kernel: no array": 'raises(TypeError, "not an array", k, 1, 32, (1, "x", y))',
    "kernel: another device": 'raises(kiln.InvalidArgument, "argument 2 is .* on cuda:1, the kernel is loaded on cuda:0", k, 1, 32, (1, Array(device=1), y))',
    "kernel: no tuple": 'raises(TypeError, "must be a tuple", k, 1, 32, [1, x, y])',
    "kernel: no shape": 'raises(TypeError, "grid must be an int or one to three", k, "x", 32, (1, x, y))',
    "kernel: fits": "k(1, (32, 1, 1), (numpy.int32(1), x, None)); k(grid=1, block=32, args=(1, x, y), stream=0, shared=16)",
    "a compile that takes too long": 'own = "a + b + 0x77"\nraises(kiln.Timeout, "not ready in", kiln.make_reduce, "int32", own, timeout=1e-4)\nraises(kiln.Timeout, "not ready in", kiln.reduce, x, own + "1", out=y, timeout=1e-4)\nassert kiln.make_reduce("int32", own, timeout=300) is kiln.make_reduce("int32", own)\nkiln.reduce(x, own, out=y, timeout=1e-4)',
    "a timeout that is none": 'raises(TypeError, "reduce: timeout is a str; it must be float or None", kiln.reduce, x, "max", out=y, timeout="1")',
    "no waits": 'with kiln.no_sync(): scan(x, out=y)\ntry:\n    with kiln.no_sync(): kiln.Array.from_host_sync(numpy.zeros(3))\nexcept kiln.Forbidden: pass\nelse: raise AssertionError("it waited")\nkiln.Array.from_host_sync(numpy.zeros(3))',
    "no waits, twice": 'still = kiln.no_sync()\ntry:\n    with still:\n        with still: pass\n        kiln.Array.from_host_sync(numpy.zeros(3))\nexcept kiln.Forbidden: pass\nelse: raise AssertionError("it waited")\nkiln.Array.from_host_sync(numpy.zeros(3))',
    "no transfers, of two threads": 'import threading\ndef elsewhere(work):\n    failed = []\n    def run():\n        try: work()\n        except BaseException as why: failed.append(why)\n    thread = threading.Thread(target=run)\n    thread.start(), thread.join()\n    if failed: raise failed[0]\n'
                                    'def both():\n    still = kiln.no_transfers()\n    still.__enter__()\n    elsewhere(lambda: raises(kiln.InvalidArgument, "begun by another thread", still.__exit__, None, None, None))\n    again = [kiln.no_transfers()]\n    again[0].__enter__()\n    elsewhere(again.clear)\n    raises(kiln.Forbidden, "", kiln.Array.from_host_sync, numpy.zeros(3))\nelsewhere(both)\nkiln.Array.from_host_sync(numpy.zeros(3))',
    "no transfers": 'with kiln.no_transfers(): scan(x, out=y)\ntry:\n    with kiln.no_transfers(): kiln.Array.from_host_sync(numpy.zeros(3))\nexcept kiln.Forbidden: pass\nelse: raise AssertionError("it moved")',
    "fork": 'import os\npid = os.fork()\nif pid == 0:\n    raises(kiln.NoDevice, "forked after its parent used the GPU.*spawn", scan, x, out=y)\n    raises(kiln.NoDevice, "spawn", k, 1, 32, (1, x, y))\n    os._exit(7)\nassert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7',
}


KERNEL = "unit = kiln.Unit('k', 'extern \"C\" __global__ void k__488(int n, const int* x, int* y) {}')\nk = unit.kernel('k__488')\n"


def test_every_row(fake_driver: str, python: Run) -> None:
    text = fake_driver + BEGIN + KERNEL + "typed = unit.kernel('k__488', types='int n, const int* __restrict__ x, int* y')\nfailed = []\n"
    text += "import traceback\n" + "".join(f"try: exec({body!r})\nexcept BaseException: failed.append({name!r}); print({name!r}); traceback.print_exc()\n" for name, body in ROWS.items())
    text += "print('failed:', failed); assert not failed"
    done = python(text, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_gpu_that_is_not_there(python: Run) -> None:
    if pathlib.Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    python("import kiln, numpy\ndef wanted():\n    with kiln.execution('gpu'): kiln.inclusive_scan(numpy.zeros(3, 'i4'))\nfor call in (lambda: kiln.inclusive_scan(numpy.zeros(3, 'i4'), 'a + b + 1'), wanted, lambda: kiln.Unit('k', '__global__ void k() {}').kernel('k'), kiln.devices):\n"
           "    try: call()\n    except kiln.NoDevice as why: assert 'driver' in str(why), why\n    else: raise AssertionError(call)")


def test_streams_are_joined_both_ways(fake_driver: str, python: Run, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    python(fake_driver + BEGIN + "import os\nos.environ['KILN_FAKE_CUDA_LOG'] = sys.argv[1]\nscan(Array(stream=2), out=Array(stream=1), stream=0)\n", str(log))
    lines = [line.split() for line in log.read_text().splitlines()]
    kinds = [kind for kind, *_ in lines]
    launch = kinds.index("launch")
    assert "record" in kinds[:launch] and "wait" in kinds[:launch], "the launch waits for the other stream"
    assert "record" in kinds[launch:] and "wait" in kinds[launch:], "and the other stream for the launch"


def test_a_kernel_joins_the_streams_of_all_its_arrays(fake_driver: str, python: Run, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    python(fake_driver + BEGIN + KERNEL +
           "import os\nos.environ['KILN_FAKE_CUDA_LOG'] = sys.argv[1]\nk(1, 32, (1, Array(stream=1), Array(stream=2)))\n", str(log))
    kinds = [line.split()[0] for line in log.read_text().splitlines()]
    launch = kinds.index("launch")
    assert "record" in kinds[:launch] and "wait" in kinds[:launch], "the launch waits for the other array's stream"
    assert "record" in kinds[launch:] and "wait" in kinds[launch:], "and that stream for the launch"


def test_numbers_become_what_the_parameter_is(fake_driver: str, python: Run, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    python(fake_driver + BEGIN + KERNEL + """import os, pickle, struct
halves = kiln.Unit('halves', 'extern "C" __global__ void k__288(unsigned short n, const int* x, int* y) {}')
os.environ['KILN_FAKE_CUDA_LOG'] = sys.argv[1]
number = unit.kernel('k__488', types='float, const int*, int*')
for call, value in ((k, 2), (number, 2), (number, 2.5), (number, numpy.float32(2.5)), (number, True), (pickle.loads(pickle.dumps(number)), 2),
                    (halves.kernel('k__288', types='half, int*, int*'), 1), (halves.kernel('k__288', types='bfloat16, int*, int*'), 1.0)):
    call(1, 32, (value, x, y))
""", str(log))
    import struct

    as_float = [struct.unpack("<I", struct.pack("<f", value))[0] for value in (2, 2.5, 2.5, 1, 2)]
    assert [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("first")] == [2, *as_float, 0x3C00, 0x3F80]


def test_a_kernel_is_pickled_as_how_it_was_made(fake_driver: str, python: Run) -> None:
    python(fake_driver + BEGIN + KERNEL + """import pickle
again = pickle.loads(pickle.dumps(k))
assert (again.name, again.device, again.parameter_sizes) == ('k__488', 0, [4, 8, 8])
raises(TypeError, 'one that Unit.kernel', pickle.dumps, unit.get().kernel('k__488'))
""")


def test_what_tells_no_stream_is_asked_to_order_its_work(fake_driver: str, python: Run) -> None:
    """By DLPack; an array interface before version 3 would leave out what its library has still to do."""
    python(fake_driver + BEGIN + "old = Old()\nscan(old, out=y)\nassert old.asked == [1], old.asked\n")


def test_an_older_torchs_own_stream_is_used(fake_driver: str, python: Run, tmp_path: pathlib.Path) -> None:
    """Before it had the exchange functions: its current stream, nothing before and nothing after."""
    log = tmp_path / "log"
    python(fake_driver + BEGIN + """import os, types
class Stream: cuda_stream = 2
class Tensor(Lent): requires_grad = False
Tensor.__module__ = 'torch'
class Mine(Tensor): pass
sys.modules['torch'] = types.SimpleNamespace(cuda=types.SimpleNamespace(current_stream=lambda device: Stream()), is_grad_enabled=lambda: True)
x, y = Tensor(), Mine()
os.environ['KILN_FAKE_CUDA_LOG'] = sys.argv[1]
scan(x, out=y)
assert (x.asked, y.asked) == ([-1], [-1])
x.requires_grad = True
raises(kiln.InvalidArgument, 'x requires a gradient', scan, x, out=y)
""", str(log))
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [line[:2] for line in lines if line[0] != "first"] == [["launch", "2"]]


def test_an_array_lives_until_what_reads_it_has_run(fake_driver: str, python: Run) -> None:
    """Of a library that would give its memory to others as soon as nobody has it."""
    python(fake_driver + BEGIN + """import os, weakref
lent = Lent()
os.environ['KILN_FAKE_CUDA_BUSY'] = '1'
seen = weakref.ref(lent)
scan(lent, out=y)
del lent
scan(x, out=y)
assert seen() is not None
del os.environ['KILN_FAKE_CUDA_BUSY']
scan(x, out=y)
assert seen() is None
""")


def test_what_is_lent_is_given_back_when_what_reads_it_has_run(fake_driver: str, python: Run) -> None:
    """The memory need not be the object's own."""
    python(fake_driver + BEGIN + """import ctypes, os
given_back = []
class Managed(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("data", "device", "type", "shape", "strides", "offset", "context")] + [("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
class Fresh:
    dtype, shape = numpy.dtype("i4"), (100,)
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **how):
        items, shape = numpy.zeros(100, "i4"), (ctypes.c_int64 * 1)(100)
        lent = Managed(items.ctypes.data, 2, 1 | (0 | 32 << 8 | 1 << 16) << 32, ctypes.addressof(shape), 0, 0, 0, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(given_back.append))
        self.kept = items, shape, lent
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(lent), b"dltensor", None)
os.environ['KILN_FAKE_CUDA_BUSY'] = '1'
lent = Fresh()
scan(lent, out=y)
scan(x, out=y)
assert not given_back
del os.environ['KILN_FAKE_CUDA_BUSY']
scan(x, out=y)
assert len(given_back) == 1
""")


ROWS_THAT_GO = """import os, time, weakref
from kiln import spatial
class Doubles(Lent):
    def __init__(self):
        self._memory, self.dtype, self.shape, self.asked = kiln.Array.from_host_sync(numpy.zeros(9)), numpy.dtype("f8"), (9,), []
spatial.points(Array(9, "<f8"), Array(9, "<f8"))
"""


def test_rows_of_another_stream_make_it_wait(fake_driver: str, python: Run, tmp_path: pathlib.Path) -> None:
    """Their library may give the memory to what comes next on its stream as soon as nobody has the arrays."""
    log = tmp_path / "log"
    python(fake_driver + BEGIN + ROWS_THAT_GO + """rows = spatial.points(Array(9, "<f8", stream=2), Array(9, "<f8"))
os.environ["KILN_FAKE_CUDA_LOG"] = sys.argv[1]
del rows
""", str(log))
    lines = [line.split()[:2] for line in log.read_text().splitlines()]
    assert lines == [["record", "1"], ["wait", "2"]]


def test_rows_that_are_lent_live_until_what_reads_them_has_run(fake_driver: str, python: Run) -> None:
    python(fake_driver + BEGIN + ROWS_THAT_GO + """lent = Doubles()
os.environ["KILN_FAKE_CUDA_BUSY"] = "1"
seen = weakref.ref(lent)
rows = spatial.points(lent, lent)
del lent, rows
spatial.points(Array(9, "<f8"), Array(9, "<f8"))
assert seen() is not None
del os.environ["KILN_FAKE_CUDA_BUSY"]
spatial.points(Array(9, "<f8"), Array(9, "<f8"))
for _ in range(1000):
    if seen() is None: break
assert seen() is None
""")
