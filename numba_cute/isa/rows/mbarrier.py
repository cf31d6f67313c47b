# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""mbarrier objects: 8 bytes of shared memory, 8-byte aligned, that count arrivals and bytes (PTX ISA, "mbarrier").

A phase completes when its pending arrivals and pending bytes are both zero; the next begins at once, with the
parity flipped. The first phase has parity 0. What waits for a parity waits for that phase's completion, so a
wait for parity 1 on a fresh barrier returns at once.
"""

from __future__ import annotations

from ..form.instr import SAME, cluster_smem, instr, out, pred, smem, u32
from ..form.machine import Barrier, Machine

_REF = "parallel-synchronization-and-communication-instructions-mbarrier"


def _peer(m: Machine, bar: int) -> Barrier:
    cta, address = m.owner(bar)
    return m.mbar(address, cta)


@instr("mbarrier.init.shared::cta.b64 [$bar], $count;", target="sm_80", ref=f"{_REF}-init")
def mbarrier_init(m: Machine, bar: smem, count: u32) -> None:
    """Make `bar` a barrier whose phases complete after `count` arrivals (1 to 2^20 - 1).

    One thread, once. Others may use it only after a fence (`fence_mbarrier_init` for peers and the async proxy) and
    a CTA or cluster barrier."""
    m.mbar(bar).init(count)


@instr("mbarrier.inval.shared::cta.b64 [$bar];", target="sm_80", ref=f"{_REF}-inval")
def mbarrier_inval(m: Machine, bar: smem) -> None:
    """End the barrier, so that its memory may be used for something else. One thread, after all have done with it."""
    m.mbar(bar).inval()


@instr("mbarrier.arrive.shared::cta.b64 _, [$bar];", target="sm_80", ref=f"{_REF}-arrive")
def mbarrier_arrive(m: Machine, bar: smem) -> None:
    """Arrive once. Any thread; releases its memory accesses at CTA scope."""
    m.mbar(bar).arrive()


@instr("mbarrier.arrive.shared::cta.b64 _, [$bar], $count;", target="sm_90", ref=f"{_REF}-arrive")
def mbarrier_arrive_count(m: Machine, bar: smem, count: u32) -> None:
    """Arrive `count` times at once. Any thread; releases its memory accesses at CTA scope."""
    m.mbar(bar).arrive(count)


@instr("mbarrier.arrive_drop.shared::cta.b64 _, [$bar];", target="sm_80", ref=f"{_REF}-arrive-drop")
def mbarrier_arrive_drop(m: Machine, bar: smem) -> None:
    """Arrive once, and let all later phases want one arrival less. Any thread, which does not arrive there again;
    releases its memory accesses at CTA scope."""
    m.mbar(bar).arrive_drop()


@instr("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$bar], $tx_bytes;", target="sm_90", ref=f"{_REF}-arrive")
def mbarrier_arrive_expect_tx(m: Machine, bar: smem, tx_bytes: u32) -> None:
    """Add `tx_bytes` to what this phase still waits for, then arrive once. One thread for each barrier and phase,
    as a rule: the one that issues the copies which deliver the bytes."""
    m.mbar(bar).arrive(tx=tx_bytes)


@instr("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [$bar], $tx_bytes;", target="sm_90",
       ref=f"{_REF}-arrive")  # fmt: skip
def mbarrier_arrive_expect_tx_relaxed(m: Machine, bar: smem, tx_bytes: u32) -> None:
    """`mbarrier_arrive_expect_tx` that releases only what a fence before it did."""
    m.mbar(bar).arrive(tx=tx_bytes)


@instr("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [$bar], $tx_bytes;", target="sm_90",
       ref=f"{_REF}-arrive")  # fmt: skip
def mbarrier_arrive_expect_tx_relaxed_cluster(m: Machine, bar: cluster_smem, tx_bytes: u32) -> None:
    """The same on a barrier of any CTA of the cluster."""
    _peer(m, bar).arrive(tx=tx_bytes)


@instr("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$bar], $tx_bytes;", target="sm_90", ref=f"{_REF}-expect-tx")
def mbarrier_expect_tx(m: Machine, bar: smem, tx_bytes: u32) -> None:
    """Add `tx_bytes` to what this phase still waits for. It does not arrive. Any thread."""
    m.mbar(bar).expect_tx(tx_bytes)


@instr("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [$bar], $tx_bytes;", target="sm_90",
       ref=f"{_REF}-expect-tx")  # fmt: skip
def mbarrier_expect_tx_cluster(m: Machine, bar: cluster_smem, tx_bytes: u32) -> None:
    """The same on a barrier of any CTA of the cluster."""
    _peer(m, bar).expect_tx(tx_bytes)


@instr("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [$bar], $tx_bytes;", target="sm_90", ref=f"{_REF}-complete-tx")
def mbarrier_complete_tx(m: Machine, bar: smem, tx_bytes: u32) -> None:
    """Count `tx_bytes` as delivered without a copy. Any thread. It does not arrive, and releases only what a fence
    before it did."""
    m.mbar(bar).complete_tx(tx_bytes)


@instr(
    "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [$bar], $tx_bytes;",
    target="sm_90",
    ref=f"{_REF}-complete-tx",
)
def mbarrier_complete_tx_cluster(m: Machine, bar: cluster_smem, tx_bytes: u32) -> None:
    """The same on a barrier of any CTA of the cluster."""
    _peer(m, bar).complete_tx(tx_bytes)


@instr("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$bar];", target="sm_90", ref=f"{_REF}-arrive")
def mbarrier_arrive_cluster(m: Machine, bar: cluster_smem) -> None:
    """Arrive once at a barrier of any CTA of the cluster (its address from `mapa`). Any thread; releases its memory
    accesses at cluster scope. That CTA must not have exited."""
    _peer(m, bar).arrive()


@instr("mbarrier.arrive.shared::cluster.b64 _, [$bar];", target="sm_90", ref=f"{_REF}-arrive")
def mbarrier_arrive_peer(m: Machine, bar: cluster_smem) -> None:
    """Arrive once at a barrier of any CTA of the cluster (its address from `mapa`). Any thread; releases at CTA scope
    only: enough to hand back a buffer that was just read, not to publish what was written for a peer. The release at
    cluster scope (`mbarrier_arrive_cluster`) becomes a GPU-wide MEMBAR: with it the Hopper GEMM did 500 TFLOP/s at
    4096^3, with this 667 (H200, 2026-11-21). That CTA must not have exited."""
    _peer(m, bar).arrive()


@instr("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$bar], $count;", target="sm_90", ref=f"{_REF}-arrive")
def mbarrier_arrive_count_cluster(m: Machine, bar: cluster_smem, count: u32) -> None:
    """The same, `count` times at once."""
    _peer(m, bar).arrive(count)


@instr(
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$bar], $tx_bytes;",
    target="sm_90",
    ref=f"{_REF}-arrive",
)
def mbarrier_arrive_expect_tx_cluster(m: Machine, bar: cluster_smem, tx_bytes: u32) -> None:
    """Add `tx_bytes` to what this phase of a barrier of any CTA of the cluster waits for, then arrive there once. Any
    thread; releases its memory accesses at cluster scope."""
    _peer(m, bar).arrive(tx=tx_bytes)


def _poll(m: Machine, bar: int, parity: int, why: str) -> int:
    barrier = m.mbar(bar)
    if barrier.phase_done(parity):
        return 1
    m.pause(why, barrier)
    return 0  # whatever has happened meanwhile: it need not notice, so that who does not ask again is found out


@instr(
    "mbarrier.test_wait.parity.shared::cta.b64 $done, [$bar], $parity;",
    target="sm_80",
    lanes=SAME,
    ref=f"{_REF}-test-wait-try-wait",
)
def mbarrier_test_wait_parity(m: Machine, bar: smem, parity: u32, done: out(pred)) -> int:
    """Whether the phase of `parity` (0 or 1) has completed. Any thread; never waits; acquires at CTA scope if so."""
    return _poll(m, bar, parity, "mbarrier.test_wait")


@instr(
    "mbarrier.try_wait.parity.shared::cta.b64 $done, [$bar], $parity;",
    target="sm_90",
    lanes=SAME,
    ref=f"{_REF}-test-wait-try-wait",
)
def mbarrier_try_wait_parity(m: Machine, bar: smem, parity: u32, done: out(pred)) -> int:
    """Whether the phase of `parity` has completed, after waiting for it for a time that the hardware limits. Any
    thread; acquires at CTA scope if so. Call it again until it has: `mbarrier_wait_parity` does."""
    return _poll(m, bar, parity, "mbarrier.try_wait")


@instr(
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 $done, [$bar], $parity;",
    target="sm_90",
    lanes=SAME,
    ref=f"{_REF}-test-wait-try-wait",
)
def mbarrier_try_wait_parity_cluster(m: Machine, bar: smem, parity: u32, done: out(pred)) -> int:
    """The same, acquiring at cluster scope: for memory that peers wrote with the generic proxy before they arrived."""
    return _poll(m, bar, parity, "mbarrier.try_wait")


@instr(
    "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$bar], $parity; @!done bra again; }",
    target="sm_90",
    lanes=SAME,
    ref=f"{_REF}-test-wait-try-wait",
)
def mbarrier_wait_parity(m: Machine, bar: smem, parity: u32) -> None:
    """Wait until the phase of `parity` has completed: a loop around mbarrier.try_wait. Any thread; acquires at CTA
    scope. A thread more than one phase behind cannot tell: parities repeat."""
    barrier = m.mbar(bar)
    m.block(lambda: barrier.phase_done(parity), "mbarrier.try_wait", barrier)


@instr(
    "{ .reg .pred done; "
    "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [$bar], $parity; @!done bra again; }",
    target="sm_90",
    lanes=SAME,
    ref=f"{_REF}-test-wait-try-wait",
)
def mbarrier_wait_parity_cluster(m: Machine, bar: smem, parity: u32) -> None:
    """The same, acquiring at cluster scope: for memory that peers wrote with the generic proxy before they arrived."""
    barrier = m.mbar(bar)
    m.block(lambda: barrier.phase_done(parity), "mbarrier.try_wait", barrier)
