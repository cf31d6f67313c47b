# SPDX-License-Identifier: Apache-2.0
"""What the lanes of one warp do together. mask: which lanes do, a bit each, an int or a run-time number; all of them
must call it with the same mask, each being in it; the whole warp by default. sm_70 unless said."""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Float32, Int32, Uint32, Uint64
from ..seam import CuteError, traced
from ..tensor.ssa import bitcast

FULL_MASK = 0xFFFFFFFF
REDUX = {
    **{op: (op, "s32") for op in ("add", "min", "max")},
    **{op: (op, "b32") for op in ("and", "or", "xor")},
    "umin": ("min", "u32"),
    "umax": ("max", "u32"),
}
"""Of each kind of reduction of integers the operation and its type."""
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
    """A predicate that an instruction gave (0 or 1) as a bool."""
    return seam.current().compare("!=", x, 0)


@traced
def elect_one() -> Any:
    """True in exactly one lane of the warp, always the same one: `if cute.arch.elect_one(): …`.

    All 32 lanes, converged. PTX elect.sync, sm_90."""
    return as_bool(isa.elect_sync())


@traced
def make_warp_uniform(value: Any) -> Any:
    """`value` of lane 0, in all lanes: tells the compiler that an index is the same in the whole warp.

    All 32 lanes. PTX shfl.sync.idx."""
    return Int32(isa.shfl_sync(Uint32(value), Uint32(0), Uint32(31), mode="idx"))


@traced
def sync_warp(mask: Any = FULL_MASK) -> None:
    """Wait for the lanes of `mask`; orders their memory accesses. PTX bar.warp.sync."""
    isa.bar_warp_sync(_members(mask, "sync_warp"))


def _shuffle(value: Any, offset: Any, mask: Any, clamp: Any, mode: str) -> Any:
    is_float = seam.current().type_of(value).is_float
    bits = bitcast(Float32(value), Float32, Uint32) if is_float else Uint32(value)
    members = _members(mask, f"shuffle_sync ({mode})")
    got = isa.shfl_sync(bits, Uint32(offset), Uint32(clamp), members, mode=mode)
    return bitcast(got, Uint32, Float32) if is_float else Int32(got)


@traced
def shuffle_sync(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of lane `offset` (undefined if it is not in `mask`).
    PTX shfl.sync.idx."""
    return _shuffle(value, offset, mask, mask_and_clamp, "idx")


@traced
def shuffle_sync_up(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 0) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of the lane `offset` before this one (its own where
    there is none). PTX shfl.sync.up."""
    return _shuffle(value, offset, mask, mask_and_clamp, "up")


@traced
def shuffle_sync_down(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of the lane `offset` after this one (its own where
    there is none). PTX shfl.sync.down."""
    return _shuffle(value, offset, mask, mask_and_clamp, "down")


@traced
def shuffle_sync_bfly(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of lane `lane ^ offset`. PTX shfl.sync.bfly."""
    return _shuffle(value, offset, mask, mask_and_clamp, "bfly")


@traced
def shuffle_sync_op(
    value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31, kind: str = "idx"
) -> Any:  # fmt: skip
    """The 32-bit `value` of another lane: kind "idx" (`shuffle_sync`), "up", "down" or "bfly". PTX shfl.sync."""
    if kind not in _SHUFFLES:
        raise CuteError(f"shuffle_sync_op: kind {kind!r} is none of {', '.join(map(repr, _SHUFFLES))}")
    return _shuffle(value, offset, mask, mask_and_clamp, kind)


@traced
def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """A word (Uint32) whose bit i is lane i's `pred`. PTX vote.sync.ballot."""
    return isa.vote_ballot(pred, _members(mask, "vote_ballot_sync"))


@traced
def vote_all_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in every lane of `mask`. PTX vote.sync.all."""
    return as_bool(isa.vote_all(pred, _members(mask, "vote_all_sync")))


@traced
def vote_any_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in any lane of `mask`. PTX vote.sync.any."""
    return as_bool(isa.vote_any(pred, _members(mask, "vote_any_sync")))


@traced
def warp_redux_sync(
    value: Any, kind: str, mask_and_clamp: Any = FULL_MASK, abs: bool | None = None, nan: bool | None = None
) -> Any:
    """The `value`s of all lanes reduced by `kind`: of integers add, min, max (as Int32), umin, umax (as Uint32), and,
    or, xor; of Float32 fmin (or min), fmax (or max), of magnitudes with `abs`, with `nan` NaN if any is.
    mask_and_clamp: the mask. PTX redux.sync, sm_80; of floats sm_100f."""
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
        raise CuteError(f"{what}: threads_in_group {threads!r} must be a static power of two, at most 32")
    return threads


def _reduced(value: Any, op: Any, threads: Any, what: str) -> Any:
    """All lanes of a group get the same: halves of it exchange their values again and again."""
    offset = _group(threads, what) // 2
    while offset:
        value = op(value, shuffle_sync_bfly(value, offset))
        offset //= 2
    return value


@traced
def warp_reduction(val: Any, op: Any, threads_in_group: int = 32) -> Any:
    """`op(a, b)` (a cute.traced function or operator of two numbers) over the 32-bit `val`s of each `threads_in_group`
    (a power of two) lanes next to each other; each gets the result. All 32 lanes. PTX shfl.sync.bfly."""
    return _reduced(val, op, threads_in_group, "warp_reduction")


def _greater(a: Any, b: Any) -> Any:
    backend = seam.current()
    if backend.type_of(a).is_float:
        return isa.extreme_f32(Float32(a), Float32(b), op="max", ftz=False)
    return backend.select(backend.compare(">", a, b), a, b)


@traced
def warp_reduction_max(val: Any, threads_in_group: int = 32) -> Any:
    """The greatest 32-bit `val` (an integer, or a Float32) of each `threads_in_group` lanes. All 32 lanes. PTX
    shfl.sync.bfly."""
    return _reduced(val, _greater, threads_in_group, "warp_reduction_max")


@traced
def warp_reduction_sum(val: Any, threads_in_group: int = 32) -> Any:
    """The sum of the 32-bit `val`s (integers, or Float32) of each `threads_in_group` lanes. All 32 lanes. PTX
    shfl.sync.bfly."""
    return _reduced(val, lambda a, b: a + b, threads_in_group, "warp_reduction_sum")


@traced
def vote_uni_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` is the same in every lane of `mask`. PTX vote.sync.uni."""
    return as_bool(isa.vote_uni(pred, _members(mask, "vote_uni_sync")))


@traced
def match_sync(mask: Any, value: Any, kind: str = "any", width: int = 32) -> Any:
    """The lanes (Uint32, one bit each) whose `value` of `width` (32, 64) bits is this one's; with kind "all", 0 unless
    all agree. PTX match.sync."""
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
    """The lanes (Uint32, one bit each) that execute this together; in the simulator the lane's own. Any thread.
    PTX activemask."""
    return isa.activemask()
