# SPDX-License-Identifier: Apache-2.0
# What __init__.py finds when it is asked for.
from . import spatial as spatial, torch as torch, tropical as tropical
from ._arrays import Array as Array
from ._bundles import add_bundle as add_bundle, build as build, configure as configure, contents as contents
from ._errors import (
    Cancelled as Cancelled, CompileFailed as CompileFailed, Corrupt as Corrupt, DriverError as DriverError, Error as Error,
    Forbidden as Forbidden, InternalError as InternalError, InvalidArgument as InvalidArgument, IoError as IoError,
    LinkFailed as LinkFailed, NoDevice as NoDevice, NotFound as NotFound, OutOfMemory as OutOfMemory, Timeout as Timeout,
    Unsupported as Unsupported, WorkerFailed as WorkerFailed)
from ._prims import (
    exclusive_scan as exclusive_scan, gather as gather, inclusive_scan as inclusive_scan, lower_bound as lower_bound,
    make_exclusive_scan as make_exclusive_scan, make_gather as make_gather, make_inclusive_scan as make_inclusive_scan,
    make_lower_bound as make_lower_bound, make_merge_sort as make_merge_sort, make_radix_sort as make_radix_sort,
    make_reduce as make_reduce, make_segmented_reduce as make_segmented_reduce, make_select as make_select,
    make_transform as make_transform, make_unique_by_key as make_unique_by_key, make_upper_bound as make_upper_bound,
    merge_sort as merge_sort, radix_sort as radix_sort, reduce as reduce, reduce_sync as reduce_sync,
    segmented_reduce as segmented_reduce, select as select, select_sync as select_sync, transform as transform,
    unique_by_key as unique_by_key, unique_by_key_sync as unique_by_key_sync, upper_bound as upper_bound)
from ._protocols import DeviceArray as DeviceArray, Stream as Stream
from ._types import Op as Op, Struct as Struct, op as op, struct as struct
from ._units import Artifact as Artifact, Future as Future, Kernel as Kernel, RawModule as RawModule, Unit as Unit
from ._views import (activity as activity, devices as devices, events as events, execution as execution, no_sync as no_sync,
    no_transfers as no_transfers, status as status)
from ._warmup import (
    Plan as Plan, Requirement as Requirement, Spec as Spec, catalogue as catalogue, record as record, replay as replay,
    requires as requires, spec as spec)

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...
