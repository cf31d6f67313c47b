# SPDX-License-Identifier: Apache-2.0
"""The stand-in for `numba.cuda`: the names that kernels use, on the thread that runs."""

from __future__ import annotations

import importlib
import operator
import sys
from typing import Any

import numpy as np

from ... import seam
from ...dtypes import BFloat16, Int32, Int64, Uint32, from_numpy
from ...seam import CuteError
from ...seam.ground.naming import type_name
from ...seam.guards.messages import NO_ALIGNMENT, no_static_shape
from ...seam.source.language import no_function
from ..ground.ordering import fence, order
from ..ground.report import DivergenceError, assigned_name, who
from ..hardware.cooperative import CooperativeGroups
from ..hardware.machine import Machine
from ..hardware.together import let_others_run, who_waits
from .arithmetic.compute import wrapped
from .arithmetic.intrinsics import INTRINSICS
from .arithmetic.number import CLASSES, FALSE, TRUE, from_python, leaf_type
from .arithmetic.operators import cast, value_of
from .arrays import Tracked, element_value, place, tracked
from .unrolled import copy_of

FULL_MASK = 0xFFFFFFFF


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy type of a Numba type, a DType, a stand-in type or a NumPy type."""
    found: np.dtype[Any]
    try:
        found = np.dtype(getattr(dtype, "numpy", dtype))
    except TypeError:
        found = np.dtype(str(dtype))
    return found


def _aligned(alignment: int | None) -> int:
    """The alignment of an array in bytes, which has Numba's rules; 1 where only its elements have one."""
    if alignment is None:
        return 1
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        raise CuteError(NO_ALIGNMENT)
    return alignment


_NAMES = {"boolean": "bool", "__nv_bfloat16": BFloat16.numpy}


class NumbaType:
    """A Numba scalar type: called, it converts, as in a kernel."""

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(_NAMES.get(name, name))

    def __call__(self, value: Any) -> Any:
        return cast(value, leaf_type(from_numpy(self.dtype)))

    def __repr__(self) -> str:
        return str(self.dtype)


_INT32 = CLASSES[Int32].make
_INT64 = CLASSES[Int64].make
_UINT32 = CLASSES[Uint32].make


class _Dim3:
    """threadIdx and the like."""

    def __init__(self, read: Any) -> None:
        self._read = read

    x = property(lambda self: _INT32(self._read()[0]))
    y = property(lambda self: _INT32(self._read()[1]))
    z = property(lambda self: _INT32(self._read()[2]))


class _Shared:
    def __init__(self, run: Any) -> None:
        self._run = run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None, depth: int = 1) -> Any:
        """One array for the CTA for each line of code that asks, and each copy of it in unrolled loops; shape 0 is all
        of dynamic shared memory."""
        smem = self._run.thread.cta.smem
        _check(shape, dtype, "cuda.shared.array")
        if shape in (0, (0,)):
            return _declared(tracked(smem.dynamic_array(numpy_dtype(dtype)), self._run, smem.cta), False, alignment)
        frame = sys._getframe(depth)
        key, align = (frame.f_code, frame.f_lasti, copy_of(frame)), _aligned(alignment)
        found = smem.static_array(key, shape, numpy_dtype(dtype), assigned_name(frame), align)
        return _declared(tracked(found, self._run, smem.cta), True, alignment)


def _declared(array: Any, extents: bool, alignment: int | None) -> Any:
    """An array, with what a kernel's line says of it (see DeviceArray)."""
    array.declared = extents, alignment or 0
    return array


def _check(shape: Any, dtype: Any, what: str) -> None:
    """An error if a shape is known only at run time, or a type is none."""
    if not all(isinstance(s, (int, np.integer)) for s in (shape if isinstance(shape, (tuple, list)) else (shape,))):
        raise seam.CuteError(no_static_shape(what))
    if isinstance(dtype, str) and dtype not in np.sctypeDict:
        raise seam.CuteError(no_function("array", [type_name(type(shape).__name__), "str"]))


class _Local:
    def __init__(self, run: Any) -> None:
        self._run = run

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
        _check(shape, dtype, "cuda.local.array")
        t = numpy_dtype(dtype)
        _aligned(alignment)
        poison = np.full(int(np.prod(shape)) * t.itemsize, 0xFF, np.uint8).view(t).reshape(shape)
        return seam.current().local_array(poison)  # type: ignore[attr-defined]


class _Const:
    @staticmethod
    def array_like(a: Any) -> Any:
        return a


