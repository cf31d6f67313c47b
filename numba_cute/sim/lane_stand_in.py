# SPDX-License-Identifier: Apache-2.0
"""`numba.cuda`, `math`, NumPy's types and Python's own functions as kernels see them where lanes run together (see
`fragment`)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .cooperative import GridGroup
from .lane_memory import bare, stepped
from .lanes import LaneArray, Lanes, lanewise
from .machine import Machine
from .numba_stand_in import FULL_MASK, CudaStandIn, NumbaType


class _Index:
    """threadIdx, or the block's part of it: `read(thread)` gives three numbers."""

    def __init__(self, run: Any, read: Callable[[Any], Any]) -> None:
        self._run, self._read = run, read

    def _along(self, axis: int) -> Any:
        f = self._run.thread.fragment
        key = (self, axis)
        found = f.memory.get(key)
        if found is None:
            found = f.memory[key] = f.of([self._read(t)[axis] for t in f.threads])
        return found

    x = property(lambda self: self._along(0))
    y = property(lambda self: self._along(1))
    z = property(lambda self: self._along(2))


class _Shared:
    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
        return stepped(self._alone.array(shape, dtype, alignment, depth=2), self._run)


class _Local:
    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
        f = self._run.thread.fragment
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        return f.step(lambda: LaneArray(self._run, self._alone.array((32, *shape), dtype, alignment)))


class _Atomic:
    """Each lane's atomic in turn."""

    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._alone, name)
        run = self._run

        def call(array: Any, *operands: Any) -> Any:
            f = run.thread.fragment
            return f.step(f.each, plain, bare(array), *operands)

        setattr(self, name, call)
        return call


class _GridGroup(GridGroup):
    def sync(self) -> int:
        return int(self._run.thread.fragment.step(super().sync))


class _CooperativeGroups:
    def __init__(self, run: Any) -> None:
        self._group = _GridGroup(run)

    def this_grid(self) -> GridGroup:
        return self._group


class LaneStandIn(CudaStandIn):
    """`CudaStandIn` for all lanes of the fragment that runs now."""

    def __init__(self, run: Any, real: Any, replace: Any) -> None:
        super().__init__(run, real, replace)
        self.threadIdx = _Index(run, lambda t: t.tid)
        self._at = _Index(run, lambda t: [b * n + i for b, n, i in zip(t.cta.index, run.block, t.tid)])
        self._lane = _Index(run, lambda t: (t.lane, 0, 0))
        self.shared = _Shared(self.shared, run)
        self.local = _Local(self.local, run)
        self.atomic = _Atomic(self.atomic, run)
        self.cg = _CooperativeGroups(run)
        for name in ("popc", "clz", "ffs", "brev", "fma", "cbrt", "selp"):
            setattr(self, name, lanewise(getattr(self, name)))

    @property
    def laneid(self) -> Any:
        return self._lane.x

    def grid(self, ndim: int) -> Any:
        return self._at.x if ndim == 1 else (self._at.x, self._at.y, self._at.z)[:ndim]

    def lanemask_lt(self) -> Any:
        return lanewise(lambda lane: (1 << lane) - 1)(self.laneid)

    def _sync(self, value: Any) -> list[Any]:
        f = self._run.thread.fragment
        return f.step(self._sync_lanes, f, value)  # type: ignore[no-any-return]

    def _sync_lanes(self, f: Any, value: Any) -> list[Any]:
        m = Machine(self._run, None, f.threads)
        return [x for v in m.cta.named.arrive(m, 0, None, True, f.lists(value)).values for x in v]

    def _pause(self, why: str) -> None:
        self._run.thread.fragment.step(super()._pause, why)

    def _meet(self, what: str, mask: Any, value: Any) -> dict[int, Any]:
        f = self._run.thread.fragment
        return f.step(self._meet_lanes, f, what, mask, value)  # type: ignore[no-any-return]

    def _meet_lanes(self, f: Any, what: str, mask: Any, value: Any) -> dict[int, Any]:
        mask = int(mask) & FULL_MASK  # lanes of another mask part here
        if not all(mask >> lane & 1 for lane in f.lanes):
            f.alike(Lanes(f, [mask >> lane & 1 for lane in f.lanes]))
        return self._exchange(f.threads, what, mask, f.lists(value))

    def _shuffle(self, what: str, mask: Any, value: Any, source: Any) -> Any:
        f = self._run.thread.fragment
        met = self._meet(what, mask, value)
        return f.of([met.get(s, v) for s, v in zip(f.lists(source), f.lists(value))])

    def shfl_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_sync", mask, value, lanewise(lambda at: int(at) & 31)(lane))

    def shfl_up_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_up_sync", mask, value, self.laneid - delta)

    def shfl_down_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_down_sync", mask, value, self.laneid + delta)

    def shfl_xor_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_xor_sync", mask, value, self.laneid ^ lane)

    def match_any_sync(self, mask: Any, value: Any) -> Any:
        met = self._meet("match_any_sync", mask, value)
        return lanewise(lambda v: sum(1 << lane for lane, x in met.items() if x == v))(value)

    def match_all_sync(self, mask: Any, value: Any) -> tuple[int, bool]:
        met = list(self._meet("match_all_sync", mask, value).values())
        same = all(v == met[0] for v in met)
        return (int(mask) & FULL_MASK if same else 0), same


def lanes_type(kind: Any, dtype: Any) -> Any:
    """A type that converts, for each lane; and names a dtype where one is asked for."""
    call = lanewise(kind)
    call.numpy = dtype  # type: ignore[attr-defined]
    call.dtype = np.dtype(dtype)  # type: ignore[attr-defined]
    return call


class LaneModule:
    """`math` or NumPy: its functions and types of numbers work on lanes."""

    def __init__(self, real: ModuleType) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if isinstance(found, type) and issubclass(found, np.generic):
            found = lanes_type(found, found)
        elif self._real is math and callable(found):
            found = lanewise(found)
        setattr(self, name, found)
        return found


class LaneType(NumbaType):
    """A Numba scalar type."""

    def __call__(self, value: Any) -> Any:
        return value.map(super().__call__) if type(value) is Lanes else super().__call__(value)


def lane_builtins() -> dict[str, Any]:
    """What stands for Python's own functions in a kernel."""
    space = dict(vars(builtins))
    for kind, dtype in ((int, np.int64), (float, np.float64), (bool, np.bool_)):
        space[kind.__name__] = lanes_type(kind, dtype)
    for f in (min, max):
        space[f.__name__] = _chosen(f)
    real = {id(space[k.__name__]): k for k in (int, float, bool)}

    def is_instance(x: Any, kinds: Any) -> bool:
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        kinds = tuple(real.get(id(k), k) for k in kinds)
        return isinstance(x.list[0] if type(x) is Lanes else x, kinds)

    space["isinstance"] = is_instance
    return space


def _chosen(f: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`."""
    each = lanewise(f)

    def call(*args: Any, **kwargs: Any) -> Any:
        return each(*args, **kwargs) if len(args) > 1 else f(*args, **kwargs)

    return call
