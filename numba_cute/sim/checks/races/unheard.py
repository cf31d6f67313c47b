# SPDX-License-Identifier: Apache-2.0
"""What a hand-over by atomics lacks, between blocks and between ranks."""

from __future__ import annotations

from typing import Any

from ....isa.form.instr import ASYNC
from ...ground.clocks import FULL
from ...ground.ordering import GRID, SCOPES, SYSTEM, place


def unheard(t: Any, a: Any) -> tuple[str, Any] | None:
    """Find what a hand-over by atomics lacks, if one told thread `t` of access `a`: "acquire", "release" or "scope";
    and where the atomic is."""
    for left, place_of_it, _ in t.clock.heard.values():
        near = [left.by.get(place(r, t.cta)) for r in range(SYSTEM + 1)]
        if any(clock is not None and a.within(clock, FULL) for clock in near):
            return "acquire", place_of_it
        if any(a.within(clock, FULL) for clock in left.by.values()):
            return "scope", place_of_it
        for (other, where), (base, count) in left.silent.items():
            if (a.number < count) if other in a.threads else a.within(base, FULL):
                return "release", where
    return None


def between_ranks(m: Any, a: Any, scopes: tuple[str, str] | None) -> str:
    """Say what is missing between accesses of two ranks. scopes: of both, if they are atomics."""
    here, there = m.cta.cluster.rank, a.cluster.rank
    if scopes is not None:
        narrow = [f"{s} scope does not reach rank {r}" for s, r in zip(scopes, (there, here)) if s != "sys"]
        return f'  and these atomics are not one step for each other: {", and ".join(narrow)}: use scope="sys"'
    for t in (m.threads[0], *m.cta.threads) if not a.atomic else ():
        told = unheard(t, a)
        if told is not None:
            return _half_told(t, here, there, *told)
    head = f"  and nothing orders rank {there} before rank {here}"
    if not any(c.rank == there for t in m.clocks() for c in t.base.others):
        return (
            f"{head}: let that rank tell this one: it meets all that wrote (cuda.syncthreads()) and raises a flag in "
            f'this rank\'s memory by arch.store(flag, 1, sem="release", scope="sys"), which this one waits for by '
            f'arch.load(flag, sem="acquire", scope="sys")'
        )
    return head + _not_held(a)


def _not_held(a: Any) -> str:
    """Say why what a rank has told does not hold one of its accesses."""
    if a.group is not None:
        wait = "wait" if a.row is None or a.row.proxy == ASYNC else "commit it and wait"
        return (
            f": what it has told does not hold this copy, which may still be under way: {wait} with "
            f"cp.async.bulk.wait_group (not only .read) in the thread that issued it, before the flag is raised"
        )
    return (
        ": what it has told does not hold that access: whoever raises the flag there must first meet all that access "
        "the memory (cuda.syncthreads()), after they have, and each use of the memory needs a flag, or an epoch, of "
        "its own"
    )


def _half_told(t: Any, here: int, there: int, lacks: str, where: Any) -> str:
    """Say what the flag lacks that thread `t` has read."""
    head = f"  and nothing orders rank {there} before rank {here}"
    far = next((far for _, at, far in t.clock.heard.values() if at == where), SYSTEM)
    if lacks == "release":
        return (
            f'{head}: the atomic at {where}, which told this rank, releases nothing; give it sem="release" and '
            f'scope="sys", or execute cuda.threadfence_system() after that access and before the atomic'
        )
    if lacks == "scope":
        return (
            f"{head}: rank {there} released it at a scope that does not reach rank {here}, which read that at {where}; "
            f'use scope="sys", or cuda.threadfence_system() (cuda.threadfence() is of GPU scope)'
        )
    if far <= GRID:
        return (
            f"{head}: the atomic at {where}, which read what rank {there} released, is of {SCOPES[far]} scope, which "
            f'does not reach rank {there}: use scope="sys"'
        )
    return (
        f"{head}: rank {there} released it, but the atomic at {where}, which read that, acquires nothing; give it "
        f'sem="acquire" and scope="sys", or execute cuda.threadfence_system() after it'
    )