class _Atomic:
    """Atomics: a thread is never interrupted, so each is a read and a write. Each gives the old value."""

    def __init__(self, run: Any) -> None:
        self._run = run

    @staticmethod
    def _sync(array: Tracked, at: Any) -> None:
        """They are relaxed, at GPU scope: ordered by fences alone."""
        m = array.access(at, True, atomic="gpu")
        order(m, (array._cta, array.address(at)), "relaxed", "gpu", reads=True, writes=True)

    def _update(self, array: Any, at: Any, new: Any, *operands: Any) -> Any:
        """Set an element to `new(old, *operands)`, the operands in its type."""
        at = place(at)
        if isinstance(array, Tracked):
            self._sync(array, at)
            address = array.address(at)
            self._run.thread.polled = array._cta or self._run.memory.find(address), address
        array = array.view(np.ndarray)
        old = array[at]
        with np.errstate(over="ignore"):
            array[at] = new(old, *(old.dtype.type(element_value(x, array.dtype)) for x in operands))
        if array[at] == old:  # nothing changed, so this may be a loop that polls
            Machine(self._run, None, [self._run.thread]).pause("an atomic that changes nothing")
        else:
            self._run.events += 1
        return from_python(old)

    def add(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, operator.add, value)

    def sub(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, operator.sub, value)

    def max(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, max, value)

    def min(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, min, value)

    def nanmax(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, np.fmax, value)

    def nanmin(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, np.fmin, value)

    def and_(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, operator.and_, value)

    def or_(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, operator.or_, value)

    def xor(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, operator.xor, value)

    def inc(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, lambda old, most: 0 if old >= most else old + 1, value)

    def dec(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, lambda old, most: most if old == 0 or old > most else old - 1, value)

    def exch(self, array: Any, at: Any, value: Any) -> Any:
        return self._update(array, at, lambda old, new: new, value)

    def cas(self, array: Any, at: Any, old: Any, value: Any) -> Any:
        return self._update(array, at, lambda now, is_, new: new if now == is_ else now, old, value)

    def compare_and_swap(self, array: Any, old: Any, value: Any) -> Any:
        return self.cas(array, 0, old, value)


class _Exchange:
    """Lanes of a warp on their way to a shuffle or vote with one mask."""

    by = None

    def __init__(self, threads: list[Any], mask: int) -> None:
        self.unit = self
        self.kind = f"warp that the mask {mask:#x} names"
        self.threads, self.mask = threads, mask
        self.values: dict[int, Any] = {}
        self.done = False

    def absent(self) -> list[Any]:
        return [t for t in self.threads if t.lane not in self.values]


def _member(module: Any, name: str) -> Any:
    """A module's attribute, or its submodule, which Numba itself imports when it first compiles (`cuda.fp16`)."""
    try:
        return getattr(module, name)
    except AttributeError:
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except ImportError:
            pass
        raise


