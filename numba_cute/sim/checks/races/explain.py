# SPDX-License-Identifier: Apache-2.0
"""The reports of races: both lines, what lies between them, and the fix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....isa.form.instr import BULK_GROUP, CP_ASYNC_GROUP, MBARRIER, TCGEN05_GROUP, WGMMA_GROUP
from ...ground.report import BarrierError, RaceError, of_block, who
from .unheard import between_ranks, unheard

_WAIT = {
    WGMMA_GROUP: "commit it and wait with wgmma.wait_group before this line",
    CP_ASYNC_GROUP: "commit it and wait with cp.async.wait_group before this line",
    TCGEN05_GROUP: "let a tcgen05.commit after it signal the barrier that is waited for before this line",
}


_FEW = 16
"""Bytes of accesses whose ranges are not told: their address says enough."""


class Conflict(NamedTuple):
    """The reason why two accesses conflict. why: the missing guarantee: "order", "scope" or "proxy". late: the reported
    one is asynchronous and was issued before the other. scopes: of both, if they are atomics. ranges: the bytes of both
    in words, if they differ."""

    a_wrote: bool
    m_writes: bool
    why: str
    late: bool = False
    scopes: tuple[str, str] | None = None
    ranges: tuple[str, str] | None = None


def ranges(memory: Any, region: Any, others: Any) -> tuple[str, str] | None:
    """Write the bytes of a region, and those that another access touched: a mask of the memory; None if these are the
    same, or few."""
    mine = np.zeros(others.shape, np.int32)
    region.set(mine, 1)
    here, there = np.flatnonzero(mine), np.flatnonzero(others)
    few = max(len(here), len(there)) <= _FEW
    if few or not len(there) or (len(here) == len(there) and bool((here == there).all())):
        return None
    return _bytes(memory, here), _bytes(memory, there)


def _bytes(memory: Any, at: Any) -> str:
    first, last = (memory.name(int(i)).removeprefix("at ") for i in (at[0], at[-1]))
    gaps = "" if at[-1] - at[0] + 1 == len(at) else " with gaps"
    return f"{len(at)}{gaps}, {first} to {last}"


def race(m: Any, memory: Any, address: int, a: Any, c: Conflict) -> RaceError:
    """Report that nothing orders what `m` does to `address` after access `a`."""
    what = place_text(memory, address)
    verb = "written" if c.m_writes else "read"
    issue = f"{m.row.name} of " if m.row is not None else ""
    if c.why == "proxy":
        return RaceError(_proxy(m, what, verb, a))
    apart = a.cluster is not m.cta.cluster
    here = f"{m.describe()}{of_block(m.cta)}" if apart else m.describe()
    head = f"race: {what} is {verb} by {issue}{here} at {m.place}\n"
    if a.group is not None and not apart:
        return RaceError(head + _doubts(m, a) + _in_flight(m, a, c) + _both("\n", c, ""))
    did = ("updated it atomically" if a.atomic else "wrote it") if c.a_wrote else "read it"
    other = f"{who(a.threads)}{of_block(a.threads[0].cta)}" if apart else who(a.threads)
    if a.group is not None:
        other, did = f"{a.row.name} issued by {other}", "writes it" if c.a_wrote else "reads it"
    head += f"  but {other} {did} at {a.place}\n"
    return RaceError(head + _both("", c, "\n") + _doubts(m, a) + _fix(m, a, c))


def _both(before: str, c: Conflict, after: str) -> str:
    """The bytes of both accesses, where they differ."""
    return "" if c.ranges is None else f"{before}  bytes: here {c.ranges[0]}; there {c.ranges[1]}{after}"


def place_text(memory: Any, address: int) -> str:
    """A byte of a memory, in words."""
    name = memory.name(address)
    return str(name) if name.startswith(memory.space) else f"{memory.space} {name}"


def _doubts(m: Any, a: Any) -> str:
    """Return a note on what a thread's last wait did not guarantee, if that may be why nothing orders the two."""
    for t in (m.threads[0], a.threads[0]):
        bar, text = t.doubt or (None, None)
        if bar is not None and (a.group != MBARRIER or a.on is bar):
            return f"  note: {text}\n"
    return ""


