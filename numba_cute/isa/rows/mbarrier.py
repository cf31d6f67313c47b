# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""mbarrier objects: 8 bytes of shared memory, 8-byte aligned, that count arrivals and bytes (PTX ISA, "mbarrier").

A phase completes when its pending arrivals and pending bytes are both zero; the next begins at once, with the
parity flipped. The first phase has parity 0. What waits for a parity waits for that phase's completion, so a
wait for parity 1 on a fresh barrier returns at once.

space: where `bar` may lie, "cta" (shared memory of the issuing CTA) or "cluster" (of any CTA of the cluster, which must
not have exited; its address from `mapa`). sem, scope: what an arrival releases, or a wait acquires, and for
whom. Left out, they are "cta", release of an arrival, and the scope of `space`, of a wait "cta".
"""

from __future__ import annotations

from typing import Any

from ..form.choosing import by
from ..form.instr import ACQUIRE, RELAXED, RELEASE, SAME, instr
from ..form.kinds import byte_count, choice, cluster_mbar, mbar, number, optional, out, phase_parity, pred
from ..form.machine import Barrier, Machine

_REF = "parallel-synchronization-and-communication-instructions-mbarrier"
_EITHER = choice("space", {"cta": mbar, "cluster": cluster_mbar})


def _case(space: str, sem: str, scope: str, said: bool, **more: Any) -> dict[str, Any]:
    """said: whether the text has sem and scope; without, they are .release.cta, or .acquire.cta."""
    return {"space": space, "sem": sem, "scope": scope, "said": said, **more}


_OF_SPACE = by("space", {"cta": "cta", "cluster": "cluster"})
_DEFAULTS = {"space": "cta", "sem": RELEASE, "scope": _OF_SPACE}
_ARRIVALS = [
    _case("cta", RELEASE, "cta", False),
    _case("cluster", RELEASE, "cluster", True, target="sm_90"),
    _case("cluster", RELEASE, "cta", False, target="sm_90"),
]
_EXPECTANT = [
    _case("cta", RELEASE, "cta", False), _case("cta", RELAXED, "cta", True),
    _case("cluster", RELEASE, "cluster", True), _case("cluster", RELAXED, "cluster", True),
]  # fmt: skip
_COUNTING = [_case(space, RELAXED, space, True) for space in ("cta", "cluster")]
_WAITS = [_case("cta", ACQUIRE, "cta", False), _case("cta", ACQUIRE, "cluster", True)]


def _barrier(m: Machine, bar: int) -> Barrier:
    cta, address = m.owner(bar)
    return m.mbar(address, cta)


@instr("mbarrier.init.shared::cta.b64 [$bar], $count;", target="sm_80", ref=f"{_REF}-init")
def mbarrier_init(m: Machine, bar: mbar, count: number) -> None:
    """Make `bar` a barrier whose phases complete after `count` arrivals (1 to 2^20 - 1).

    One thread, once. Others may use it only after a fence (`fence_mbarrier_init` for peers and the async proxy) and
    a CTA or cluster barrier."""
    m.mbar(bar).init(count)


@instr("mbarrier.inval.shared::cta.b64 [$bar];", target="sm_80", ref=f"{_REF}-inval")
def mbarrier_inval(m: Machine, bar: mbar) -> None:
    """End the barrier, so that its memory may be used for something else. One thread, after all have done with it."""
    m.mbar(bar).inval()


@instr("mbarrier.arrive<said:.{sem}.{scope}>.shared::{space}.b64 _, [$bar]<count:, $count>;", target="sm_80",
       over=_ARRIVALS, defaults=_DEFAULTS, ref=f"{_REF}-arrive")  # fmt: skip
def mbarrier_arrive(m: Machine, bar: _EITHER, count: optional(number, target="sm_90")) -> None:
    """Arrive once, or `count` times at once. Any thread; releases its memory accesses at `scope`.

    At a peer's barrier "cta" is enough to hand back a buffer that was just read, not to publish what was written for
    the peer. The release at cluster scope becomes a GPU-wide MEMBAR: with it the Hopper GEMM did 500 TFLOP/s at 4096^3,
    with "cta" 667 (H200, 2026-11-21)."""
    _barrier(m, bar).arrive(1 if count is None else count)


@instr("mbarrier.arrive_drop.shared::cta.b64 _, [$bar];", target="sm_80", sem=RELEASE, scope="cta",
       ref=f"{_REF}-arrive-drop")  # fmt: skip
def mbarrier_arrive_drop(m: Machine, bar: mbar) -> None:
    """Arrive once, and let all later phases want one arrival less. Any thread, which does not arrive there again;
    releases its memory accesses at CTA scope."""
    m.mbar(bar).arrive_drop()


@instr("mbarrier.arrive.expect_tx<said:.{sem}.{scope}>.shared::{space}.b64 _, [$bar], $tx_bytes;", target="sm_90",
       over=_EXPECTANT, defaults=_DEFAULTS, ref=f"{_REF}-arrive")  # fmt: skip
def mbarrier_arrive_expect_tx(m: Machine, bar: _EITHER, tx_bytes: byte_count) -> None:
    """Add `tx_bytes` to what this phase still waits for, then arrive once. sem "relaxed" releases only what a fence
    before it did. One thread for each barrier and phase, as a rule: the one that issues the copies which deliver the
    bytes."""
    _barrier(m, bar).arrive(tx=tx_bytes)


@instr("mbarrier.expect_tx.{sem}.{scope}.shared::{space}.b64 [$bar], $tx_bytes;", target="sm_90", over=_COUNTING,
       defaults={"space": "cta"},        ref=f"{_REF}-expect-tx")  # fmt: skip
def mbarrier_expect_tx(m: Machine, bar: _EITHER, tx_bytes: byte_count) -> None:
    """Add `tx_bytes` to what this phase still waits for. It does not arrive. Any thread."""
    _barrier(m, bar).expect_tx(tx_bytes)


@instr("mbarrier.complete_tx.{sem}.{scope}.shared::{space}.b64 [$bar], $tx_bytes;", target="sm_90", over=_COUNTING,
       defaults={"space": "cta"},        ref=f"{_REF}-complete-tx")  # fmt: skip
def mbarrier_complete_tx(m: Machine, bar: _EITHER, tx_bytes: byte_count) -> None:
    """Count `tx_bytes` as delivered without a copy. Any thread. It does not arrive, and releases only what a fence
    before it did."""
    _barrier(m, bar).complete_tx(tx_bytes)


def _poll(m: Machine, bar: int, parity: int, why: str) -> int:
    barrier = m.mbar(bar)
    if barrier.phase_done(parity):
        return 1
    m.pause(why, barrier)
    return 0  # whatever has happened meanwhile: it need not notice, so that who does not ask again is found out


_WAIT: dict[str, Any] = {"lanes": SAME, "ref": f"{_REF}-test-wait-try-wait"}
_WAIT_LONG = {**_WAIT, "defaults": {"scope": "cta"}}
_TRY = "mbarrier.try_wait.parity<said:.{sem}.{scope}>.shared::cta.b64"


@instr("mbarrier.test_wait.parity.shared::cta.b64 $done, [$bar], $parity;", target="sm_80", sem=ACQUIRE, scope="cta",
       **_WAIT)  # fmt: skip
def mbarrier_test_wait_parity(m: Machine, bar: mbar, parity: phase_parity, done: out(pred)) -> int:
    """Test whether the phase of `parity` (0 or 1) has completed. Any thread; never waits; acquires at CTA scope if
    so."""
    return _poll(m, bar, parity, "mbarrier.test_wait")


@instr(_TRY + " $done, [$bar], $parity;", target="sm_90", over=_WAITS, **_WAIT_LONG)
def mbarrier_try_wait_parity(m: Machine, bar: mbar, parity: phase_parity, done: out(pred)) -> int:
    """Test whether the phase of `parity` has completed, after waiting for it for a time that the hardware limits. Any
    thread; acquires at `scope` if so ("cluster": for memory that peers wrote with the generic proxy before they
    arrived). Call it again until it has: `mbarrier_wait_parity` does."""
    return _poll(m, bar, parity, "mbarrier.try_wait")


@instr("{ .reg .pred done; again: " + _TRY + " done, [$bar], $parity; @!done bra again; }", target="sm_90", over=_WAITS,
       **_WAIT_LONG)  # fmt: skip
def mbarrier_wait_parity(m: Machine, bar: mbar, parity: phase_parity) -> None:
    """Wait until the phase of `parity` has completed: a loop around mbarrier.try_wait, which acquires at `scope` as it
    does. Any thread. A thread more than one phase behind cannot tell: parities repeat."""
    barrier = m.mbar(bar)
    m.block(lambda: barrier.phase_done(parity), "mbarrier.try_wait", barrier)
