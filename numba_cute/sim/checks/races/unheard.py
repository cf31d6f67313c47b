# SPDX-License-Identifier: Apache-2.0
"""Hand-overs by atomics, between blocks and between ranks, and the reason why one tells nothing."""

from __future__ import annotations

from typing import Any

from ...ground.clocks import FULL
from ...ground.ordering import GRID, SCOPES, SYSTEM, Heard, place


def unheard(t: Any, a: Any) -> tuple[str, Any] | None:
    """Find what a hand-over by atomics lacks, if one told thread `t` of access `a`: "acquire", "release" or "scope";
    and where the atomic is."""
    found = _heard(t, a)
    return None if found is None else (found[0], found[1].place if isinstance(found[1], Heard) else found[1])


def _heard(t: Any, a: Any) -> tuple[str, Any] | None:
    """Find the same, with the atomic of `t` that has read it; for "release", where the one is that releases nothing."""
    for left, heard in t.clock.heard.values():
        near = [left.by.get(place(r, t.cta)) for r in range(SYSTEM + 1)]
        if any(clock is not None and a.within(clock, FULL) for clock in near):
            return "acquire", heard
        if any(a.within(clock, FULL) for clock in left.by.values()):
            return "scope", heard
        for (other, where), (base, count) in left.silent.items():
            if (a.number < count) if other in a.threads else a.within(base, FULL):
                return "release", where
    return None


def between_ranks(m: Any, a: Any, scopes: tuple[str, str] | None) -> str:
    """Say what is missing between accesses of two ranks. scopes: of both, if they are atomics."""
    here, there = m.cta.cluster.rank, a.cluster.rank
    if scopes is not None:
        return _not_one_step(m, a, here, there, scopes)
    head = f"  and nothing orders rank {there} before rank {here}"
    for t in (m.threads[0], *m.cta.threads) if a.group is None and not a.atomic else ():
        told = _heard(t, a)
        if told is not None:
            return head + _half_told(here, there, *told)
    if not any(c.rank == there for t in m.clocks() for c in t.base.others):
        return (
            f"{head}: let that rank tell this one: it meets all that wrote (cuda.syncthreads()) and raises a flag in "
            f'this rank\'s memory by arch.store(flag, 1, sem="release", scope="sys"), which this one waits for by '
            f'arch.load(flag, sem="acquire", scope="sys")'
        )
    if a.group is not None:
        return (
            f"{head}: what it has told does not hold this copy, which may still be under way: wait with "
            f"cp.async.bulk.wait_group (not only .read) in the thread that issued it, before the flag is raised"
        )
    return (
        f"{head}: what it has told does not hold that access: whoever raises the flag there must first meet all that "
        f"access the memory (cuda.syncthreads()), after they have, and each use of the memory needs a flag, or an "
        f"epoch, of its own"
    )


def _not_one_step(m: Any, a: Any, here: int, there: int, scopes: tuple[str, str]) -> str:
    """Say which of two atomics does not reach the other's rank."""
    if m.op is not None or a.group is not None:
        return (
            f"  and these are not one step for each other: what a bulk copy combines is of gpu scope (PTX ISA, "
            f"cp.reduce.async.bulk), which does not reach rank {there}: give each rank a place of its own to add to, "
            f'let one add after the other by flags, or use cute.arch.red with scope="sys"'
        )
    narrow = [f"{s} scope does not reach rank {r}" for s, r in zip(scopes, (there, here)) if s != "sys"]
    return f'  and these atomics are not one step for each other: {", and ".join(narrow)}: use scope="sys"'


def _half_told(here: int, there: int, lacks: str, heard: Any) -> str:
    """Say what the flag lacks that told of an access. heard: the atomic that read it; or, where the one that told
    releases nothing, where that is."""
    if lacks == "release":
        return (
            f': the atomic at {heard}, which told this rank, releases nothing; give it sem="release" and '
            f'scope="sys", or execute cuda.threadfence_system() after that access and before the atomic'
        )
    if lacks == "scope":
        return (
            f": rank {there} released it at a scope that does not reach rank {here}, which read that at {heard.place}; "
            f'use scope="sys", or cuda.threadfence_system() (cuda.threadfence() is of GPU scope)'
        )
    if heard.far <= GRID:
        return (
            f": the atomic at {heard.place}, which read what rank {there} released, is of {SCOPES[heard.far]} scope, "
            f'which does not reach rank {there}: use scope="sys"'
        )
    if heard.acquires:
        return (
            f": the wait at {heard.place} may end before that, by a value that was there already, or is set earlier; "
            f"each use of the memory needs a flag, or an epoch, of its own"
        )
    return (
        f": rank {there} released it, but the atomic at {heard.place}, which read that, acquires nothing; give it "
        f'sem="acquire" and scope="sys", or execute cuda.threadfence_system() after it'
    )
