# SPDX-License-Identifier: Apache-2.0
"""Rows that work on barriers, on the schedule or on nothing that shows, in programs whose results depend on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from numba_cute import arch, isa, seam
from numba_cute.dtypes import Float32

from .program import Program, Uint32, Uint64
from .values import store

BARS = 8  # bytes of an mbarrier


def script(rng: np.random.Generator, steps: int) -> list[tuple[str, tuple[int, ...]]]:
    """Random legal operations on one mbarrier, by a model of its counts (PTX ISA, "mbarrier")."""
    out: list[tuple[str, tuple[int, ...]]] = []
    expected = pending = tx = 0
    while len(out) < steps:
        if expected == 0 or rng.random() < 0.05:
            if expected:
                out.append(("inval", ()))
            expected = pending = int(rng.integers(1, 6))
            tx = 0
            out.append(("init", (expected,)))
            continue
        expects = ("arrive_expect_tx", "arrive_expect_tx_relaxed")
        op = rng.choice(["arrive", "arrive_count", "arrive_drop", *expects, "expect_tx", "complete_tx"])
        n = int(rng.integers(1, 200))
        if op == "complete_tx":
            if tx == 0:
                continue
            n = tx if rng.random() < 0.5 else int(rng.integers(1, tx + 1))
            tx -= n
        elif op == "expect_tx":
            tx += n
        elif pending == 0 or (op == "arrive_drop" and expected == 1):
            continue
        elif op == "arrive_count":
            n = int(rng.integers(1, pending + 1))
            pending -= n
        else:
            pending -= 1
            expected -= op == "arrive_drop"
            tx += n if op in expects else 0
        out.append((str(op), () if op in ("arrive", "arrive_drop") else (n,)))
        if pending == tx == 0:
            pending = expected
            out.append(("completed", ()))
    return [*out, ("inval", ())]


def mbarriers() -> Program:
    """Four random histories of a barrier; after each step both parities are tested."""
    rng, steps = np.random.default_rng(7), 60
    histories = [script(rng, steps) for _ in range(4)]
    width = 2 * max(map(len, histories))

    @seam.traced
    def body(got: Any) -> None:
        b = seam.current()
        b.smem_needs(BARS)
        bar, block = Uint32(b.smem_base()), arch.block_idx()[0]
        for n, history in enumerate(histories):
            b.when(b.compare("==", block, n), lambda n=n, history=history: replay(got, n, history, bar))

    @cuda.jit
    def histories_of_a_barrier(got):
        body(got)

    rows = {OPERATIONS[op][0].name for h in histories for op, _ in h if op != "completed"} | {
        "mbarrier_test_wait_parity", "mbarrier_try_wait_parity", "mbarrier_wait_parity",
    }  # fmt: skip
    return Program("mbarrier histories", histories_of_a_barrier, {}, {"got": np.zeros((4, width), np.uint32)}, grid=4,
                   block=1, smem=BARS, rows=frozenset(rows))  # fmt: skip


def replay(got: Any, n: int, history: list[tuple[str, tuple[int, ...]]], bar: Any) -> None:
    """One thread does it all; when a phase has completed, the rows that wait for it return at once."""
    phase = 0
    for i, (op, numbers) in enumerate(history):
        if op == "completed":
            parity = Uint32(phase & 1)
            for scope in ("cta", "cluster"):
                store(got, n, 2 * i, Uint32(isa.mbarrier_try_wait_parity(bar, parity, scope=scope)))
                isa.mbarrier_wait_parity(bar, parity, scope=scope)
            phase += 1
        else:
            operate(op, bar, numbers)
            phase = 0 if op == "init" else phase
        for parity in (0, 1):
            if op != "inval":
                store(got, n, 2 * i + parity, Uint32(isa.mbarrier_test_wait_parity(bar, Uint32(parity))))


OPERATIONS: dict[str, tuple[Any, dict[str, str]]] = {
    "init": (isa.mbarrier_init, {}), "inval": (isa.mbarrier_inval, {}), "arrive": (isa.mbarrier_arrive, {}),
    "arrive_count": (isa.mbarrier_arrive, {}), "arrive_drop": (isa.mbarrier_arrive_drop, {}),
    "arrive_expect_tx": (isa.mbarrier_arrive_expect_tx, {"sem": "release"}),
    "arrive_expect_tx_relaxed": (isa.mbarrier_arrive_expect_tx, {"sem": "relaxed"}),
    "expect_tx": (isa.mbarrier_expect_tx, {}), "complete_tx": (isa.mbarrier_complete_tx, {}),
    "arrive_peer": (isa.mbarrier_arrive, {"scope": "cta"}),
}  # fmt: skip
"""The rows of a history's operations, and their static parameters."""


