# SPDX-License-Identifier: Apache-2.0
"""`numba.cuda` as kernels see it where lanes run together (see `convoy`)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import DType, Int32, Int64, Uint32
from ...isa.form.instr import WARP
from ..ground.clocks import Gather, acquire
from ..ground.ordering import fence
from ..hardware.cooperative import GridGroup
from ..hardware.machine import Machine
from ..hardware.together import NotTogether
from ..python.arithmetic.compute import wrapped
from ..python.arithmetic.lanes import Lanes
from ..python.arithmetic.operators import type_of_class
from ..python.numba_stand_in import FULL_MASK, CudaStandIn, lane_mask, truth_of
from .lane_memory import LaneArray, alone, stepped


class _Index:
    """threadIdx, or the like: `read(thread)` gives three numbers, of a type. same: whether they are of all blocks."""

    def __init__(self, run: Any, read: Callable[[Any], Any], dtype: DType = Int32, same: bool = True) -> None:
        self._run, self._read, self._dtype, self._same = run, read, dtype, same
        self._of_lanes: dict[Any, Any] = {}

    def _along(self, axis: int) -> Any:
        f = self._run.thread.convoy
        key = (self, axis)
        found = f.memory.get(key)
        if found is None:
            array = self._of_lanes.get((f.lanes, axis))
            if array is None:
                array = np.array([self._read(t)[axis] for t in f.threads], self._dtype.numpy)
                if self._same:
                    self._of_lanes[f.lanes, axis] = array
            found = f.memory[key] = f.of_array(self._dtype, array)
        return found

    x = property(lambda self: self._along(0))
    y = property(lambda self: self._along(1))
    z = property(lambda self: self._along(2))


class _Shared:
    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
        found = self._alone.array(shape, dtype, alignment, depth=2)
        array = stepped(found, self._run)
        array.declared = found.declared
        return array


class _Local:
    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
        f = self._run.thread.convoy
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        first, last = f.lanes[0], f.lanes[-1]
        of_all = (last - first + 1, *shape)
        return f.step(lambda: LaneArray(self._run, self._alone.array(of_all, dtype, alignment), first))


class _Atomic:
    """Each lane's atomic in turn."""

    def __init__(self, alone: Any, run: Any) -> None:
        self._alone, self._run = alone, run

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._alone, name)
        run = self._run

        def call(array: Any, *operands: Any) -> Any:
            f = run.thread.convoy
            if run.clocks and getattr(array, "dtype", None) is not None and array.dtype.kind not in "biu":
                raise NotTogether("sums of floats depend on the order of the lanes' atomics")
            return f.step(f.each, plain, alone(array), *operands)

        setattr(self, name, call)
        return call


class _GridGroup(GridGroup):
    def sync(self) -> int:
        return int(self.run.thread.convoy.step(super().sync))


class _CooperativeGroups:
    def __init__(self, run: Any) -> None:
        self._group = _GridGroup(run)

    def this_grid(self) -> GridGroup:
        return self._group


