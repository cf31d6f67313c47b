# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Barriers of a CTA, warp and cluster, and exchanges within a warp. Warp instructions take all 32 lanes; those for some
of them are in `masked`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.instr import SAME, WARP, f32, instr, out, pred, u32, u64
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions"
MODES = [{"mode": s} for s in ("idx", "up", "down", "bfly")]


@instr("elect.sync _|$elected, 0xffffffff;", target="sm_90", issuer=WARP, ref=f"{_REF}-elect-sync")
def elect_sync(m: Machine, elected: out(pred)) -> Any:
    """1 in one lane of the warp, always the same one, 0 in the others. All 32 lanes."""
    return (np.arange(m.lanes) == 0).astype(np.uint32)


@instr("barrier.cta.sync.aligned $id, $threads;", target="sm_70", issuer=WARP, ref=f"{_REF}-bar")
def bar_sync(m: Machine, id: u32, threads: u32) -> None:
    """Arrive at the CTA's named barrier `id` (0 to 15; 0 is `__syncthreads`) and wait until `threads` threads (a
    multiple of 32) have arrived; orders their memory accesses. Whole warps, all lanes together."""
    m.barrier(m.uniform(id), m.uniform(threads), True)


@instr("barrier.cta.sync.aligned $id;", target="sm_70", issuer=WARP, ref=f"{_REF}-bar")
def bar_sync_all(m: Machine, id: u32) -> None:
    """`bar_sync` of all threads of the CTA, however many there are."""
    m.barrier(m.uniform(id), None, True)


@instr("barrier.cta.arrive.aligned $id, $threads;", target="sm_70", issuer=WARP, ref=f"{_REF}-bar")
def bar_arrive(m: Machine, id: u32, threads: u32) -> None:
    """Arrive at the CTA's named barrier `id` without waiting; `threads` counts those that arrive and those that
    `bar_sync`. Whole warps, all lanes together."""
    m.barrier(m.uniform(id), m.uniform(threads), False)


@instr("barrier.cta.sync $id, $threads;", target="sm_70", lanes=SAME, ref=f"{_REF}-bar")
def barrier_cta_sync(m: Machine, id: u32, threads: u32) -> None:
    """`bar_sync` for threads of a warp that need not execute it together. Any thread."""
    m.barrier(id, threads, True)


@instr("barrier.cta.arrive $id, $threads;", target="sm_70", lanes=SAME, ref=f"{_REF}-bar")
def barrier_cta_arrive(m: Machine, id: u32, threads: u32) -> None:
    """`bar_arrive` for threads of a warp that need not execute it together. Any thread."""
    m.barrier(id, threads, False)


@instr("bar.warp.sync 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-bar-warp-sync")
def bar_warp_sync(m: Machine) -> None:
    """Wait for all 32 lanes of the warp; orders their memory accesses. All 32 lanes."""
    m.fence("acq_rel.cta")


@instr("barrier.cluster.arrive.release.aligned;", target="sm_90", issuer=WARP, ref=f"{_REF}-barrier-cluster")
def cluster_arrive(m: Machine) -> None:
    """Arrive at the cluster's barrier, releasing memory accesses at cluster scope. All threads of all CTAs, each
    once, and then `cluster_wait`; whole warps."""
    m.cluster_arrive()


@instr("barrier.cluster.arrive.relaxed.aligned;", target="sm_90", issuer=WARP, ref=f"{_REF}-barrier-cluster")
def cluster_arrive_relaxed(m: Machine) -> None:
    """Arrive at the cluster's barrier without ordering memory: a fence must come before it if that matters."""
    m.cluster_arrive(release=False)


@instr("barrier.cluster.arrive.release;", target="sm_90", lanes=SAME, ref=f"{_REF}-barrier-cluster")
def cluster_arrive_unaligned(m: Machine) -> None:
    """`cluster_arrive` for threads of a warp that need not execute it together. Any thread."""
    m.cluster_arrive()


@instr("barrier.cluster.arrive.relaxed;", target="sm_90", lanes=SAME, ref=f"{_REF}-barrier-cluster")
def cluster_arrive_relaxed_unaligned(m: Machine) -> None:
    """`cluster_arrive_relaxed` for threads of a warp that need not execute it together. Any thread."""
    m.cluster_arrive(release=False)


@instr("barrier.cluster.wait.acquire.aligned;", target="sm_90", issuer=WARP, ref=f"{_REF}-barrier-cluster")
def cluster_wait(m: Machine) -> None:
    """Wait until all threads of the cluster have arrived; acquires at cluster scope. All that arrived; whole warps."""
    m.cluster_wait()


def source(lane: Any, offset: Any, clamp: Any, mode: str) -> Any:
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


@instr("shfl.sync.{mode}.b32 $got, $value, $offset, $clamp, 0xffffffff;", target="sm_70", issuer=WARP,
       ref="data-movement-and-conversion-instructions-shfl-sync", over=MODES)  # fmt: skip
def shfl_sync(m: Machine, value: u32, offset: u32, clamp: u32, got: out(u32), *, mode: str) -> Any:
    """The `value` of another lane: `offset` itself (idx), lane - offset (up), lane + offset (down), lane ^ offset
    (bfly). clamp: bits 0 to 4 the last lane (31; 0 for up), bits 8 to 12 the segment mask (0: the whole warp). A
    lane that would read beyond gets its own value. All 32 lanes."""
    return np.asarray(value)[source(np.arange(m.lanes), offset, clamp, mode)]