class CudaStandIn:
    """The names of `numba.cuda` that a kernel may use; others are the real module's."""

    def __init__(self, run: Any, real: Any, replace: Any) -> None:
        self._run, self._real, self._replace = run, real, replace
        self.threadIdx: Any = _Dim3(lambda: run.thread.tid)
        self.blockIdx = _Dim3(lambda: run.thread.cta.index)
        self.blockDim = _Dim3(lambda: run.block)
        self.gridDim = _Dim3(lambda: run.grid)
        self.shared: Any = _Shared(run)
        self.local: Any = _Local(run)
        self.atomic: Any = _Atomic(run)
        self.const: Any = _Const()
        self.cg: Any = CooperativeGroups(run)
        self.warpsize = _INT32(32)
        for name, f in INTRINSICS.items():
            setattr(self, name, f)

    def __getattr__(self, name: str) -> Any:
        return self._replace(_member(self._real, name))

    @property
    def laneid(self) -> Any:
        return _INT32(self._run.thread.lane)

    def grid(self, ndim: int) -> Any:
        t = self._run.thread
        at = tuple(_INT64(b * n + i) for b, n, i in zip(t.cta.index, self._run.block, t.tid))
        return at[0] if ndim == 1 else at[:ndim]

    def gridsize(self, ndim: int) -> Any:
        size = tuple(_INT64(g * b) for g, b in zip(self._run.grid, self._run.block))
        return size[0] if ndim == 1 else size[:ndim]

    # barriers
    def _sync(self, value: Any) -> list[Any]:
        m = Machine(self._run, None, [self._run.thread])
        for tell in self._run.watch.syncs_threads:
            tell(m)
        return m.cta.named.arrive(m, 0, None, True, value).values  # type: ignore[no-any-return]

    def syncthreads(self) -> None:
        self._sync(None)

    def syncthreads_count(self, predicate: Any) -> Any:
        return _INT32(sum(bool(v) for v in self._sync(predicate)))

    def syncthreads_and(self, predicate: Any) -> Any:
        return _INT32(all(bool(v) for v in self._sync(predicate)))

    def syncthreads_or(self, predicate: Any) -> Any:
        return _INT32(any(bool(v) for v in self._sync(predicate)))

    def _pause(self, why: str) -> None:
        Machine(self._run, None, [self._run.thread]).pause(why)

    def _fence(self, scope: str) -> None:
        if self._run.clocks:
            fence(self._run.thread, scope)
        self._pause("threadfence")

    def threadfence(self) -> None:
        self._fence("gpu")

    def threadfence_block(self) -> None:
        self._fence("cta")

    def threadfence_system(self) -> None:
        self._fence("sys")

    def nanosleep(self, ns: Any) -> None:
        self._pause("nanosleep")

    # warps
    def _meet(self, what: str, mask: Any, value: Any) -> dict[int, Any]:
        """The values of all lanes of `mask`, by lane, once all have come."""
        return self._exchange([self._run.thread], what, int(mask) & FULL_MASK, [value])

    @staticmethod
    def _exchange(threads: list[Any], what: str, mask: int, values: list[Any]) -> dict[int, Any]:
        t, run = threads[0], threads[0].cta.cluster.run
        if not mask >> t.lane & 1:
            raise DivergenceError(f"{what}: {who([t])} is not in its own mask {mask:#x}")
        key = (what, mask)
        meet = t.warp.meets.get(key)
        if meet is None:
            meet = t.warp.meets[key] = _Exchange([u for u in t.warp.threads if mask >> u.lane & 1], mask)
        meet.values.update((u.lane, v) for u, v in zip(threads, values))
        if len(meet.values) < len(meet.threads):
            who_waits(run).suspend(what, meet, None)
        else:
            del t.warp.meets[key]
            for tell in t.cta.cluster.run.watch.meets:
                tell(meet.threads)
            t.cta.cluster.wake_others(meet.threads)
            if len(threads) > 1 and len(threads) == len(meet.threads):
                let_others_run(run.thread, what, meet)
        return meet.values  # type: ignore[no-any-return]

    def syncwarp(self, mask: Any = FULL_MASK) -> None:
        c = self._run.thread.clock
        met = self._meet("syncwarp", mask, c and c.snapshot())
        for clock in met.values() if c is not None else ():
            c.base = c.base.join(clock)

    def _shuffle(self, what: str, mask: Any, value: Any, source: int) -> Any:
        value = from_python(value)
        met = self._meet(what, mask, value)
        if source in met or not 0 <= source < 32:
            return met.get(source, value)
        for stand_in in self._run.watch.shuffles:
            value = stand_in(Machine(self._run, None, [self._run.thread]), what, int(mask) & FULL_MASK, source, value)
        return value

    def shfl_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_sync", mask, value, int(lane) & 31)

    def shfl_up_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_up_sync", mask, value, self._run.thread.lane - int(delta))

    def shfl_down_sync(self, mask: Any, value: Any, delta: Any) -> Any:
        return self._shuffle("shfl_down_sync", mask, value, self._run.thread.lane + int(delta))

    def shfl_xor_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        return self._shuffle("shfl_xor_sync", mask, value, self._run.thread.lane ^ int(lane))

    def all_sync(self, mask: Any, predicate: Any) -> Any:
        return truth_of(all(bool(v) for v in self._meet("all_sync", mask, predicate).values()))

    def any_sync(self, mask: Any, predicate: Any) -> Any:
        return truth_of(any(bool(v) for v in self._meet("any_sync", mask, predicate).values()))

    def eq_sync(self, mask: Any, predicate: Any) -> Any:
        return truth_of(len({bool(v) for v in self._meet("eq_sync", mask, predicate).values()}) == 1)

    def ballot_sync(self, mask: Any, predicate: Any) -> Any:
        return lane_mask(sum(1 << lane for lane, v in self._meet("ballot_sync", mask, predicate).items() if v))

    def match_any_sync(self, mask: Any, value: Any) -> Any:
        met = self._meet("match_any_sync", mask, value_of(value))
        return lane_mask(sum(1 << lane for lane, v in met.items() if v == value_of(value)))

    def match_all_sync(self, mask: Any, value: Any) -> tuple[Any, Any]:
        met = self._meet("match_all_sync", mask, value_of(value)).values()
        same = all(v == value_of(value) for v in met)
        return lane_mask(int(mask) & FULL_MASK if same else 0), truth_of(same)

    def lanemask_lt(self) -> Any:
        return _UINT32((1 << self._run.thread.lane) - 1)

    def activemask(self) -> Any:
        """The lane's own bit: which lanes are active together is not defined, and one alone is allowed."""
        for tell in self._run.watch.reads_register:
            tell(Machine(self._run, None, [self._run.thread]), "activemask")
        return _UINT32(1 << self._run.thread.lane)


def truth_of(x: bool) -> Any:
    return TRUE if x else FALSE


def lane_mask(bits: int) -> Any:
    """A mask of lanes, which Numba has as an Int32."""
    return _INT32(wrapped(bits, Int32))