def operate(op: str, bar: Any, numbers: tuple[int, ...], **space: str) -> None:
    row, statics = OPERATIONS[op]
    row(bar, *map(Uint32, numbers), **statics, **space)


REMOTE = [
    ("arrive", ()), ("arrive_peer", ()), ("arrive_count", (2,)), ("expect_tx", (32,)), ("arrive_expect_tx", (96,)),
    ("complete_tx", (128,)), ("arrive_expect_tx_relaxed", (16,)), ("complete_tx", (16,)), ("arrive_count", (4,)),
]  # fmt: skip


DATA = 64
"""Bytes that are stored remotely."""


def start(bar: Any, other: Any) -> None:
    isa.mbarrier_init(bar, Uint32(5))
    isa.mbarrier_init(other, Uint32(1))
    isa.mbarrier_arrive_expect_tx(other, Uint32(4 + 8 + 16))
    isa.fence_mbarrier_init()
    b = seam.current()
    for n in range(DATA // 4):
        b.store(Uint32, "smem", bar + 64 + 4 * n, (Uint32(0),), 4)


def stores(to: Any, bar: Any) -> None:
    to, bar = isa.mapa(to, Uint32(0)), isa.mapa(bar, Uint32(0))
    words = [Uint32(0x01020304 * n + 9) for n in range(8)]
    for n, at, first in ((1, 0, 0), (2, 8, 1), (4, 16, 3)):
        isa.st_async(to + at, words[first : first + n], bar, count=n)


def meet() -> None:
    isa.cluster_arrive()
    isa.cluster_wait()


def clusters() -> Program:
    """A thread of CTA 1 arrives at CTA 0's barrier, and stores to its memory; CTA 0 tests the barrier after each step,
    between barriers of the cluster, and shows its memory."""
    data, width = DATA, 2 * len(REMOTE) + DATA // 4 + 3

    @seam.traced
    def body(got: Any) -> None:
        b = seam.current()
        b.smem_needs(256)
        base, rank = Uint32(b.smem_base()), arch.block_idx_in_cluster()
        i = arch.thread_idx()[0]
        first = b.compare("==", i, 0)
        bar, other = base, base + BARS
        b.when(first, lambda: start(bar, other))
        meet()
        for n, (op, numbers) in enumerate(REMOTE):
            there = isa.mapa(bar, Uint32(0))
            b.when(
                b.compare("==", i + 32 * (1 - rank), 0),
                lambda op=op, v=numbers, t=there: operate(op, t, v, space="cluster"),
            )
            meet()
            for parity in (0, 1):
                done = isa.mbarrier_test_wait_parity(bar, Uint32(parity))
                store(got, i + 32 * rank, 2 * n + parity, Uint32(done))
        b.when(b.compare("==", i + 32 * (1 - rank), 0), lambda: stores(base + 64, other))
        b.when(b.compare("==", rank, 0), lambda: isa.mbarrier_wait_parity(other, Uint32(0), scope="cluster"))
        meet()
        for n in range(data // 4):
            word = b.load(Uint32, "smem", base + 64 + 4 * n, 1, 4)[0]
            keep = b.select(b.compare("==", rank, 0), word, Uint32(0))
            store(got, i + 32 * rank, 2 * len(REMOTE) + n, Uint32(keep))
        at = 2 * len(REMOTE) + data // 4
        store(got, i + 32 * rank, at, Uint32(isa.getctarank(isa.mapa(base, Uint32(1)))))
        store(got, i + 32 * rank, at + 1, Uint32(isa.getctarank(base)))
        store(got, i + 32 * rank, at + 2, Uint32(isa.sreg_cluster(register="cluster_ctarank")))
        isa.cluster_arrive_unaligned()
        isa.cluster_wait()
        isa.fence_acq_rel(scope="cluster")
        isa.cluster_arrive_unaligned(sem="relaxed")
        isa.cluster_wait()
        isa.cluster_arrive(sem="relaxed")
        isa.cluster_wait()
        b.when(first, lambda: [isa.mbarrier_inval(x) for x in (bar, other)] and None)

    @cuda.jit
    def pair(got):
        body(got)

    rows = {OPERATIONS[op][0].name for op, _ in REMOTE} | {
        "st_async", "mapa", "getctarank", "cluster_arrive", "cluster_wait", "cluster_arrive_unaligned",
        "fence_mbarrier_init", "fence_acq_rel",
    }  # fmt: skip
    return Program("cluster barriers", pair, {}, {"got": np.zeros((64, width), np.uint32)}, grid=2, block=32,
                   cluster=2, smem=256, rows=frozenset(rows))  # fmt: skip


FENCES = (isa.fence_proxy_async, isa.fence_proxy_alias, isa.fence_acq_rel)


def schedule() -> Program:
    """Words handed from warp to warp through shared memory by named barriers of every kind, with all fences and hints
    on the way, and registers moved between warpgroups."""
    threads, block = 64, 384

    @seam.traced
    def body(given: Any, got: Any) -> None:
        b = seam.current()
        b.smem_needs(4 * block)
        i = arch.thread_idx()[0]
        warp = arch.make_warp_uniform(arch.warp_idx())
        base = Uint32(b.smem_base())
        mine = base + 4 * Uint32(i)
        b.store(Uint32, "smem", mine, (given[i, 0],), 4)
        isa.bar_warp_sync()
        isa.bar_warp_sync(Uint32(0xFFFFFFFF))
        for row in FENCES:
            for case in row.cases:
                row(**case)
        isa.bar_sync(Uint32(0))
        b.when(b.compare("<", warp, 4), lambda: isa.setmaxnreg(action="dec", count=40))
        b.when(b.compare(">=", warp, 4), lambda: isa.setmaxnreg(action="inc", count=232))
        isa.griddepcontrol_wait()
        isa.griddepcontrol_launch_dependents()
        isa.nanosleep(Uint32(20))
        rounds = (
            (isa.bar_arrive, isa.bar_sync), (isa.barrier_cta_arrive, isa.barrier_cta_sync),
            (isa.bar_sync, isa.bar_sync), (isa.barrier_cta_sync, isa.barrier_cta_sync),
        )  # fmt: skip
        for n, (gives, takes) in enumerate(rounds):  # warp n writes, warp n + 1 reads what it wrote
            name = Uint32(n + 1)
            b.when(b.compare("==", warp, n), lambda n=n, g=gives, name=name: give(n, mine, name, g))
            b.when(b.compare("==", warp, n + 1), lambda t=takes, name=name: take(mine, name, t))
        isa.bar_sync(Uint32(15))
        store(got, i, 0, b.load(Uint32, "smem", mine, 1, 4)[0])

    def give(n: int, mine: Any, name: Any, row: Any) -> None:
        b = seam.current()
        word = b.load(Uint32, "smem", mine, 1, 4)[0]
        b.store(Uint32, "smem", mine, (word * Uint32(2654435761) + Uint32(n),), 4)
        row(name, Uint32(threads))

    def take(mine: Any, name: Any, row: Any) -> None:
        b = seam.current()
        row(name, Uint32(threads))
        word = b.load(Uint32, "smem", mine - 128, 1, 4)[0] + b.load(Uint32, "smem", mine, 1, 4)[0]
        b.store(Uint32, "smem", mine, (word,), 4)

    @cuda.jit(launch_bounds=(384, 1))
    def handed(given, got):
        body(given, got)

    rows = {*(r.name for r in FENCES), "bar_sync", "bar_arrive", "barrier_cta_sync", "barrier_cta_arrive",
            "bar_warp_sync", "nanosleep", "setmaxnreg", "griddepcontrol_wait",
            "griddepcontrol_launch_dependents"}  # fmt: skip
    given = np.random.default_rng(3).integers(0, 1 << 32, (block, 1), dtype=np.uint32)
    return Program("schedule", handed, {"given": given}, {"got": np.zeros((block, 1), np.uint32)}, block=block,
                   smem=4 * block, rows=frozenset(rows))  # fmt: skip


def relations() -> Program:
    """What counters, timers and places promise: ones in every column."""
    registers = ("warpid", "nwarpid", "smid", "nsmid")

    @seam.traced
    def body(got: Any) -> None:
        b = seam.current()
        i = arch.thread_idx()[0] + 64 * arch.block_idx()[0]
        facts = []
        before = (isa.clock64(), isa.globaltimer())
        low = isa.clock32()
        timer = isa.globaltimer_lo()
        isa.nanosleep(Uint32(1000))
        after = (isa.clock64(), isa.globaltimer())
        facts += [b.compare("<=", Uint64(x), Uint64(y)) for x, y in zip(before, after)]
        facts.append(b.compare("<", Uint32(isa.clock32() - low), 1 << 30))
        facts.append(b.compare("<", Uint32(isa.globaltimer_lo() - timer), 1 << 30))
        warp, warps, sm, sms = (isa.sreg_volatile(register=r) for r in registers)
        facts += [b.compare("<", warp, warps), b.compare("<", sm, sms)]
        facts.append(b.compare("!=", isa.activemask() & isa.lanemask(lanes="eq"), 0))
        facts.append(b.compare("==", Uint64(isa.gridid()), Uint64(isa.gridid())))
        for p in ("evict_first", "evict_normal", "evict_last", "evict_unchanged"):
            word = isa.createpolicy_l2(priority=p)
            facts.append(b.compare("==", word, isa.createpolicy_l2(priority=p)))
            part, again = (isa.createpolicy_fractional(Float32(0.5), priority=p, secondary="evict_first") for _ in "12")
            facts.append(b.compare("==", part, again))
            area = (isa.createpolicy_range(Uint64(got.iterator.toint()), Uint32(64), Uint32(256), priority=p,
                                           secondary="evict_unchanged") for _ in "12")  # fmt: skip
            facts.append(b.compare("==", *area))
        facts.append(b.compare("==", isa.createpolicy_cvt(word), isa.createpolicy_cvt(word)))
        for c, fact in enumerate(facts):
            store(got, i, c, Uint32(fact))

    @cuda.jit
    def promises(got):
        body(got)

    rows = {"clock32", "clock64", "globaltimer", "globaltimer_lo", "nanosleep", "sreg_volatile", "activemask",
            "lanemask", "gridid", "createpolicy_l2", "createpolicy_fractional", "createpolicy_range",
            "createpolicy_cvt"}  # fmt: skip
    return Program("relations", promises, {}, {"got": np.zeros((128, 21), np.uint32)}, grid=2, block=64,
                   rows=frozenset(rows))  # fmt: skip


def programs() -> list[Program]:
    return [mbarriers(), clusters(), schedule(), relations()]
