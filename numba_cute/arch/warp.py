# SPDX-License-Identifier: Apache-2.0
"""Cooperation between the lanes of one warp.

mask: the lanes that take part, one bit each, as an int or a run-time number; every lane of the mask must make the call,
with the same mask. The default is the whole warp. Targets are sm_70 unless stated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import isa, seam
from ..dtypes import Float32, Int32, Scalar, Uint32, Uint64
from ..seam import CuteError, Int, Number, traced
from ..seam.guards.messages import how_static
from ..tensor.ssa import bitcast

__all__ = [
    "FULL_MASK", "activemask", "elect_one", "make_warp_uniform", "match_sync", "shuffle_sync", "shuffle_sync_bfly",
    "shuffle_sync_down", "shuffle_sync_op", "shuffle_sync_up", "sync_warp", "vote_all_sync", "vote_any_sync",
    "vote_ballot_sync", "vote_uni_sync", "warp_reduction", "warp_reduction_max", "warp_reduction_sum",
    "warp_redux_sync",
]  # fmt: skip

FULL_MASK = 0xFFFFFFFF
REDUX = {
    **{op: (op, "s32") for op in ("add", "min", "max")},
    **{op: (op, "b32") for op in ("and", "or", "xor")},
    "umin": ("min", "u32"),
    "umax": ("max", "u32"),
}
"""The operation and the type of each kind of reduction of integers."""
_SHUFFLES = ("idx", "up", "down", "bfly")


def _members(mask: Any, what: str) -> Any:
    """The operand that names the lanes of `mask`: None for the whole warp."""
    if type(mask) is int:
        if not mask & FULL_MASK:
            raise CuteError(f"{what}: mask {mask!r} names no lane; set the bit of each lane that calls it")
        if mask & FULL_MASK == FULL_MASK:
            return None
    return Uint32(mask)


def as_bool(x: Any) -> Any:
    """Turn a predicate that an instruction gave (`x`, 0 or 1) into a bool."""
    return seam.current().compare("!=", x, 0)


@traced
def elect_one() -> Any:
    """Elect one lane of the warp, always the same one: True there, False elsewhere, as in `if cute.arch.elect_one():
    …`. All 32 lanes, converged. PTX elect.sync, sm_90.

    >>> def kernel():
    ...     if arch.elect_one():
    ...         print(arch.thread_idx()[0])
    >>> cute.simulate(kernel)[1, 64]()
    0
    32
    """
    return as_bool(isa.elect_sync())


@traced
def make_warp_uniform(value: Number) -> Int32:
    """Broadcast `value` (an integer of 32 bits) from lane 0, so that the compiler knows it to be the same in the whole
    warp. All 32 lanes. PTX shfl.sync.idx, sm_70.

    >>> cute.simulate(lambda: print(arch.make_warp_uniform(arch.warp_idx())))[1, 1]()
    0
    """
    return Int32(isa.shfl_sync(Uint32(value), Uint32(0), Uint32(31), mode="idx"))


@traced
def sync_warp(mask: Int = FULL_MASK) -> None:
    """Wait for the lanes of `mask` (by default the warp), and order their memory accesses. PTX bar.warp.sync, sm_70.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     if arch.lane_idx() == 0:
    ...         arch.store(place, cute.Int32(7))
    ...     arch.sync_warp()
    ...     if arch.lane_idx() == 31:
    ...         print(arch.load(place, cute.Int32))
    >>> cute.simulate(kernel)[1, 32]()
    7
    """
    isa.bar_warp_sync(_members(mask, "sync_warp"))


def _shuffle(value: Any, offset: Any, mask: Any, clamp: Any, mode: str) -> Any:
    is_float = seam.current().type_of(value).is_float
    bits = bitcast(Float32(value), Float32, Uint32) if is_float else Uint32(value)
    members = _members(mask, f"shuffle_sync ({mode})")
    got = isa.shfl_sync(bits, Uint32(offset), Uint32(clamp), members, mode=mode)
    return bitcast(got, Uint32, Float32) if is_float else Int32(got)


@traced
def shuffle_sync(value: Number, offset: Int, mask: Int = FULL_MASK, mask_and_clamp: Int = 31) -> Any:
    """Read `value` of another lane. The lanes of `mask`, together.

    value: 32 bits, an integer (the result is an Int32) or a Float32. offset: the lane to read, 0 to 31; the result is
    undefined if `mask` lacks it. mask: a bit for each lane that takes part. mask_and_clamp: PTX's operand c, which
    splits the warp into segments: the segment mask in bits 8 to 12, the last lane in bits 0 to 4. PTX shfl.sync.idx,
    sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.shuffle_sync(arch.lane_idx(), 5)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([5, 5, 5, 5], dtype=int32)
    """
    return _shuffle(value, offset, mask, mask_and_clamp, "idx")


@traced
def shuffle_sync_up(value: Number, offset: Int, mask: Int = FULL_MASK, mask_and_clamp: Int = 0) -> Any:
    """Read `value` of the lane that stands `offset` before this one; its own where there is none. mask and
    mask_and_clamp: as for `shuffle_sync`; the clamp is here the first lane. PTX shfl.sync.up, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.shuffle_sync_up(arch.lane_idx(), 1)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([0, 0, 1, 2], dtype=int32)
    """
    return _shuffle(value, offset, mask, mask_and_clamp, "up")


@traced
def shuffle_sync_down(value: Number, offset: Int, mask: Int = FULL_MASK, mask_and_clamp: Int = 31) -> Any:
    """Read `value` of the lane that stands `offset` after this one; its own where there is none. mask and
    mask_and_clamp: as for `shuffle_sync`. PTX shfl.sync.down, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.shuffle_sync_down(arch.lane_idx(), 1)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([1, 2, 3, 4], dtype=int32)
    """
    return _shuffle(value, offset, mask, mask_and_clamp, "down")


@traced
def shuffle_sync_bfly(value: Number, offset: Int, mask: Int = FULL_MASK, mask_and_clamp: Int = 31) -> Any:
    """Read `value` of lane `lane ^ offset`. mask and mask_and_clamp: as for `shuffle_sync`. PTX shfl.sync.bfly,
    sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.shuffle_sync_bfly(arch.lane_idx(), 1)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([1, 0, 3, 2], dtype=int32)
    """
    return _shuffle(value, offset, mask, mask_and_clamp, "bfly")


@traced
def shuffle_sync_op(
    value: Number, offset: Int, mask: Int = FULL_MASK, mask_and_clamp: Int = 31, kind: str = "idx"
) -> Any:  # fmt: skip
    """Read `value` of the lane that `kind` and `offset` name: "idx" as `shuffle_sync`, "up", "down" or "bfly" as the
    functions of those names, with their `mask` and `mask_and_clamp`. PTX shfl.sync, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.shuffle_sync_op(arch.lane_idx(), 1, kind="bfly")
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([1, 0, 3, 2], dtype=int32)
    """
    if kind not in _SHUFFLES:
        raise CuteError(f"shuffle_sync_op: kind {kind!r} is none of {', '.join(map(repr, _SHUFFLES))}")
    return _shuffle(value, offset, mask, mask_and_clamp, kind)


@traced
def vote_ballot_sync(pred: Int, mask: Int = FULL_MASK) -> Any:
    """Collect a predicate of the lanes of `mask` in a word (Uint32): bit i is lane i's `pred`, a bool. PTX
    vote.sync.ballot, sm_70.

    >>> seen = np.zeros(32, np.uint32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.vote_ballot_sync(arch.lane_idx() < 3)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([7, 7, 7, 7], dtype=uint32)
    """
    return isa.vote_ballot(pred, _members(mask, "vote_ballot_sync"))


@traced
def vote_all_sync(pred: Int, mask: Int = FULL_MASK) -> Any:
    """Return whether `pred`, a bool, holds in every lane of `mask`. PTX vote.sync.all, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.vote_all_sync(arch.lane_idx() < 3)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([0, 0, 0, 0], dtype=int32)
    """
    return as_bool(isa.vote_all(pred, _members(mask, "vote_all_sync")))


@traced
def vote_any_sync(pred: Int, mask: Int = FULL_MASK) -> Any:
    """Return whether `pred`, a bool, holds in any lane of `mask`. PTX vote.sync.any, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.vote_any_sync(arch.lane_idx() < 3)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([1, 1, 1, 1], dtype=int32)
    """
    return as_bool(isa.vote_any(pred, _members(mask, "vote_any_sync")))


@traced
def warp_redux_sync(
    value: Number, kind: str, mask_and_clamp: Int = FULL_MASK, abs: bool | None = None, nan: bool | None = None
) -> Any:
    """Reduce `value` over the lanes of the warp; every lane gets the result.

    value: an integer of 32 bits or a Float32. kind: of integers "add", "min", "max" (Int32), "umin", "umax" (Uint32),
    "and", "or", "xor"; of floats "fmin" (or "min"), "fmax" (or "max"). mask_and_clamp: the mask of the lanes that take
    part. abs: compare magnitudes; nan: give NaN if any value is one; both of floats alone. PTX redux.sync, sm_80; of
    floats sm_100f.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.warp_redux_sync(arch.lane_idx(), "add")
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([496, 496, 496, 496], dtype=int32)
    """
    what = "warp_redux_sync"
    if seam.current().type_of(value).is_float or kind in ("fmin", "fmax"):
        op = kind.removeprefix("f")
        if op not in ("min", "max"):
            raise CuteError(f"{what}: kind {kind!r} of a float must be fmin or fmax")
        members = _members(mask_and_clamp, what)
        return isa.redux_sync_f32(Float32(value), members, op=op, abs=bool(abs), nan=bool(nan))
    if kind not in REDUX:
        raise CuteError(f"{what}: kind {kind!r} is none of {', '.join(REDUX)}, fmin, fmax")
    if abs or nan:
        raise CuteError(f"{what}: abs and nan are for floats")
    op, type = REDUX[kind]
    got = isa.redux_sync(Uint32(value), _members(mask_and_clamp, what), op=op, type=type)
    return Uint32(got) if type == "u32" else Int32(got)


def _group(threads: Any, what: str) -> int:
    if type(threads) is not int or threads not in (1, 2, 4, 8, 16, 32):
        raise CuteError(
            f"{what}: threads_in_group {threads!r} must be a static power of two, at most 32{how_static(threads)}"
        )
    return threads


def _reduced(value: Any, op: Any, threads: Any, what: str) -> Any:
    """All lanes of a group get the same: halves of it exchange their values again and again."""
    if not callable(op):
        raise CuteError(f"{what}: op {op!r} is not a function of two values, such as lambda a, b: a + b")
    offset = _group(threads, what) // 2
    if isinstance(value, (Scalar, np.generic)):  # of the host: no number of this kernel's
        value = seam.current().type_of(value)(value)
    while offset:
        value = op(value, shuffle_sync_bfly(value, offset))
        offset //= 2
    return value


@traced
def warp_reduction(val: Number, op: Any, threads_in_group: int = 32) -> Any:
    """Reduce `val` over each group of neighbouring lanes; every lane gets its group's result. All 32 lanes.

    val: 32 bits. op: a cute.traced function or operator of two numbers, `op(a, b)`. threads_in_group: lanes of a group,
    a static power of two up to 32. PTX shfl.sync.bfly, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.warp_reduction(arch.lane_idx(), lambda a, b: a + b, 4)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([6, 6, 6, 6], dtype=int32)
    """
    return _reduced(val, op, threads_in_group, "warp_reduction")


def _greater(a: Any, b: Any) -> Any:
    backend = seam.current()
    if backend.type_of(a).is_float:
        return isa.extreme_f32(Float32(a), Float32(b), op="max", ftz=False)
    return backend.select(backend.compare(">", a, b), a, b)


@traced
def warp_reduction_max(val: Number, threads_in_group: int = 32) -> Any:
    """Find the greatest `val`, an integer of 32 bits or a Float32, of each group of `threads_in_group` neighbouring
    lanes (a static power of two up to 32); every lane gets it. All 32 lanes. PTX shfl.sync.bfly, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.warp_reduction_max(arch.lane_idx())
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([31, 31, 31, 31], dtype=int32)
    """
    return _reduced(val, _greater, threads_in_group, "warp_reduction_max")


@traced
def warp_reduction_sum(val: Number, threads_in_group: int = 32) -> Any:
    """Add `val`, an integer of 32 bits or a Float32, over each group of `threads_in_group` neighbouring lanes (a static
    power of two up to 32); every lane gets the sum. All 32 lanes. PTX shfl.sync.bfly, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.warp_reduction_sum(arch.lane_idx())
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([496, 496, 496, 496], dtype=int32)
    """
    return _reduced(val, lambda a, b: a + b, threads_in_group, "warp_reduction_sum")


@traced
def vote_uni_sync(pred: Int, mask: Int = FULL_MASK) -> Any:
    """Return whether `pred`, a bool, is the same in every lane of `mask`. PTX vote.sync.uni, sm_70.

    >>> seen = np.zeros(32, np.int32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.vote_uni_sync(arch.lane_idx() < 32)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([1, 1, 1, 1], dtype=int32)
    """
    return as_bool(isa.vote_uni(pred, _members(mask, "vote_uni_sync")))


@traced
def match_sync(mask: Int, value: Number, kind: str = "any", width: int = 32) -> Any:
    """Find the lanes of `mask` that hold the same `value` as this one: a word (Uint32) with a bit for each.

    value: an integer of `width` bits, 32 or 64. kind: "any"; or "all", which gives 0 unless all lanes agree. PTX
    match.sync, sm_70.

    >>> seen = np.zeros(32, np.uint32)
    >>> def kernel(x):
    ...     x[arch.lane_idx()] = arch.match_sync(0xFFFFFFFF, arch.lane_idx() // 16)
    >>> cute.simulate(kernel)[1, 32](seen)
    >>> seen[:4]
    array([65535, 65535, 65535, 65535], dtype=uint32)
    """
    if kind not in ("any", "all"):
        raise CuteError(f'match_sync: kind {kind!r} must be "any" or "all"')
    if width not in (32, 64):
        raise CuteError(f"match_sync: width {width!r} must be 32 or 64")
    word, members = Uint32(value) if width == 32 else Uint64(value), _members(mask, "match_sync")
    if kind == "any":
        return isa.match_any(word, members, width=width)
    return isa.match_all(word, members, width=width)[0]


@traced
def activemask() -> Any:
    """Return the lanes that execute this together, one bit each (Uint32); in the simulator the lane's own bit alone.
    Any thread. PTX activemask, sm_70.

    >>> cute.simulate(lambda: cute.printf("{}", arch.activemask()))[1, 3]()
    1
    2
    4
    """
    return isa.activemask()
