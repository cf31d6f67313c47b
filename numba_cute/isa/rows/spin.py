# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Waiting for a flag in global memory that threads of other blocks or GPUs count up: loops around one instruction. One
thread: of a warp that waits together none could go on before the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...seam import CuteError
from ..form.instr import ACQUIRE, ALONE, RELAXED, instr
from ..form.kinds import gmem, u32, u64
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


def _spin(
    m: Machine, addr: int, change: Callable[[Bytes], Bytes] | None, done: Callable[[int], bool], whose: str = ""
) -> None:
    check_aligned(addr, 4, "waiting for a flag")

    def ends(word: Bytes) -> bool:
        return done(int(word.view(np.uint32)[0]))

    for _ in range(_TURNS):
        if ends(m.atomic(addr, 4, change, shared=False, ends=ends if change is None else None)):
            return
    raise CuteError(
        f"waiting for the flag at {addr:#x}{whose}: it did not come in {_TURNS} turns; let one thread "
        "wait (elect_one), not a warp, and check that the thread that counts it up does not wait for this one"
    )


@instr("{ .reg .pred done; .reg .b32 seen; again: atom.{sem}.{scope}.global.cas.b32 seen, [$addr], $expected, $value; "
       "setp.eq.u32 done, seen, $expected; @!done bra again; }", target="sm_70", lanes=ALONE, ref=_REF,
       over=_ORDERS)  # fmt: skip
def wait_for_flag(m: Machine, addr: gmem, expected: u32, value: u32) -> None:
    """Wait until the 32 bits at `addr` are `expected`, and make them `value` in the same step. One thread."""
    want, given = int(expected) & 0xFFFFFFFF, np.array([int(value) & 0xFFFFFFFF], np.uint32).view(np.uint8)
    _spin(m, addr, lambda b: given if int(b.view(np.uint32)[0]) == want else b, lambda old: old == want)


@instr("{ .reg .pred less; .reg .b32 seen; again: ld.{sem}.{scope}.global.b32 seen, [$addr]; "
       "setp.lt.s32 less, seen, $least; @less bra again; }", target="sm_70", lanes=ALONE, ref=_REF,
       over=_ORDERS)  # fmt: skip
def wait_for_count(m: Machine, addr: gmem, least: u32) -> None:
    """Wait until the signed 32 bits at `addr` are at least `least`. One thread."""
    _spin(m, addr, None, lambda old: _signed(old) >= _signed(least))


_LATE = (
    "setp.eq.u64 less, $report, 0; @less bra over; "
    "shl.b32 who, $peer, 16; add.u32 who, who, 65536; or.b32 who, who, $slot; "
    "mov.u32 block, %ctaid.z; mov.u32 word, %nctaid.y; mul.lo.u32 block, block, word; mov.u32 word, %ctaid.y; "
    "add.u32 block, block, word; mov.u32 word, %nctaid.x; mul.lo.u32 block, block, word; mov.u32 word, %ctaid.x; "
    "add.u32 block, block, word; st.relaxed.sys.global.v4.b32 [$report], {who, seen, $least, block}; membar.sys; "
    "over: trap; "
)
"""Tells the host who did not come, in one store of 16 bytes, and ends the kernel."""


@instr("{ .reg .pred less; .reg .b32 seen, gap, who, block, word; .reg .b64 start, now; "
       "ld.acquire.sys.global.b32 seen, [$addr]; sub.s32 gap, seen, $least; setp.lt.s32 less, gap, 0; @!less bra done; "
       "mov.u64 start, %globaltimer; "
       "again: ld.acquire.sys.global.b32 seen, [$addr]; sub.s32 gap, seen, $least; setp.lt.s32 less, gap, 0; "
       "@!less bra done; mov.u64 now, %globaltimer; sub.u64 now, now, start; setp.lt.u64 less, now, $limit; "
       "@less bra again; " + _LATE + "done: }",
       target="sm_70", lanes=ALONE, ref=_REF, over=[{"sem": ACQUIRE, "scope": "sys"}])  # fmt: skip
def wait_for_peer(m: Machine, addr: gmem, least: u32, peer: u32, slot: u32, limit: u64, report: gmem) -> None:
    """Wait until the 32 bits at `addr`, a count that goes round, have come to `least`. After `limit` nanoseconds write
    peer + 1 and slot (16 bits each), what is there, `least` and the block to `report`, unless that is 0, and trap. One
    thread."""
    who = f", which rank {int(peer)} signals in slot {int(slot)},"
    m.awaits(int(peer))
    _spin(m, addr, None, lambda old: _signed(old - int(least)) >= 0, who)
    m.awaits(None)
