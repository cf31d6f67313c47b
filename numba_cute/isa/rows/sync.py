# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Barriers of a CTA, warp and cluster, and exchanges within a warp.

membermask: the lanes that take part, a bit each; all of them give it alike, each being in it. Without it all 32 lanes
take part."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.instr import ACQUIRE, RELAXED, RELEASE, SAME, WARP, WARPS, instr
from ..form.kinds import choice, f32, lane_mask, number, optional, out, pred, same, selector, u32, u64
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions"
_SHFL = "data-movement-and-conversion-instructions-shfl-sync"
_MASK = "<membermask:$membermask|0xffffffff>"
_MEMBERS = optional(same(lane_mask))
_UNDEFINED = 0xA5A5A5A5
"""The simulator's value for a lane that is not in the mask."""


def _named(m: Machine, membermask: Any) -> Any:
    """Give the lanes of a warp that take part; those beyond the end of the CTA are not there."""
    return np.flatnonzero((0xFFFFFFFF if membermask is None else int(membermask)) >> np.arange(32) & 1)[: m.lanes]


def _by_warps(m: Machine, membermask: Any, values: Any) -> Any:
    """Give an operand of the lanes that take part, a warp in each row."""
    return np.asarray(values).reshape(-1, len(_named(m, membermask)))


