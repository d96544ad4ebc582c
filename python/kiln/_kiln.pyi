# Made by nanobind.stubgen from the module; tests/test_types.py compares them.
from collections.abc import Callable, Sequence
from typing import Any, overload


version: str = '0.1.0'

def error_codes() -> list[str]: ...

class UnitText:
    def __init__(self, arg0: str, arg1: str, arg2: Sequence[str], arg3: Sequence[str], arg4: Sequence[tuple[str, str]], arg5: Sequence[str], arg6: str, arg7: Sequence[str], /) -> None: ...

class Artifact:
    """
    What a unit became for one target: an image and what is known about it.
    """

    @property
    def unit(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def compiler(self) -> str: ...

    @property
    def log(self) -> str: ...

    @property
    def image(self) -> bytes:
        """The bytes the driver loads."""

    @property
    def kernels(self) -> list[str]: ...

    @property
    def compile_seconds(self) -> float: ...

    def __repr__(self) -> str: ...

class Kernel:
    """
    A kernel on one device: kernel(grid, block, args=(), *, stream=None, shared=0, cluster=None, cooperative=False) queues it
    and returns. Arrays are passed by their address; an int or float takes the parameter's size.
    """

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def registers(self) -> int: ...

    @property
    def max_threads(self) -> int: ...

    @property
    def parameter_sizes(self) -> list[int] | None:
        """Bytes of each; None if the driver does not tell."""

    def allow_shared(self, bytes: int) -> None: ...

    def __repr__(self) -> str: ...

class ReadyUnit:
    """A unit loaded on one device."""

    def kernel(self, name: str) -> Kernel: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def kernels(self) -> list[str]: ...

class PendingUnit:
    def done(self) -> bool: ...

    def result(self, timeout: float | None = None) -> ReadyUnit: ...

def get(unit: UnitText, device: int, timeout: float | None) -> ReadyUnit: ...

def get_async(arg0: UnitText, arg1: int, /) -> PendingUnit: ...

def artifact(arg0: UnitText, arg1: str, arg2: str, arg3: float | None, /) -> tuple[Artifact, str]: ...

class ElementType:
    @staticmethod
    def scalar(arg: str, /) -> ElementType: ...

    @staticmethod
    def record(arg0: str, arg1: str, arg2: int, arg3: int, /) -> ElementType: ...

    @staticmethod
    def none() -> ElementType: ...

    @property
    def size(self) -> int: ...

class Operator:
    @staticmethod
    def expression(arg: str, /) -> Operator: ...

    @staticmethod
    def builtin(arg: str, /) -> Operator: ...

    @staticmethod
    def function(arg0: str, arg1: str, /) -> Operator: ...

    @staticmethod
    def ltoir(arg0: str, arg1: bytes, /) -> Operator: ...

    def with_bytes(self, arg0: ElementType, arg1: bytes, /) -> Operator: ...

class Scan:
    """scan(x, *, out=None, init=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class Reduce:
    """reduce(x, *, out=None, init=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class SegmentedReduce:
    """reduce(x, offsets, *, out=None, init=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class Select:
    """select(x, mask=None, *, out=None, count=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class Bounds:
    """bounds(sorted, queries, *, out=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class RadixSort:
    """sort(keys, values=None, *, out=None, values_out=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class MergeSort:
    """sort(keys, values=None, *, out=None, values_out=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class UniqueByKey:
    """
    unique(keys, values=None, *, out=None, values_out=None, count=None, stream=None)
    """

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class Transform:
    """transform(x, *, out=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class Gather:
    """gather(x, index, *, out=None, stream=None)"""

    def __call__(self, /, *args, **kwargs):
        """Call self as a function."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> int: ...

    @property
    def origin(self) -> str: ...

    @property
    def recipe(self) -> object:
        """
        A function and its arguments that make this handle again: pickles hold it.
        """

    @recipe.setter
    def recipe(self, arg: object | None, /) -> None: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

def make_scan(inclusive: bool, type: ElementType, by: Operator, device: int, timeout: float | None) -> Scan: ...

def make_reduce(type: ElementType, by: Operator, device: int, timeout: float | None) -> Reduce: ...

def make_segmented_reduce(type: ElementType, by: Operator, device: int, timeout: float | None) -> SegmentedReduce: ...

def make_select(indices: bool, type: ElementType, by: Operator | None, device: int, timeout: float | None) -> Select: ...

def make_bounds(indices: bool, type: ElementType, by: Operator, device: int, timeout: float | None) -> Bounds: ...

def make_radix_sort(key: ElementType, value: ElementType, descending: bool, device: int, timeout: float | None) -> RadixSort: ...

def make_merge_sort(key: ElementType, value: ElementType, by: Operator, device: int, timeout: float | None) -> MergeSort: ...

def make_unique_by_key(key: ElementType, value: ElementType, by: Operator, device: int, timeout: float | None) -> UniqueByKey: ...

def make_transform(source: ElementType, to: ElementType, by: Operator, device: int, timeout: float | None) -> Transform: ...

def make_gather(type: ElementType, index: ElementType, device: int, timeout: float | None) -> Gather: ...

class Want:
    @property
    def name(self) -> str: ...

def want_scan(arg0: bool, arg1: ElementType, arg2: Operator, /) -> Want: ...

def want_reduce(arg0: ElementType, arg1: Operator, /) -> Want: ...

def want_segmented_reduce(arg0: ElementType, arg1: Operator, /) -> Want: ...

def want_select(indices: bool, type: ElementType, by: Operator | None) -> Want: ...

def want_bounds(arg0: bool, arg1: ElementType, arg2: Operator, /) -> Want: ...

def want_radix_sort(arg0: ElementType, arg1: ElementType, arg2: bool, /) -> Want: ...

def want_merge_sort(arg0: ElementType, arg1: ElementType, arg2: Operator, /) -> Want: ...

def want_unique_by_key(arg0: ElementType, arg1: ElementType, arg2: Operator, /) -> Want: ...

def want_transform(arg0: ElementType, arg1: ElementType, arg2: Operator, /) -> Want: ...

def want_gather(arg0: ElementType, arg1: ElementType, /) -> Want: ...

def tropical_product(semiring: str, a: object, b: object, out: object, winners: object | None, stream: object | None, timeout: float | None) -> None: ...

def tropical_backward(semiring: str, g: object, winners: object, a: object | None, b: object | None, da: object, db: object, stream: object | None, timeout: float | None) -> None: ...

class ColdItem:
    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def log(self) -> str: ...

    def __repr__(self) -> str: ...

class WarmReport:
    """What is warm, what is not, and why."""

    def __bool__(self) -> bool: ...

    @property
    def cold(self) -> list[ColdItem]: ...

    @property
    def total(self) -> int: ...

    @property
    def waited(self) -> float:
        """Seconds."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class PlanOf:
    def __init__(self, arg0: str, arg1: object, arg2: Sequence[str], arg3: int, /) -> None: ...

    def prepare(self) -> None: ...

    def ensure_warm(self, timeout: float | None) -> WarmReport: ...

    def cold(self) -> WarmReport: ...

def demand(arg0: object, arg1: Sequence[str], arg2: int, arg3: str, /) -> None: ...

class Recording:
    def stop(self) -> None: ...

def record(arg: str, /) -> Recording: ...

def write_profile(arg0: str, arg1: object, /) -> None: ...

def replay(arg0: str, arg1: Sequence[str], /) -> tuple: ...

def catalogue() -> list: ...

class no_sync:
    """
    with kiln.no_sync(): a wait for the GPU inside, of Kiln and on this thread, is kiln.Forbidden.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

class no_transfers:
    """
    with kiln.no_transfers(): a copy between host and device inside, of Kiln and on this thread, is kiln.Forbidden.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

def activity() -> dict: ...

def status() -> dict: ...

def events(arg: str, /) -> list: ...

def event_kinds() -> list: ...

def devices() -> list: ...

def execution_mode() -> str: ...

def set_execution_mode(mode: str | None) -> None: ...

class Array:
    """
    Memory of Kiln's own. Other libraries take it by DLPack or by their array interface, without a copy.
    """

    @staticmethod
    def empty(shape: Sequence[int], dtype: str, device: int = 0) -> Array: ...

    @staticmethod
    def from_host_sync(x: object, device: int = 0) -> Array: ...

    @property
    def shape(self) -> tuple: ...

    @property
    def dtype(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def ordinal(self) -> int:
        """Of its device; -1 for the host."""

    def to_host_sync(self, out: object, stream: object | None = None) -> None: ...

    def numpy_sync(self) -> Any:
        """
        A NumPy array: the same memory where it is on the host, else a copy that is waited for.
        """

    def __len__(self) -> int: ...

    def __dlpack_device__(self) -> tuple: ...

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: object | None = None) -> object: ...

    @property
    def __cuda_array_interface__(self) -> dict: ...

    @property
    def __array_interface__(self) -> dict: ...

    def __repr__(self) -> str: ...

class Geometries:
    """
    Geometries, one per row, on the host or on a device, in GeoArrow's layout. A missing row is not an empty one.
    """

    def __len__(self) -> int: ...

    @property
    def family(self) -> str: ...

    @property
    def vertices(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def ordinal(self) -> int:
        """Of its device; -1 for the host."""

    def to_device(self, device: int = 0) -> Geometries:
        """The same rows on a device; queued."""

    def to_host_sync(self) -> Geometries:
        """The same rows on the host; waits."""

    def to_wkb_sync(self) -> list:
        """One bytes object per row, None for missing ones."""

    def to_wkt_sync(self) -> list[str]:
        """One line per row, "NULL" for missing ones."""

    def parts(self) -> dict:
        """Its arrays: family, x, y, offsets from the outside in, validity."""

    def is_missing_sync(self) -> list[bool]: ...

    def validate(self, most: int = 100) -> list:
        """What is wrong, by row: (row, what, message)."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple: ...

    def __arrow_c_device_array__(self, requested_schema: object | None = None, **kwargs) -> tuple: ...

    def __repr__(self) -> str: ...

def geometries_from_arrow(arg0: object, arg1: object, /) -> Geometries: ...

def geometries_from_arrow_device(arg0: object, arg1: object, /) -> Geometries: ...

def geometries_from_arrow_stream(arg: object, /) -> Geometries: ...

def geometries_from_wkb(arg: object, /) -> Geometries: ...

def geometries_from_wkt(arg: Sequence[str], /) -> Geometries: ...

def geometries_from_parts(family: str, x: object, y: object, offsets: Sequence[object], validity: object | None) -> Geometries: ...

class AreaIndex:
    """
    Which areas a point is in: built once, asked often, in constant time per point.
    """

    def __init__(self, areas: Geometries, stream: object | None = None, timeout: float | None = None) -> None: ...

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def ordinal(self) -> int: ...

    def __repr__(self) -> str: ...

@overload
def spatial_join(left: Geometries, right: Geometries, relation: str, stream: object | None, timeout: float | None) -> tuple: ...

@overload
def spatial_join(left: Geometries, right: AreaIndex, relation: str, stream: object | None, timeout: float | None) -> tuple: ...

@overload
def spatial_join_first(left: Geometries, right: Geometries, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_first(left: Geometries, right: AreaIndex, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_count(left: Geometries, right: Geometries, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_count(left: Geometries, right: AreaIndex, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_any(left: Geometries, right: Geometries, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_any(left: Geometries, right: AreaIndex, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_histogram(left: Geometries, right: Geometries, relation: str, stream: object | None, timeout: float | None) -> Array: ...

@overload
def spatial_join_histogram(left: Geometries, right: AreaIndex, relation: str, stream: object | None, timeout: float | None) -> Array: ...

def spatial_relate(left: Geometries, right: Geometries, stream: object | None, timeout: float | None) -> Array: ...

def spatial_relate_join(left: Geometries, right: Geometries, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_distance(left: Geometries, right: Geometries, stream: object | None, timeout: float | None) -> Array: ...

def spatial_segment_intersections(left: Geometries, right: Geometries, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_bounds(of: Geometries, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_total_bounds(of: Geometries, stream: object | None, timeout: float | None) -> tuple[float, float, float, float] | None: ...

def spatial_area(of: Geometries, stream: object | None, timeout: float | None) -> Array: ...

def spatial_length(of: Geometries, stream: object | None, timeout: float | None) -> Array: ...

def spatial_centroid(of: Geometries, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_counts(of: Geometries, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_join_within(left: Geometries, right: Geometries, distance: float, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_query(left: Geometries, right: Geometries, distance: float, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_nearest(left: Geometries, right: Geometries, count: int, most: float | None, ties: bool, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_join_in_chunks(left: Geometries, right: Geometries, relation: str, distance: float | None, take: Callable, most_bytes: int) -> None: ...

def spatial_bounds_by_key(of: Geometries, key: object, keys: int, stream: object | None, timeout: float | None) -> tuple: ...

def spatial_gather(rows_of: Geometries, rows: object, stream: object | None, timeout: float | None) -> Geometries: ...

def spatial_filter(rows_of: Geometries, keep: object, stream: object | None, timeout: float | None) -> Geometries: ...

def spatial_point_buffer(of: Geometries, distance: float, quarter: int, stream: object | None, timeout: float | None) -> Geometries: ...

def spatial_clip(of: Geometries, box: tuple[float, float, float, float], stream: object | None, timeout: float | None) -> Geometries: ...

def spatial_matrix_text(arg0: int, arg1: int, arg2: int, /) -> str: ...

def spatial_read_file(path: str, id: str) -> tuple: ...

def spatial_relations() -> list[str]: ...

def end() -> None: ...

def in_use() -> bool: ...
