# SPDX-License-Identifier: Apache-2.0
"""What the lanes of one warp do together. All 32 lanes must call these, converged."""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Float32, Int32, Uint32
from ..seam import CuteError, traced
from ..vector import bitcast

FULL_MASK = 0xFFFFFFFF
REDUX = {"add": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}


def _whole_warp(mask: Any, what: str) -> None:
    if type(mask) is not int or mask & FULL_MASK != FULL_MASK:
        raise CuteError(f"{what}: mask {mask!r} must be 0xffffffff; part of a warp cannot take part")


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
    """Wait for all 32 lanes; orders their memory accesses. PTX bar.warp.sync."""
    _whole_warp(mask, "sync_warp")
    isa.bar_warp_sync()


def _shuffle(value: Any, offset: Any, mask: Any, clamp: Any, mode: str) -> Any:
    _whole_warp(mask, f"shuffle_sync ({mode})")
    if seam.current().type_of(value).is_float:
        bits = bitcast(Float32(value), Float32, Uint32)
        return bitcast(isa.shfl_sync(bits, Uint32(offset), Uint32(clamp), mode=mode), Uint32, Float32)
    return Int32(isa.shfl_sync(Uint32(value), Uint32(offset), Uint32(clamp), mode=mode))


@traced
def shuffle_sync(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of lane `offset`. All 32 lanes. PTX shfl.sync.idx."""
    return _shuffle(value, offset, mask, mask_and_clamp, "idx")


@traced
def shuffle_sync_up(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 0) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of the lane `offset` before this one (its own where
    there is none). All 32 lanes. PTX shfl.sync.up."""
    return _shuffle(value, offset, mask, mask_and_clamp, "up")


@traced
def shuffle_sync_down(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of the lane `offset` after this one (its own where
    there is none). All 32 lanes. PTX shfl.sync.down."""
    return _shuffle(value, offset, mask, mask_and_clamp, "down")


@traced
def shuffle_sync_bfly(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = 31) -> Any:
    """The 32-bit `value` (an integer, or a Float32) of lane `lane ^ offset`. All 32 lanes. PTX shfl.sync.bfly."""
    return _shuffle(value, offset, mask, mask_and_clamp, "bfly")


@traced
def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """A word (Uint32) whose bit i is lane i's `pred`. All 32 lanes. PTX vote.sync.ballot."""
    _whole_warp(mask, "vote_ballot_sync")
    return isa.vote_ballot(pred)


@traced
def vote_all_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in every lane. All 32 lanes. PTX vote.sync.all."""
    _whole_warp(mask, "vote_all_sync")
    return as_bool(isa.vote_all(pred))


@traced
def vote_any_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` holds in any lane. All 32 lanes. PTX vote.sync.any."""
    _whole_warp(mask, "vote_any_sync")
    return as_bool(isa.vote_any(pred))


@traced
def warp_redux_sync(value: Any, kind: str, mask_and_clamp: Any = FULL_MASK) -> Any:
    """The Int32 `value`s of all lanes reduced by `kind`: add, min, max, and, or, xor. All 32 lanes.
    PTX redux.sync, sm_80."""
    _whole_warp(mask_and_clamp, "warp_redux_sync")
    if kind not in REDUX:
        raise CuteError(f"warp_redux_sync: kind {kind!r} is none of {', '.join(REDUX)}")
    bits = "b32" if kind in ("and", "or", "xor") else "s32"
    return Int32(isa.redux_sync(Uint32(value), op=kind, type=bits))


@traced
def vote_uni_sync(pred: Any, mask: Any = FULL_MASK) -> Any:
    """Whether `pred` is the same in every lane. All 32 lanes. PTX vote.sync.uni."""
    _whole_warp(mask, "vote_uni_sync")
    return as_bool(isa.vote_uni(pred))


@traced
def match_sync(mask: Any, value: Any, kind: str = "any") -> Any:
    """The lanes (Uint32, one bit each) whose 32-bit `value` is this one's; with kind "all", 0 unless all agree. All 32
    lanes. PTX match.sync."""
    _whole_warp(mask, "match_sync")
    if kind not in ("any", "all"):
        raise CuteError(f'match_sync: kind {kind!r} must be "any" or "all"')
    if kind == "any":
        return isa.match_any(Uint32(value))
    return isa.match_all(Uint32(value))[0]


@traced
def activemask() -> Any:
    """The lanes (Uint32, one bit each) that execute this together; in the simulator the lane's own. Any thread.
    PTX activemask."""
    return isa.activemask()