@instr("vote.sync.ballot.b32 $lanes, $flag, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_ballot(m: Machine, flag: pred, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i passed a true `flag`. All 32 lanes."""
    set_bits = np.asarray(flag).astype(bool).astype(np.uint64) << np.arange(m.lanes, dtype=np.uint64)
    return np.full(m.lanes, set_bits.sum(), np.uint32)


@instr("vote.sync.all.pred $result, $flag, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_all(m: Machine, flag: pred, result: out(pred)) -> Any:
    """Whether every lane passed a true `flag`. All 32 lanes."""
    return np.full(m.lanes, np.asarray(flag).astype(bool).all(), np.uint32)


@instr("vote.sync.any.pred $result, $flag, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_any(m: Machine, flag: pred, result: out(pred)) -> Any:
    """Whether any lane passed a true `flag`. All 32 lanes."""
    return np.full(m.lanes, np.asarray(flag).astype(bool).any(), np.uint32)


UFUNCS: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}
UFUNCS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@instr("redux.sync.{op}.{type} $result, $value, 0xffffffff;", target="sm_80", issuer=WARP, ref=f"{_REF}-redux-sync",
       over=[{"op": op, "type": t} for op in ("add", "min", "max") for t in ("s32", "u32")]
       + [{"op": op, "type": "b32"} for op in ("and", "or", "xor")])  # fmt: skip
def redux_sync(m: Machine, value: u32, result: out(u32), *, op: str, type: str) -> Any:
    """The `value`s of all lanes reduced: add (modulo 2^32), min, max (as s32 or u32), and, or, xor. All 32 lanes."""
    dtype = np.int32 if type == "s32" else np.uint32
    words = np.asarray(value).astype(np.int64).astype(np.uint32).view(dtype)
    return np.full(m.lanes, UFUNCS[op].reduce(words, dtype=dtype)).view(np.uint32)


FLOAT_REDUX = [
    {"op": op, "abs": a, "nan": n, "how": f"{op}{'.abs' * a}{'.NaN' * n}"}
    for op in ("min", "max")
    for a in (False, True)
    for n in (False, True)
]


def reduced_floats(values: Any, op: str, abs: bool, nan: bool) -> Any:
    """The least or greatest f32, as redux.sync has it: a NaN counts only with `nan`, +0 is more than -0."""
    x = np.asarray(values, np.float32)
    x = np.abs(x) if abs else x
    if np.isnan(x).all() or (nan and np.isnan(x).any()):
        return np.float32(np.nan)
    x = x[~np.isnan(x)]
    ordered = x[np.lexsort((~np.signbit(x), x))]  # of zeros the negative ones first
    return ordered[0 if op == "min" else -1]


@instr("redux.sync.{how}.f32 $result, $value, 0xffffffff;", target="sm_100f", issuer=WARP, ref=f"{_REF}-redux-sync",
       over=FLOAT_REDUX)  # fmt: skip
def redux_sync_f32(m: Machine, value: f32, result: out(f32), *, op: str, abs: bool, nan: bool) -> Any:
    """The least or greatest of the `value`s of all lanes (op "min", "max"), of their magnitudes with `abs`; with `nan`
    NaN if any is. All 32 lanes."""
    return np.full(m.lanes, reduced_floats(value, op, abs, nan), np.float32)


@instr("vote.sync.uni.pred $result, $flag, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_uni(m: Machine, flag: pred, result: out(pred)) -> Any:
    """Whether all lanes passed the same `flag`. All 32 lanes."""
    flags = np.asarray(flag).astype(bool)
    return np.full(m.lanes, (flags == flags[0]).all(), np.uint32)


@instr("match.any.sync.b32 $lanes, $value, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-match-sync")
def match_any(m: Machine, value: u32, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i passed the same `value` as this one. All 32 lanes."""
    values: Any = np.asarray(value)
    same = (values[:, None] == values[None, :]).astype(np.uint64)
    return (same << np.arange(m.lanes, dtype=np.uint64)).sum(1).astype(np.uint32)


@instr("match.all.sync.b32 $lanes|$agreed, $value, 0xffffffff;", target="sm_70", issuer=WARP,
       ref=f"{_REF}-match-sync")  # fmt: skip
def match_all(m: Machine, value: u32, lanes: out(u32), agreed: out(pred)) -> Any:
    """(0xffffffff, 1) if all lanes passed the same `value`, else (0, 0). All 32 lanes."""
    same = (np.asarray(value) == np.asarray(value)[0]).all()
    return np.full(m.lanes, 0xFFFFFFFF if same else 0, np.uint32), np.full(m.lanes, same, np.uint32)


@instr("match.any.sync.b64 $lanes, $value, 0xffffffff;", target="sm_70", issuer=WARP, ref=f"{_REF}-match-sync")
def match_any_b64(m: Machine, value: u64, lanes: out(u32)) -> Any:
    """`match_any` of 64 bits."""
    return match_any.run(m, value, None)


@instr("match.all.sync.b64 $lanes|$agreed, $value, 0xffffffff;", target="sm_70", issuer=WARP,
       ref=f"{_REF}-match-sync")  # fmt: skip
def match_all_b64(m: Machine, value: u64, lanes: out(u32), agreed: out(pred)) -> Any:
    """`match_all` of 64 bits."""
    return match_all.run(m, value, None, None)


@instr("activemask.b32 $lanes;", target="sm_70", ref=f"{_REF}-activemask")
def activemask(m: Machine, lanes: out(u32)) -> int:
    """A word with the bits of the lanes that execute this together set. The simulator runs lanes one by one: there it
    is the lane's own bit. Any thread."""
    return 1 << m.sreg("laneid")  # type: ignore[no-any-return]