def _to_lanes(m: Machine, of_warps: Any) -> Any:
    """Give the lanes of each warp what its warp has."""
    return np.repeat(of_warps, m.lanes // len(of_warps))


@instr("elect.sync _|$elected, 0xffffffff;", target="sm_90", issuer=WARP, lanes=WARPS, ref=f"{_REF}-elect-sync")
def elect_sync(m: Machine, elected: out(pred)) -> Any:
    """1 in one lane of the warp, always the same one, 0 in the others. All 32 lanes."""
    return (np.arange(m.lanes) % 32 == m.elected).astype(np.uint32)


@instr("barrier.cta.sync.aligned $id<threads:, $threads>;", target="sm_70", issuer=WARP, lanes=SAME, ref=f"{_REF}-bar")
def bar_sync(m: Machine, id: same(selector), threads: optional(same(number))) -> None:
    """Arrive at the CTA's named barrier `id` (0 to 15; 0 is `__syncthreads`) and wait until `threads` threads (a
    multiple of 32), or all of the CTA, have arrived; orders their memory accesses. Whole warps, all lanes together."""
    m.barrier(id, threads, True)


@instr("barrier.cta.arrive.aligned $id, $threads;", target="sm_70", issuer=WARP, lanes=SAME, ref=f"{_REF}-bar")
def bar_arrive(m: Machine, id: same(selector), threads: same(number)) -> None:
    """Arrive at the CTA's named barrier `id` without waiting; `threads` counts those that arrive and those that
    `bar_sync`. Whole warps, all lanes together."""
    m.barrier(id, threads, False)


@instr("barrier.cta.sync $id, $threads;", target="sm_70", lanes=SAME, ref=f"{_REF}-bar")
def barrier_cta_sync(m: Machine, id: selector, threads: number) -> None:
    """`bar_sync` for threads of a warp that need not execute it together. Any thread."""
    m.barrier(id, threads, True)


@instr("barrier.cta.arrive $id, $threads;", target="sm_70", lanes=SAME, ref=f"{_REF}-bar")
def barrier_cta_arrive(m: Machine, id: selector, threads: number) -> None:
    """`bar_arrive` for threads of a warp that need not execute it together. Any thread."""
    m.barrier(id, threads, False)


@instr(f"bar.warp.sync {_MASK};", target="sm_70", issuer=WARP, ref=f"{_REF}-bar-warp-sync")
def bar_warp_sync(m: Machine, membermask: _MEMBERS) -> None:
    """Wait for the lanes of `membermask`; orders their memory accesses. Those lanes."""
    m.meet()


_ARRIVALS: list[dict[str, Any]] = [{"sem": RELEASE}, {"sem": RELAXED}]


@instr("barrier.cluster.arrive.{sem}.aligned;", target="sm_90", issuer=WARP, lanes=SAME, scope="cluster",
       over=_ARRIVALS, defaults={"sem": RELEASE}, ref=f"{_REF}-barrier-cluster")  # fmt: skip
def cluster_arrive(m: Machine) -> None:
    """Arrive at the cluster's barrier, releasing memory accesses at cluster scope; with sem "relaxed" ordering none: a
    fence must come before it if that matters. All threads of all CTAs, each once, and then `cluster_wait`; whole
    warps."""
    m.cluster_arrive()


@instr("barrier.cluster.arrive.{sem};", target="sm_90", lanes=SAME, scope="cluster", over=_ARRIVALS,
       defaults={"sem": RELEASE}, ref=f"{_REF}-barrier-cluster")  # fmt: skip
def cluster_arrive_unaligned(m: Machine) -> None:
    """`cluster_arrive` for threads of a warp that need not execute it together. Any thread."""
    m.cluster_arrive()


@instr("barrier.cluster.wait.acquire.aligned;", target="sm_90", issuer=WARP, lanes=SAME, sem=ACQUIRE, scope="cluster",
       ref=f"{_REF}-barrier-cluster")  # fmt: skip
def cluster_wait(m: Machine) -> None:
    """Wait until all threads of the cluster have arrived; acquires at cluster scope. All that arrived; whole warps."""
    m.cluster_wait()


def _source(lane: Any, offset: Any, clamp: Any, mode: str) -> Any:
    """The lane that each of `lane` reads, or itself where that is out of its segment (PTX ISA, "shfl.sync")."""
    b = np.asarray(offset, np.int64) & 31
    c = np.asarray(clamp, np.int64)
    segment = (c >> 8) & 31
    last = (lane & segment) | (c & 31 & ~segment)
    j = {
        "up": lane - b,
        "down": lane + b,
        "bfly": lane ^ b,
        "idx": (lane & segment) | (b & ~segment),
    }[mode]
    inside = j >= last if mode == "up" else j <= last
    return np.where(inside, j, lane)


@instr("shfl.sync.{mode}.b32 $got, $value, $offset, $clamp, " + _MASK + ";", target="sm_70",
       issuer=WARP, lanes=WARPS, ref=_SHFL, over=[{"mode": s} for s in ("idx", "up", "down", "bfly")])  # fmt: skip
def shfl_sync(
    m: Machine, value: u32, offset: selector, clamp: selector, membermask: _MEMBERS, got: out(u32), *, mode: str
) -> Any:
    """The `value` of another lane: `offset` itself (idx), lane - offset (up), lane + offset (down), lane ^ offset
    (bfly); that of a lane not in `membermask` is undefined. clamp: bits 0 to 4 the last lane (31; 0 for up), bits 8 to
    12 the segment mask (0: the whole warp). A lane that would read beyond gets its own value. Those lanes."""
    lanes, own = _named(m, membermask), _by_warps(m, membermask, value)
    values = np.full((len(own), 32), _UNDEFINED, np.uint32)
    values[:, lanes] = own
    source = _source(np.tile(lanes, len(own)), offset, clamp, mode)
    return values.ravel()[source + np.repeat(np.arange(0, values.size, 32), len(lanes))]


@instr(
    "vote.sync.ballot.b32 $lanes, $flag, " + _MASK + ";",
    target="sm_70",
    issuer=WARP,
    lanes=WARPS,
    ref=f"{_REF}-vote-sync",
)
def vote_ballot(m: Machine, flag: pred, membermask: _MEMBERS, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i of `membermask` passed a true `flag`. Those lanes."""
    flags = _by_warps(m, membermask, flag).astype(bool).astype(np.uint64)
    return _to_lanes(m, (flags << _named(m, membermask).astype(np.uint64)).sum(1).astype(np.uint32))


@instr(
    "vote.sync.all.pred $result, $flag, " + _MASK + ";",
    target="sm_70",
    issuer=WARP,
    lanes=WARPS,
    ref=f"{_REF}-vote-sync",
)
def vote_all(m: Machine, flag: pred, membermask: _MEMBERS, result: out(pred)) -> Any:
    """True if every lane of `membermask` passed a true `flag`. Those lanes."""
    return _to_lanes(m, _by_warps(m, membermask, flag).astype(bool).all(1).astype(np.uint32))


@instr(
    "vote.sync.any.pred $result, $flag, " + _MASK + ";",
    target="sm_70",
    issuer=WARP,
    lanes=WARPS,
    ref=f"{_REF}-vote-sync",
)
def vote_any(m: Machine, flag: pred, membermask: _MEMBERS, result: out(pred)) -> Any:
    """True if any lane of `membermask` passed a true `flag`. Those lanes."""
    return _to_lanes(m, _by_warps(m, membermask, flag).astype(bool).any(1).astype(np.uint32))


@instr(
    "vote.sync.uni.pred $result, $flag, " + _MASK + ";",
    target="sm_70",
    issuer=WARP,
    lanes=WARPS,
    ref=f"{_REF}-vote-sync",
)
def vote_uni(m: Machine, flag: pred, membermask: _MEMBERS, result: out(pred)) -> Any:
    """True if all lanes of `membermask` passed the same `flag`. Those lanes."""
    flags = _by_warps(m, membermask, flag).astype(bool)
    return _to_lanes(m, (flags == flags[:, :1]).all(1).astype(np.uint32))


_UFUNCS: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}
_UFUNCS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@instr("redux.sync.{op}.{type} $result, $value, " + _MASK + ";", target="sm_80",
       issuer=WARP, lanes=WARPS, ref=f"{_REF}-redux-sync",
       over=[{"op": op, "type": t} for op in ("add", "min", "max") for t in ("s32", "u32")]
       + [{"op": op, "type": "b32"} for op in ("and", "or", "xor")])  # fmt: skip
def redux_sync(m: Machine, value: u32, membermask: _MEMBERS, result: out(u32), *, op: str, type: str) -> Any:
    """The `value`s of the lanes of `membermask` reduced: add (modulo 2^32), min, max (as s32 or u32), and, or, xor.
    Those lanes."""
    dtype = np.int32 if type == "s32" else np.uint32
    words = _by_warps(m, membermask, np.asarray(value).astype(np.int64).astype(np.uint32).view(dtype))
    return _to_lanes(m, _UFUNCS[op].reduce(words, axis=1, dtype=dtype)).view(np.uint32)


def _reduced_floats(values: Any, op: str, abs: bool, nan: bool) -> Any:
    """The least or greatest f32, as redux.sync has it: a NaN counts only with `nan`, +0 is more than -0."""
    x = np.asarray(values, np.float32)
    x = np.abs(x) if abs else x
    if np.isnan(x).all() or (nan and np.isnan(x).any()):
        return np.float32(np.nan)
    x = x[~np.isnan(x)]
    ordered = x[np.lexsort((~np.signbit(x), x))]  # of zeros the negative ones first
    return ordered[0 if op == "min" else -1]


@instr("redux.sync.{op}<abs:.abs><nan:.NaN>.f32 $result, $value, " + _MASK + ";", target="sm_100f",
       issuer=WARP, lanes=WARPS,
       over=[{"op": op, "abs": a, "nan": n} for op in ("min", "max") for a in (False, True) for n in (False, True)],
       defaults={"abs": False, "nan": False},
       ref=f"{_REF}-redux-sync")  # fmt: skip
def redux_sync_f32(
    m: Machine, value: f32, membermask: _MEMBERS, result: out(f32), *, op: str, abs: bool, nan: bool
) -> Any:
    """The least or greatest of the `value`s of the lanes of `membermask` (op "min", "max"), of their magnitudes with
    `abs`; with `nan` NaN if any is. Those lanes."""
    found = [_reduced_floats(own, op, abs, nan) for own in _by_warps(m, membermask, value)]
    return _to_lanes(m, np.array(found, np.float32))


_WORD = choice("width", {32: u32, 64: u64})
_WIDTHS = [{"width": w} for w in (32, 64)]


@instr("match.any.sync.b{width} $lanes, $value, " + _MASK + ";", target="sm_70", issuer=WARP, lanes=WARPS, over=_WIDTHS,
       ref=f"{_REF}-match-sync")  # fmt: skip
def match_any(m: Machine, value: _WORD, membermask: _MEMBERS, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i of `membermask` passed the same `value` as this one. Those lanes."""
    values = _by_warps(m, membermask, value)
    same = (values[:, :, None] == values[:, None, :]).astype(np.uint64)
    return (same << _named(m, membermask).astype(np.uint64)).sum(2).astype(np.uint32).ravel()


@instr("match.all.sync.b{width} $lanes|$agreed, $value, " + _MASK + ";", target="sm_70",
       issuer=WARP, lanes=WARPS, over=_WIDTHS, ref=f"{_REF}-match-sync")  # fmt: skip
def match_all(m: Machine, value: _WORD, membermask: _MEMBERS, lanes: out(u32), agreed: out(pred)) -> Any:
    """(membermask, 1) if all its lanes passed the same `value`, else (0, 0). Those lanes."""
    values = _by_warps(m, membermask, value)
    same = _to_lanes(m, (values == values[:, :1]).all(1).astype(np.uint32))
    mask = np.uint32(0xFFFFFFFF if membermask is None else int(membermask))
    return same * mask, same


@instr("activemask.b32 $lanes;", target="sm_70", ref=f"{_REF}-activemask")
def activemask(m: Machine, lanes: out(u32)) -> int:
    """A word with the bits of the lanes that execute this together set. The simulator runs lanes one by one: there it
    is the lane's own bit. Any thread."""
    return m.sreg("activemask")  # type: ignore[no-any-return]