def _fix(m: Any, a: Any, c: Conflict) -> str:
    if a.cluster.rank != m.cta.cluster.rank:
        return between_ranks(m, a, c.scopes)
    if c.scopes is not None:
        both = " and ".join(dict.fromkeys(c.scopes))
        return (
            f"  and these atomics (scope {both}) are not one step for each other, for the threads are in two blocks: "
            f'give both scope="gpu" ("cluster" is enough within a cluster)'
        )
    t, u = m.threads[0], a.threads[0]
    for v in (t, *m.cta.threads) if a.group is None and not a.atomic else ():
        told = unheard(v, a)
        if told is not None:
            return _half_told(m, a, *told)
    if a.cluster is not m.cta.cluster:
        return _between_blocks(m, a)
    if c.why == "scope":
        return (
            "  and the barrier between them was used at CTA scope, but they are in two CTAs: arrive with "
            'cute.arch.mbarrier_arrive(bar, rank) and wait with cute.arch.mbarrier_wait(bar, phase, scope="cluster") '
            "(release.cluster, acquire.cluster)"
        )
    if c.late:
        return _late(m, c.m_writes)
    if m.op is not None and m.op.groups is None and c.m_writes and not c.a_wrote:
        return (
            "  and nothing orders the two: if that line wants the copy's data, it must first wait on the barrier that "
            "the copy completes; if it wants what was there before, the copy must wait for a barrier at which it has "
            "arrived"
        )
    if t.warp is u.warp and all(x is None or x.kind == "warp" for x in (m.unit, a.unit)):
        how = "cuda.syncwarp() or cute.arch.sync_warp(); cuda.syncthreads() if more than one warp takes part"
    elif t.cta is u.cta:
        how = "cuda.syncthreads(), a named barrier, or an mbarrier that the first arrives at and the second waits for"
    else:
        how = "cluster_arrive and cluster_wait, or an mbarrier at cluster scope"
    return f"  and nothing orders the two: put a barrier between them ({how})"


def _half_told(m: Any, a: Any, lacks: str, place: Any) -> str:
    head = _nothing_orders(m, a)
    if lacks == "release":
        return (
            f"{head}: the atomic at {place}, which told this thread, releases nothing; execute cuda.threadfence() "
            f'after that access and before the atomic, or give it sem="release", at a scope that holds both threads'
        )
    if lacks == "scope":
        return (
            f"{head}: the other thread released it at a scope that does not hold this one, which read that at {place}; "
            f'it needs cuda.threadfence() (not threadfence_block), or scope="gpu"'
        )
    return (
        f"{head}: the other thread released it, but the atomic at {place}, which read that, acquires nothing; execute "
        f'cuda.threadfence() after it, or give it sem="acquire", at a scope that holds both threads'
    )


def _nothing_orders(m: Any, a: Any) -> str:
    return "  and nothing orders " + ("the two" if a.cluster is m.cta.cluster else "blocks of a grid by itself")


def _between_blocks(m: Any, a: Any) -> str:
    if not any(a.cluster in t.base.others for t in m.clocks()):
        return (
            "  and nothing orders blocks of a grid: use atomics (cuda.atomic), or let one block own each element, or "
            "launch a second kernel, or raise a flag: an atomic there after cuda.threadfence(), and one here before "
            "cuda.threadfence()"
        )
    told = f"{_nothing_orders(m, a)}: what that block has told this one does not hold it; "
    if a.group is not None:
        return (
            f"{told}wait with cp.async.bulk.wait_group (not only .read) in the thread that issued it, before that "
            f"block tells others"
        )
    return (
        f"{told}whoever tells others there must first meet all that wrote (cuda.syncthreads()), after they have "
        f"written, then fence (cuda.threadfence()), then raise the flag"
    )


def _late(m: Any, writes: bool) -> str:
    """A copy whose memory was used by threads before it was complete."""
    did = "written" if writes else "read"
    kind = m.op.groups.kind if m.op.groups is not None else MBARRIER
    if kind == MBARRIER:
        return (
            f"  before the copy was known to have {did} it: that line must first wait on the barrier that it completes"
        )
    wait = _WAIT.get(kind, "commit it and wait with cp.async.bulk.wait_group").replace(" before this line", "")
    return (
        f"  before the copy was known to have {did} it: {wait} (not only .read) in the thread that issued it, then "
        f"synchronise, before that line"
    )


