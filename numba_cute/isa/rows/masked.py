# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Exchanges among some lanes of a warp: those whose bits are set in `membermask`, which all of them give alike, each
being in it (PTX ISA, "shfl.sync" and on). The rows of `sync` are for whole warps, with the mask in their text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.instr import WARP, f32, instr, out, pred, u32, u64
from ..form.machine import Machine
from .sync import FLOAT_REDUX, MODES, UFUNCS, reduced_floats, source

_REF = "parallel-synchronization-and-communication-instructions"
UNDEFINED = 0xA5A5A5A5
"""What the simulator gives for the value of a lane that is not in the mask."""


def _named(m: Machine, membermask: Any) -> Any:
    """The lanes that take part; those beyond the end of the CTA are not there."""
    return np.flatnonzero(int(m.uniform(membermask)) >> np.arange(32) & 1)[: m.lanes]


@instr("bar.warp.sync $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-bar-warp-sync")
def bar_warp_sync_mask(m: Machine, membermask: u32) -> None:
    """Wait for the lanes of `membermask`; orders their memory accesses. Those lanes."""
    m.fence("acq_rel.cta")


@instr("shfl.sync.{mode}.b32 $got, $value, $offset, $clamp, $membermask;", target="sm_70", issuer=WARP,
       ref="data-movement-and-conversion-instructions-shfl-sync", over=MODES)  # fmt: skip
def shfl_sync_mask(
    m: Machine, value: u32, offset: u32, clamp: u32, membermask: u32, got: out(u32), *, mode: str
) -> Any:
    """`shfl_sync` among the lanes of `membermask`; the value of a lane that is not in it is undefined. Those lanes."""
    lanes, values = _named(m, membermask), np.full(32, UNDEFINED, np.uint32)
    values[lanes] = np.asarray(value)
    return values[source(lanes, offset, clamp, mode)]


@instr("vote.sync.ballot.b32 $lanes, $flag, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_ballot_mask(m: Machine, flag: pred, membermask: u32, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i of `membermask` passed a true `flag`. Those lanes."""
    bits = np.asarray(flag).astype(bool).astype(np.uint64) << _named(m, membermask).astype(np.uint64)
    return np.full(m.lanes, bits.sum(), np.uint32)


@instr("vote.sync.all.pred $result, $flag, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_all_mask(m: Machine, flag: pred, membermask: u32, result: out(pred)) -> Any:
    """Whether every lane of `membermask` passed a true `flag`. Those lanes."""
    return np.full(m.lanes, np.asarray(flag).astype(bool).all(), np.uint32)


@instr("vote.sync.any.pred $result, $flag, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_any_mask(m: Machine, flag: pred, membermask: u32, result: out(pred)) -> Any:
    """Whether any lane of `membermask` passed a true `flag`. Those lanes."""
    return np.full(m.lanes, np.asarray(flag).astype(bool).any(), np.uint32)


@instr("vote.sync.uni.pred $result, $flag, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-vote-sync")
def vote_uni_mask(m: Machine, flag: pred, membermask: u32, result: out(pred)) -> Any:
    """Whether all lanes of `membermask` passed the same `flag`. Those lanes."""
    flags = np.asarray(flag).astype(bool)
    return np.full(m.lanes, (flags == flags[0]).all(), np.uint32)


@instr("redux.sync.{op}.{type} $result, $value, $membermask;", target="sm_80", issuer=WARP, ref=f"{_REF}-redux-sync",
       over=[{"op": op, "type": t} for op in ("add", "min", "max") for t in ("s32", "u32")]
       + [{"op": op, "type": "b32"} for op in ("and", "or", "xor")])  # fmt: skip
def redux_sync_mask(m: Machine, value: u32, membermask: u32, result: out(u32), *, op: str, type: str) -> Any:
    """The `value`s of the lanes of `membermask` reduced as by `redux_sync`. Those lanes."""
    dtype = np.int32 if type == "s32" else np.uint32
    words = np.asarray(value).astype(np.int64).astype(np.uint32).view(dtype)
    return np.full(m.lanes, UFUNCS[op].reduce(words, dtype=dtype)).view(np.uint32)


@instr("redux.sync.{how}.f32 $result, $value, $membermask;", target="sm_100f", issuer=WARP, ref=f"{_REF}-redux-sync",
       over=FLOAT_REDUX)  # fmt: skip
def redux_sync_f32_mask(
    m: Machine, value: f32, membermask: u32, result: out(f32), *, op: str, abs: bool, nan: bool
) -> Any:
    """The `value`s of the lanes of `membermask` reduced as by `redux_sync_f32`. Those lanes."""
    return np.full(m.lanes, reduced_floats(value, op, abs, nan), np.float32)


@instr("match.any.sync.b32 $lanes, $value, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-match-sync")
def match_any_mask(m: Machine, value: u32, membermask: u32, lanes: out(u32)) -> Any:
    """A word with bit i set where lane i of `membermask` passed the same `value` as this one. Those lanes."""
    values: Any = np.asarray(value)
    same = (values[:, None] == values[None, :]).astype(np.uint64)
    return (same << _named(m, membermask).astype(np.uint64)).sum(1).astype(np.uint32)


@instr("match.all.sync.b32 $lanes|$agreed, $value, $membermask;", target="sm_70", issuer=WARP,
       ref=f"{_REF}-match-sync")  # fmt: skip
def match_all_mask(m: Machine, value: u32, membermask: u32, lanes: out(u32), agreed: out(pred)) -> Any:
    """(membermask, 1) if all its lanes passed the same `value`, else (0, 0). Those lanes."""
    same = (np.asarray(value) == np.asarray(value)[0]).all()
    given = int(m.uniform(membermask)) if same else 0
    return np.full(m.lanes, given, np.uint32), np.full(m.lanes, same, np.uint32)


@instr("match.any.sync.b64 $lanes, $value, $membermask;", target="sm_70", issuer=WARP, ref=f"{_REF}-match-sync")
def match_any_b64_mask(m: Machine, value: u64, membermask: u32, lanes: out(u32)) -> Any:
    """`match_any_mask` of 64 bits."""
    return match_any_mask.run(m, value, membermask, None)


@instr("match.all.sync.b64 $lanes|$agreed, $value, $membermask;", target="sm_70", issuer=WARP,
       ref=f"{_REF}-match-sync")  # fmt: skip
def match_all_b64_mask(m: Machine, value: u64, membermask: u32, lanes: out(u32), agreed: out(pred)) -> Any:
    """`match_all_mask` of 64 bits."""
    return match_all_mask.run(m, value, membermask, None, None)
