# SPDX-License-Identifier: Apache-2.0
"""What the lanes of one warp do together. mask: which lanes do, a bit each, an int or a run-time number; all of them
must call it with the same mask, each being in it; the whole warp by default. sm_70 unless said."""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Float32, Int32, Uint32
from ..seam import CuteError, traced
from ..vector import bitcast

FULL_MASK = 0xFFFFFFFF
REDUX = {"add": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}


def _issued(row: str, mask: Any, what: str, *operands: Any, **statics: Any) -> Any:
    """The row for the whole warp, or the one for the lanes of `mask`."""
    if type(mask) is int:
        if not mask & FULL_MASK:
            raise CuteError(f"{what}: mask {mask!r} names no lane; set the bit of each lane that calls it")
        if mask & FULL_MASK == FULL_MASK:
            return getattr(isa, row)(*operands, **statics)
    return getattr(isa, f"{row}_mask")(*operands, Uint32(mask), **statics)


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
    _issued("bar_warp_sync", mask, "sync_warp")


def _shuffle(value: Any, offset: Any, mask: Any, clamp: Any, mode: str) -> Any:
    is_float = seam.current().type_of(value).is_float
    bits = bitcast(Float32(value), Float32, Uint32) if is_float else Uint32(value)
    what = f"shuffle_sync ({mode})"
    got = _issued("shfl_sync", mask, what, bits, Uint32(offset), Uint32(clamp), mode=mode)
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
def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """A word (Uint32) whose bit i is lane i's `pred`. PTX vote.sync.ballot."""
    return _issued("vote_ballot", mask, "vote_ballot_sync", pred)


@traced
def vote_all_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in every lane of `mask`. PTX vote.sync.all."""
    return as_bool(_issued("vote_all", mask, "vote_all_sync", pred))


@traced
def vote_any_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in any lane of `mask`. PTX vote.sync.any."""
    return as_bool(_issued("vote_any", mask, "vote_any_sync", pred))


@traced
def warp_redux_sync(value: Any, kind: str, mask_and_clamp: Any = FULL_MASK) -> Any:
    """The Int32 `value`s of all lanes reduced by `kind`: add, min, max, and, or, xor. mask_and_clamp: the mask.
    PTX redux.sync, sm_80."""
    if kind not in REDUX:
        raise CuteError(f"warp_redux_sync: kind {kind!r} is none of {', '.join(REDUX)}")
    bits = "b32" if kind in ("and", "or", "xor") else "s32"
    return Int32(_issued("redux_sync", mask_and_clamp, "warp_redux_sync", Uint32(value), op=kind, type=bits))


@traced
def vote_uni_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` is the same in every lane of `mask`. PTX vote.sync.uni."""
    return as_bool(_issued("vote_uni", mask, "vote_uni_sync", pred))


@traced
def match_sync(mask: Any, value: Any, kind: str = "any") -> Any:
    """The lanes (Uint32, one bit each) whose 32-bit `value` is this one's; with kind "all", 0 unless all agree.
    PTX match.sync."""
    if kind not in ("any", "all"):
        raise CuteError(f'match_sync: kind {kind!r} must be "any" or "all"')
    if kind == "any":
        return _issued("match_any", mask, "match_sync", Uint32(value))
    return _issued("match_all", mask, "match_sync", Uint32(value))[0]


@traced
def activemask() -> Any:
    """The lanes (Uint32, one bit each) that execute this together; in the simulator the lane's own. Any thread.
    PTX activemask."""
    return isa.activemask()