def _in_flight(m: Any, a: Any, c: Conflict) -> str:
    state = "has still to write" if c.a_wrote else "still reads"
    if a.group == BULK_GROUP:
        wait = "cp.async.bulk.wait_group" + ("" if c.a_wrote else ".read")
        fix = f"commit it and wait with {wait} in the thread that issued it, then synchronise, before this line"
    elif a.group == MBARRIER and c.ranges is not None and c.m_writes and c.a_wrote and m.op is not None:
        fix = (
            f"the two overlap, and begin or end apart: what is copied is larger than its stage, or its place is wrong; "
            f"if they are to share bytes, wait on the barrier that it completes ({a.on}) before this line"
        )
    elif a.group == MBARRIER and m.op is not None and any(h.bar is a.on for h, _ in m.op.bars) and a.same_phase():
        fix = f"both complete the same phase of {a.on}: copy to other bytes, or wait on the barrier between the two"
    elif a.group == MBARRIER and m.op is not None and m.op.bars and all(h.bar is not a.on for h, _ in m.op.bars):
        bars = ", ".join(str(h.bar) for h, _ in m.op.bars)
        fix = (
            f"that one completes {a.on}, this one {bars}: two stages are filled in one place; give each its own, or "
            f"wait on the barrier of the first before this line"
        )
    elif a.group == MBARRIER:
        fix = f"wait on the barrier that it completes ({a.on}) before this line"
    else:
        fix = _WAIT.get(a.group, "wait for it before this line")
        if m.threads[0] not in a.threads and a.group != TCGEN05_GROUP:
            fix = fix.removesuffix(" before this line")
            fix += " there, before it tells others (arrives, or releases the stage)"
    return f"  but {a.row.name} issued by {who(a.threads)} at {a.place} {state} it; {fix}"


def _proxy(m: Any, what: str, verb: str, a: Any) -> str:
    apart = a.cluster is not m.cta.cluster
    here, there = (of_block(x.cta) if apart else "" for x in (m, a.threads[0]))
    fence = '"async.global"' if what.startswith("global") else '"async.shared", space="cta"'
    return (
        f"missing fence.proxy.async: {what} is {verb} through the async proxy by {m.row.name}, issued by "
        f"{m.describe()}{here} at {m.place}\n"
        f"  but {who(a.threads)}{there} wrote it with the generic proxy at {a.place}\n"
        f"  and no fence.proxy.async lies between; each writing thread must execute it after its writes and before the "
        f"barrier: cute.arch.fence_proxy({fence})"
    )


def constant_written(m: Any, memory: Any, address: int, writer: Any, reader: Any) -> RaceError:
    """Memory that is read through the read-only cache is written in the same launch; `m` comes last."""
    return RaceError(
        f"race: {place_text(memory, address)} is read by {reader.row.name} of {who(reader.threads)} at {reader.place}, "
        f"through the read-only cache\n"
        f"  but {who(writer.threads)} {'writes' if writer is m else 'wrote'} it at {writer.place}, in the same launch\n"
        f"  and that cache may hold what was there before, whatever orders the two: use an ordinary load"
    )


def over_barrier(m: Any, bar: Any, writes: bool) -> BarrierError:
    issue = f"{m.row.name} of " if m.row is not None else ""
    does = "writes over" if writes else "reads the bytes of"
    return BarrierError(
        f"{bar}: {issue}{m.describe()} {does} a live mbarrier at {m.place}\n"
        f"  it was initialised at {bar.born.place}; keep data away from it, or end it first with mbarrier_inval"
    )


def not_started(m: Any, peer: Any) -> RaceError:
    issue = f"{m.row.name} of " if m.row is not None else ""
    return RaceError(
        f"race: shared memory of CTA {peer.rank} is accessed by {issue}{m.describe()} at {m.place}, but nothing says "
        f"that this CTA has started; let the whole cluster meet first (cluster_arrive and cluster_wait)"
    )