class LaneStandIn(CudaStandIn):
    """`CudaStandIn` for all lanes of the convoy that runs now."""

    def __init__(self, run: Any, real: Any, replace: Any) -> None:
        super().__init__(run, real, replace)
        self.threadIdx = _Index(run, lambda t: t.tid)
        self._at = _Index(run, lambda t: [b * n + i for b, n, i in zip(t.cta.index, run.block, t.tid)], Int64, False)
        self._lane = _Index(run, lambda t: (t.lane, 0, 0))
        self.shared = _Shared(self.shared, run)
        self.local = _Local(self.local, run)
        self.atomic = _Atomic(self.atomic, run)
        self.cg = _CooperativeGroups(run)

    @property
    def laneid(self) -> Any:
        return self._lane.x

    def grid(self, ndim: int) -> Any:
        return self._at.x if ndim == 1 else (self._at.x, self._at.y, self._at.z)[:ndim]

    def lanemask_lt(self) -> Any:
        f = self._run.thread.convoy
        return f.of(Uint32, [(1 << t.lane) - 1 for t in f.threads])

    def activemask(self) -> Any:
        f = self._run.thread.convoy
        return f.of(Uint32, [1 << t.lane for t in f.threads])

    def _sync(self, value: Any) -> list[Any]:
        f = self._run.thread.convoy
        return f.step(self._sync_lanes, f, value)  # type: ignore[no-any-return]

    def _sync_lanes(self, f: Any, value: Any) -> list[Any]:
        m = Machine(self._run, None, f.threads)
        for tell in self._run.watch.syncs_threads:
            tell(m)
        return [x for v in m.cta.named.arrive(m, 0, None, True, f.lists(value)).values for x in v]

    def _pause(self, why: str) -> None:
        self._run.thread.convoy.step(super()._pause, why)

    def _fence(self, scope: str) -> None:
        self._run.thread.convoy.step(self._fence_lanes, scope)
        self._pause("threadfence")

    def _fence_lanes(self, scope: str) -> None:
        for t in self._run.thread.convoy.threads if self._run.clocks else ():
            fence(t, scope)

    def syncwarp(self, mask: Any = FULL_MASK) -> None:
        f = self._run.thread.convoy
        f.step(self._syncwarp, f, mask)

    def _syncwarp(self, f: Any, mask: int) -> None:
        clocks, known = [t.clock for t in f.threads] if self._run.clocks else [], None
        if clocks:
            gather = Gather(clocks[0].base)
            gather.add(clocks)
            known = gather.freeze()
        met = self._exchange(f.threads, "syncwarp", mask, [known] * len(f.threads))
        for clock in dict.fromkeys(met.values()) if clocks else ():
            acquire(clocks, clock)

    def _meet(self, what: str, mask: int, value: Any) -> dict[int, Any]:
        f = self._run.thread.convoy
        return f.step(self._meet_lanes, f, what, mask, value)  # type: ignore[no-any-return]

    def _meet_lanes(self, f: Any, what: str, mask: int, value: Any) -> dict[int, Any]:
        return self._exchange(f.threads, what, mask, f.lists(value))

    def _shuffle(self, what: str, mask: Any, value: Any, source: Any) -> Any:
        f = self._run.thread.convoy
        dtype = value.dtype or Int64 if type(value) is Lanes else type_of_class(type(value))
        if dtype is None:
            raise NotTogether(f"{what}: {value!r} is not a number")
        met = self._meet(what, mask, value)
        if self._run.watch.shuffles and any(0 <= s < 32 and s not in met for s in source):
            raise NotTogether(f"{what}: a lane asks one outside of the mask")
        return f.of(dtype, [met.get(s, v) for s, v in zip(source, f.lists(value))])

    def _sources(self, of: Callable[[int, int], int], operand: Any) -> list[int]:
        """The lanes that are asked, from each lane's own and its operand."""
        f = self._run.thread.convoy
        return [of(t.lane, int(x)) for t, x in zip(f.threads, f.lists(operand))]

    def shfl_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_sync", mask, value, self._sources(lambda _, at: at & 31, lane))

    def shfl_up_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_up_sync", mask, value, self._sources(operator.sub, delta))

    def shfl_down_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_down_sync", mask, value, self._sources(operator.add, delta))

    def shfl_xor_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_xor_sync", mask, value, self._sources(operator.xor, lane))

    def match_any_sync(self, mask: Any, value: Any) -> Any:
        f = self._run.thread.convoy
        met = self._meet("match_any_sync", mask, value)
        found = [sum(1 << lane for lane, x in met.items() if x == v) for v in f.lists(value)]
        return f.of(Int32, [wrapped(bits, Int32) for bits in found])

    def match_all_sync(self, mask: Any, value: Any) -> tuple[Any, Any]:
        met = list(self._meet("match_all_sync", mask, value).values())
        same = all(v == met[0] for v in met)
        return lane_mask(int(mask) & FULL_MASK if same else 0), truth_of(same)


def _by_warps(of_a_warp: Callable[..., Any]) -> Callable[..., Any]:
    """An exchange of a warp's lanes, as a method that each warp of the convoy does in turn."""

    @functools.wraps(of_a_warp)
    def call(self: Any, mask: Any = FULL_MASK, *operands: Any) -> Any:
        f = self._run.thread.convoy
        named = int(mask) & FULL_MASK  # lanes of another mask part here
        warps = f.units(_warp, WARP, named)
        return f.by_units(warps, of_a_warp, self, named, *operands)

    return call


_warp = operator.attrgetter("warp")

for _name in ("syncwarp", "shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "all_sync", "any_sync",
              "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync"):  # fmt: skip
    setattr(LaneStandIn, _name, _by_warps(getattr(LaneStandIn, _name)))
