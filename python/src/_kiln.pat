# What type checkers are told of calls that the interpreter makes without a signature (calls.hpp): patterns of nanobind's stubgen.

kiln._kiln.__prefix__:
    \from collections.abc import Sequence
    \from typing import Any, TypeVar
    A = TypeVar("A")  # arrays of one library in, arrays of that library out

kiln._kiln.Array.__dlpack__:
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...

kiln._kiln.Kernel.__call__:
    def __call__(self, grid: int | Sequence[int], block: int | Sequence[int], args: tuple[Any, ...] = (), *, stream: Any = None, shared: int = 0, cluster: int | Sequence[int] | None = None, cooperative: bool = False) -> None: ...

kiln._kiln.Scan.__call__:
    def __call__(self, x: A, *, out: A | None = None, init: Any = None, stream: Any = None) -> A: ...

kiln._kiln.Reduce.__call__:
    def __call__(self, x: A, *, out: A | None = None, init: Any = None, stream: Any = None) -> A: ...

kiln._kiln.SegmentedReduce.__call__:
    def __call__(self, x: A, offsets: A, *, out: A | None = None, init: Any = None, stream: Any = None) -> A: ...

kiln._kiln.Select.__call__:
    def __call__(self, x: A | None, mask: A | None = None, *, out: A | None = None, count: A | None = None, stream: Any = None) -> tuple[A, A]: ...

kiln._kiln.Bounds.__call__:
    def __call__(self, sorted: A, queries: A, *, out: A | None = None, stream: Any = None) -> A: ...

kiln._kiln.RadixSort.__call__:
    def __call__(self, keys: A, values: A | None = None, *, out: A | None = None, values_out: A | None = None, stream: Any = None) -> Any: ...

kiln._kiln.MergeSort.__call__:
    def __call__(self, keys: A, values: A | None = None, *, out: A | None = None, values_out: A | None = None, stream: Any = None) -> Any: ...

kiln._kiln.UniqueByKey.__call__:
    def __call__(self, keys: A, values: A | None = None, *, out: A | None = None, values_out: A | None = None, count: A | None = None, stream: Any = None) -> Any: ...

kiln._kiln.Transform.__call__:
    def __call__(self, x: A, *, out: Any = None, stream: Any = None) -> A: ...

kiln._kiln.Gather.__call__:
    def __call__(self, x: A, index: A, *, out: A | None = None, stream: Any = None) -> A: ...
