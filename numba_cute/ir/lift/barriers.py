# SPDX-License-Identifier: Apache-2.0
"""Barriers in shared memory: how they begin, who arrives at them, and who waits."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import UnitAttr

from .flow import has_effect
from .machine import has_no_use, two_blocks
from .tuples import attributes
from .values import Expr
from .writer import Lifter, lifts

_PEERS = ("nvvm.mapa", "nvvm.mapa.shared.cluster")
_TOLD = ("nvvm.mbarrier.arrive", "nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.expect_tx")
"""Operations on another block's barrier that this library addresses by the block's rank."""


@lifts("nvvm.mbarrier.init", "nvvm.mbarrier.init.shared")
def init(w: Lifter, op: Any) -> None:
    """A barrier begins. The CuTe DSL lets all lanes of a warp do it at once; PTX has a barrier begin once, so that one
    lane does it here."""
    w.by_one_lane(op, f"cute.arch.mbarrier_init({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")


@lifts("nvvm.fence.mbarrier.init")
def init_fence(w: Lifter, op: Any) -> None:
    """Barriers have begun for all. Where other blocks arrive at one and the CuTe DSL lets no cluster meet before, it
    meets here."""
    w.line("cute.arch.mbarrier_init_fence()")
    if w.flow.patterns.lacks_cluster(op):
        w.line("cute.arch.cluster_arrive_relaxed()")
        w.line("cute.arch.cluster_wait()")


def _remote(w: Lifter, value: Any) -> tuple[str, str]:
    """A barrier as this library takes it: its own pointer, and the rank of the block that has it."""
    op: Any = w.root(value).owner
    if getattr(op, "name", "") in _PEERS:
        return str(w.expr(op.operands[0])), f", peer_cta_rank_in_cluster={w.expr(op.operands[1])}"
    return str(w.expr(value)), ""


@lifts(*_PEERS)
def mapa(w: Lifter, op: Any) -> None:
    """An address of another block's shared memory."""
    readers = {u.operation.name for u in op.results[0].uses if u.operation in w.flow.needed}
    if readers <= {"nvvm.mbarrier.txn", *_TOLD}:
        return
    w.bind(op.results[0], Expr(f"cute.arch.map_dsmem_ptr({w.expr(op.operands[0])}, {w.expr(op.operands[1])})"))


@lifts("nvvm.mbarrier.arrive")
def arrive(w: Lifter, op: Any) -> None:
    """A thread arrives at a barrier."""
    if not has_no_use(w, op):
        w.refuse(op, "the state that it gives is not lifted: wait by parity")
    w.synchronises(arrives=True)
    pointer, peer = _remote(w, op.operands[0])
    count = (
        f", arrive_count={w.expr(op.operands[1])}" if len(op.operands) > 1 and w.constant(op.operands[1]) != 1 else ""
    )
    w.line(f"cute.arch.mbarrier_arrive({pointer}{peer}{count})")


@lifts("nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.expect_tx")
def expect(w: Lifter, op: Any) -> None:
    """A thread expects bytes at a barrier, and arrives there or not."""
    if not has_no_use(w, op):
        w.refuse(op, "the state that it gives is not lifted: wait by parity")
    arrives = op.name.startswith("nvvm.mbarrier.arrive")
    pointer, peer = _remote(w, op.operands[0])
    w.synchronises(arrives)
    name = "arrive_and_expect_tx" if arrives else "expect_tx"
    w.line(f"cute.arch.mbarrier_{name}({pointer}, {w.expr(op.operands[1])}{peer})")


@lifts("nvvm.cp.async.mbarrier.arrive", "nvvm.cp.async.mbarrier.arrive.shared")
def arrive_behind_copies(w: Lifter, op: Any) -> None:
    """A barrier is told when a thread's copies so far are done."""
    noinc = {**op.attributes, **op.properties}.get("noinc")
    if op.name.endswith("arrive") and not attributes(op).get("noinc") and not isinstance(noinc, UnitAttr):
        w.refuse(op, "an arrival that the barrier's count does not expect is not lifted: noinc")
    w.synchronises(arrives=True)
    w.line(f"cute.arch.cp_async_mbarrier_arrive_noinc({w.expr(op.operands[0])})")


@lifts("nvvm.mbarrier.txn")
def transaction(w: Lifter, op: Any) -> None:
    """A thread arrives at a barrier, expects bytes there, or both."""
    given = {**op.attributes, **op.properties}
    kind = getattr(given.get("kind"), "data", "")
    pointer, peer = _remote(w, op.operands[0])
    amount = w.expr(op.operands[1])
    w.synchronises(arrives=kind.startswith("arrive"))
    if kind == "arrive":
        count = "" if amount == "1" else f", arrive_count={amount}"
        w.line(f"cute.arch.mbarrier_arrive({pointer}{peer}{count})")
    elif kind in ("arrive_expect_tx", "expect_tx"):
        name = "arrive_and_expect_tx" if kind.startswith("arrive") else "expect_tx"
        w.line(f"cute.arch.mbarrier_{name}({pointer}, {amount}{peer})")
    else:
        w.refuse(op, f"a transaction {kind} is not lifted")


@lifts("nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.try_wait.parity.shared")
def wait(w: Lifter, op: Any) -> None:
    """A thread waits for a phase of a barrier. One that frees the tensor memory of a pair of blocks then learns what
    both have done there."""
    w.synchronises()
    after = op.next_op
    while after is not None and not has_effect(after):
        after = after.next_op
    pair = after is not None and after.name == "cute_nvgpu.arch.sm100.dealloc_tmem" and two_blocks(after)
    more = ', scope="cluster"' if pair else ""
    w.line(f"cute.arch.mbarrier_wait({w.expr(op.operands[0])}, {w.expr(op.operands[1])}{more})")


@lifts("nvvm.mbarrier.wait.parity")
def wait_parity(w: Lifter, op: Any) -> None:
    """A barrier is asked whether a phase is done."""
    given = {**op.attributes, **op.properties}
    name = "try_wait" if getattr(given.get("kind"), "data", "try") == "try" else "test_wait"
    args = ", ".join(str(w.expr(v)) for v in op.operands[:2])
    w.bind(op.results[0], Expr(f"cute.arch.mbarrier_{name}({args})"), moves=False)


@lifts("nvvm.tcgen05.commit", "nvvm.tcgen05.commit.arrive")
def commit(w: Lifter, op: Any) -> None:
    """A barrier is told when the matrix instructions so far are done."""
    around = op.parent_op()
    if around is None or not w.flow.patterns.is_elected(around):
        w.refuse(op, "it is lifted where one lane commits, `if elect_one()`, and does nothing else there")
    given = {**op.attributes, **op.properties}
    mask = f", {w.expr(op.operands[1])}" if len(op.operands) > 1 else ""
    two = getattr(given.get("group"), "data", "cta_1") == "cta_2"
    more = ", cta_group=cute.nvgpu.tcgen05.CtaGroup.TWO" if two else ""
    w.line(f"cute.nvgpu.tcgen05.commit({w.expr(op.operands[0])}{mask}{more})")
