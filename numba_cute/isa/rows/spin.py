# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Waiting for a flag in global memory that threads of other blocks or GPUs count up: loops around one instruction. One
thread: of a warp that waits together none could go on before the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...seam import CuteError
from ..form.instr import ACQUIRE, RELAXED, instr
from ..form.kinds import gmem, u32
from ..form.machine import Bytes, Machine
from .memory import check_aligned

_REF = "parallel-synchronization-and-communication-instructions-atom"
_ORDERS = [
    {"sem": s, "scope": c, **({"target": "sm_90"} if c == "cluster" else {})}
    for s in (RELAXED, ACQUIRE)
    for c in ("gpu", "sys", "cta", "cluster")
]
_TURNS = 1 << 17


def _signed(word: int) -> int:
    return (int(word) & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _spin(m: Machine, addr: int, change: Callable[[Bytes], Bytes] | None, done: Callable[[int], bool]) -> None:
    check_aligned(addr, 4, "waiting for a flag")
    for _ in range(_TURNS):
        old = m.atomic(addr, 4, change, shared=False)
        if done(int(old.view(np.uint32)[0])):
            return
    raise CuteError(
        f"waiting for the flag at {addr:#x}: it does not come in {_TURNS} turns; let one thread wait (elect_one), not "
        "a warp, and see that who counts it up does not wait for this one"
    )


@instr("{ .reg .pred done; .reg .b32 seen; again: atom.{sem}.{scope}.global.cas.b32 seen, [$addr], $expected, $value; "
       "setp.eq.u32 done, seen, $expected; @!done bra again; }", target="sm_70", ref=_REF, over=_ORDERS)  # fmt: skip
def wait_for_flag(m: Machine, addr: gmem, expected: u32, value: u32) -> None:
    """Wait until the 32 bits at `addr` are `expected`, and make them `value` in the same step. One thread."""
    want, given = int(expected) & 0xFFFFFFFF, np.array([int(value) & 0xFFFFFFFF], np.uint32).view(np.uint8)
    _spin(m, addr, lambda b: given if int(b.view(np.uint32)[0]) == want else b, lambda old: old == want)


@instr("{ .reg .pred less; .reg .b32 seen; again: ld.{sem}.{scope}.global.b32 seen, [$addr]; "
       "setp.lt.s32 less, seen, $least; @less bra again; }", target="sm_70", ref=_REF, over=_ORDERS)  # fmt: skip
def wait_for_count(m: Machine, addr: gmem, least: u32) -> None:
    """Wait until the signed 32 bits at `addr` are at least `least`. One thread."""
    _spin(m, addr, None, lambda old: _signed(old) >= _signed(least))
