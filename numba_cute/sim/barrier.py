# SPDX-License-Identifier: Apache-2.0
"""mbarriers, the CTA's named barriers and the cluster's barrier, exact (PTX ISA, "mbarrier", "bar")."""

from __future__ import annotations

from typing import Any

from ..isa.instr import MBARRIER
from .clocks import INIT, READS, Gather
from .hazards import Access, Region, barrier_is_born
from .report import BarrierError, Place, count, who

MAX_COUNT = (1 << 20) - 1
"""The greatest expected count, and the bound of the pending bytes either way (PTX ISA, "mbarrier": contents)."""


class MBarrier:
    """The state of one mbarrier: its phase as a full number, pending arrivals and pending bytes."""

    __slots__ = ("address", "cta", "expected", "pending", "tx", "phase", "waiters", "announced", "delivered",
                 "arrivals", "before", "live", "born", "agent", "near", "far", "done", "seen", "unseen",
                 "senders")  # fmt: skip

    def __init__(self, address: int, cta: Any) -> None:
        self.address, self.cta, self.live = address, cta, False
        self.expected = self.pending = self.tx = self.phase = 0
        self.waiters: list[Any] = []
        self.announced = self.delivered = 0  # bytes in this phase
        self.arrivals: list[tuple[Any, Place, int]] = []  # in this phase: thread, place, count
        self.before: list[tuple[Any, Place, int]] = []  # in the phase before
        self.born: Any = None  # the access that initialised it
        self.agent = -1
        self.near: Any = None  # what arrivals of this CTA publish, and what peers may have overwritten
        self.far: Any = None  # what arrivals of peers publish at cluster scope
        self.done: Any = None  # both, as of the last completed phase
        self.seen = 0  # the completed phases that somebody has waited for
        self.senders: set[Any] = set()  # threads whose copies signal it
        self.unseen = 0  # how many phases completed before anybody waited for the one before

    def __str__(self) -> str:
        return f"mbarrier {self.cta.name(self.address)}"

    def begin(self, expected: int) -> None:
        self.live = True
        self.seen = 0
        self.expected = self.pending = expected
        self.tx = self.phase = self.announced = self.delivered = 0
        self.arrivals, self.before = [], []

    def settle(self, run: Any, by: str) -> None:
        """Complete the phase if nothing is pending, and wake those that wait."""
        if self.pending or self.tx:
            return
        late = run.cluster.inflight.credits(self, self.phase)
        if late:
            sent = self.delivered + late
            raise BarrierError(
                f"{self}: too few bytes announced: phase {self.phase} completes (by {by}) after "
                f"{self.delivered} bytes, "
                f"but copies of {count(late, 'byte')} more were issued to it and are in flight; the expected bytes "
                f"(tx_count) are {self.announced}, the copies deliver {sent}: {sent - self.announced} bytes too many"
            )
        if self.seen < self.phase and "phases" in run.checks:
            self.unseen += 1
            run.suspicions.append(
                f"{self}: phase {self.phase} completes (by {by}), but nobody has waited for phase {self.phase - 1}: "
                f"whoever waits for it now cannot tell the two apart"
            )
        self.phase += 1
        if self.near is not None:
            near = self.near.freeze().knowing(self.agent, self.phase)
            self.done = near, self.far.freeze()
        self.pending = self.expected
        self.announced = self.delivered = 0
        self.before, self.arrivals = self.arrivals or self.before, []
        waiters, self.waiters = self.waiters, []
        for t in waiters:
            run.cluster.wake(t)

    def access(self, m: Any) -> Access:
        """What a copy does that this phase counts: known to who has waited for the phase."""
        return Access(m, self.agent, self.agent + 1, self.phase + 1, MBARRIER, self)

    def missing(self) -> str:
        """What the current phase still lacks, in words."""
        lacks = []
        if self.pending:
            lacks.append(f"{self.pending} of {count(self.expected, 'arrival')} missing")
        if self.tx > 0:
            lacks.append(
                f"{count(self.tx, 'byte')} missing: {self.announced} announced (expect_tx), {self.delivered} delivered"
            )
        if self.tx < 0:
            lacks.append(
                f"{count(-self.tx, 'byte')} too many: {self.announced} announced (expect_tx), "
                f"{self.delivered} delivered"
            )
        return "; ".join(lacks) or "nothing is missing"


class BarrierHandle:
    """An mbarrier as one issue of an instruction sees it (isa.machine.Barrier)."""

    __slots__ = ("bar", "machine")

    def __init__(self, bar: MBarrier, machine: Any) -> None:
        self.bar, self.machine = bar, machine

    def live(self, what: str, asynchronous: bool = False) -> MBarrier:
        """The barrier, if it is one; an error if it was never initialised, or invalidated, or if that is not yet
        known here."""
        m = self.machine
        if self.bar.live and self.bar.born is not None and not m.deferred:
            if self.bar.born.cluster is m.cta.cluster and not barrier_is_born(self.bar, m, asynchronous):
                raise self._unborn(what, asynchronous)
            if m.cta is not self.bar.cta and not asynchronous:
                self.bar.cta.touched(m)
        if not self.bar.live:
            raise BarrierError(
                f"{self.bar} is not initialised: {m.describe()} {what} at {m.place}; one thread must mbarrier_init it "
                f"first, then fence (fence_mbarrier_init) and a CTA or cluster barrier"
            )
        return self.bar

    def _unborn(self, what: str, asynchronous: bool) -> BarrierError:
        m, born = self.machine, self.bar.born
        if asynchronous and all(born.known(t, READS) for t in m.clocks()):
            lacks = "its initialisation is not visible to the async proxy: missing fence.mbarrier_init"
            mend = "the initialising thread executes fence_mbarrier_init (mbarrier_init_fence) after it"
        else:
            lacks = "nothing orders that after its initialisation"
            mend = "fence_mbarrier_init in the initialising thread, then a barrier of the CTA or cluster"
        return BarrierError(
            f"{self.bar}: {m.row.name} of {m.describe()} {what} at {m.place}, but {lacks}\n"
            f"  it was initialised by {who(born.threads)} at {born.place}; {mend}"
        )

    def _fail(self, what: str) -> BarrierError:
        return BarrierError(f"{self.bar}: {what}; {self.machine.describe()} at {self.machine.place}")

    def init(self, expected: int) -> None:
        if not 1 <= expected <= MAX_COUNT:
            raise self._fail(f"arrival count {expected} is not in 1 to {MAX_COUNT}")
        if self.bar.live:
            raise self._fail("initialised again while it is a barrier; mbarrier_inval it first")
        self.bar.begin(expected)
        self.machine.run.events += 1
        self._born()

    def _born(self) -> None:
        bar, m = self.bar, self.machine
        if m.run.races is None:
            return
        cluster, c = m.cta.cluster, m.threads[0].clock
        bar.agent = cluster.new_agent()
        bar.near, bar.far, bar.done = Gather(cluster.clock0), Gather(cluster.clock0), None
        bar.born = Access(m, c.agent, c.agent + 1, c.epoch, None, bar)
        region = Region(bar.address, bar.address + 8)
        m.run.races.check(m, bar.cta.smem.shadow, region, True, by=m.run.races.add(bar.born))
        c.epoch += 1

    def inval(self) -> None:
        bar = self.live("invalidates it")
        if bar.waiters:
            raise self._fail(f"invalidated while {who(bar.waiters)} wait for it")
        bar.live = False

    def arrive(self, n: int = 1, tx: int = 0) -> int:
        bar, m = self.live("arrives"), self.machine
        if tx:
            self.expect_tx(tx)
        if not 1 <= n <= bar.pending:
            before = ", ".join(f"thread {t.index} at {p}" for t, p, _ in bar.arrivals[-4:])
            raise self._fail(
                f"{count(n, 'arrival')} in phase {bar.phase}, which has {bar.pending} of {bar.expected} pending: more "
                f"arrivals than the barrier was initialised for" + (f" (so far: {before})" if before else "")
            )
        token = bar.phase
        if bar.near is not None:
            self._publish(bar)
        bar.pending -= n
        bar.arrivals.append((m.threads[0], m.place, n))
        m.run.events += 1
        bar.settle(m.run, f"an arrival at {m.place}" if not bar.pending else "")
        return token

    def arrive_drop(self) -> None:
        bar = self.live("arrives for the last time")
        if bar.expected == 1:
            raise self._fail("mbarrier.arrive_drop of the last participant: no phase would ever want an arrival again")
        bar.expected -= 1
        self.arrive()

    def _publish(self, bar: MBarrier) -> None:
        """What the arriving threads have done becomes known to those who wait (PTX ISA: .release, and its scope)."""
        m = self.machine
        text = m.row.ptx if m.row is not None else ""
        clocks = m.clocks()
        if ".relaxed" in text:
            return
        if m.cta is bar.cta:
            bar.near.add(clocks)
        elif ".release.cluster" in text:
            bar.far.add(clocks)
        else:  # CTA scope, but another CTA: what was read may be overwritten (see mbarrier_arrive_peer), no more
            bar.near.add(clocks, (READS,))

    def _acquire(self, bar: MBarrier) -> None:
        m = self.machine
        near, far = bar.done
        m.acquire(near)
        m.acquire(far if m.row is not None and ".acquire.cluster" in m.row.ptx else far.only((READS,)))

    def expect_tx(self, tx: int) -> None:
        bar = self.live("expects bytes")
        bar.announced += tx
        self._add(bar, tx)

    def complete_tx(self, tx: int) -> None:
        bar = self.live("delivers bytes")
        bar.delivered += tx
        self._add(bar, -tx)
        bar.settle(self.machine.run, f"the bytes of the copy at {self.machine.place}")

    def _add(self, bar: MBarrier, tx: int) -> None:
        if abs(bar.tx + tx) > MAX_COUNT:
            raise self._fail(f"{bar.tx + tx} pending bytes exceed the range of +-{MAX_COUNT}")
        bar.tx += tx
        self.machine.run.events += 1

    def phase_done(self, parity: int) -> bool:
        if parity not in (0, 1):
            raise self._fail(f"waits for parity {parity}, which is neither 0 nor 1")
        bar = self.live("waits")
        done = (bar.phase & 1) != parity
        if done:
            bar.seen = bar.phase
            if bar.done is not None:
                self._acquire(bar)
        return done


class Rally:
    """One use of a named barrier: it ends when `expected` threads have arrived."""

    __slots__ = ("id", "expected", "arrived", "waiting", "done", "values", "who", "gather")

    def __init__(self, id: int, expected: int | None) -> None:
        self.id, self.expected, self.arrived, self.done = id, expected, 0, False
        self.waiting: list[Any] = []
        self.who: list[Any] = []
        self.values: list[Any] = []  # of syncthreads_count and the like
        self.gather: Any = None  # what the threads that arrive publish


class NamedBarriers:
    """The 16 barriers of a CTA."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.open: dict[int, Rally] = {}

    def arrive(self, m: Any, id: int, expected: int | None, wait: bool, value: Any = None) -> Rally:
        """Arrive with all of `m`'s threads, and wait for the others if `wait`."""
        if not 0 <= id <= 15:
            raise BarrierError(f"named barrier {id} is not in 0 to 15; {m.describe()} at {m.place}")
        if expected is not None and (expected < 1 or expected % 32):
            raise BarrierError(f"named barrier {id}: {expected} threads is no multiple of 32; at {m.place}")
        size = -(-len(m.cta.threads) // 32) * 32
        if expected is not None and expected > size:
            raise BarrierError(
                f"named barrier {id}: {m.describe()} waits for {expected} threads at {m.place}, but the block has "
                f"{len(m.cta.threads)}"
            )
        rally = self.open.setdefault(id, Rally(id, expected))
        if rally.expected != expected:
            raise BarrierError(
                f"named barrier {id}: {m.describe()} arrives for {expected or 'all'} threads at {m.place}, but "
                f"{who(rally.who)} arrived for {rally.expected or 'all'}"
            )
        rally.arrived += len(m.threads)
        rally.who.extend(m.threads)
        rally.values.append(value)
        if m.run.races is not None:
            rally.gather = rally.gather or Gather(m.cta.cluster.clock0)
            rally.gather.add([t.clock for t in m.threads])
        if expected is not None and rally.arrived > expected:
            raise BarrierError(f"named barrier {id}: {rally.arrived} threads arrived for {expected}; at {m.place}")
        m.run.events += 1
        self.check(rally)
        if wait and not rally.done:
            t = m.run.thread
            rally.waiting.append(t)
            t.suspend("syncthreads" if expected is None else f"named barrier {id}", rally, m)
        if wait and rally.gather is not None:
            m.acquire(rally.gather.freeze())
        return rally

    def check(self, rally: Rally) -> None:
        """End the rally if all have come. Threads that exited count as come where all of the CTA are meant."""
        need = self.cta.live if rally.expected is None else rally.expected
        if rally.arrived < need or not rally.arrived:
            return
        rally.done = True
        del self.open[rally.id]
        for t in rally.waiting:
            self.cta.cluster.wake(t)

    def thread_exited(self) -> None:
        for rally in [r for r in self.open.values() if r.expected is None]:
            self.check(rally)


class ClusterBarrier:
    """barrier.cluster: every thread of the cluster arrives once, then waits once."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.phase = 0
        self.arrived = 0
        self.waiting: list[Any] = []
        self.gather: Any = None  # what the threads that arrive publish
        self.done: Any = None

    def _publish(self, m: Any, release: bool) -> None:
        """Arriving publishes all (.release), or only that the thread runs, and what its fences did (.relaxed)."""
        self.gather = self.gather or Gather(self.cluster.clock0)
        for t in m.threads:
            self.gather.add([t.clock], None if release else (INIT,))
            if not release and t.clock.published is not None and t.clock.published[0] > 0:
                self.gather.clock = self.gather.clock.join(t.clock.published[2])

    def arrive(self, m: Any, release: bool = True) -> None:
        for t in m.threads:
            if t.cluster_phase is not None:
                raise BarrierError(
                    f"barrier.cluster: {who([t])} arrives twice without waiting in between; at {m.place}"
                )
            t.cluster_phase = self.phase
        if m.run.races is not None:
            self._publish(m, release)
        self.arrived += len(m.threads)
        m.run.events += 1
        self.check()

    def check(self) -> None:
        if self.arrived and self.arrived >= len(self.cluster.live):
            self.phase += 1
            self.arrived = 0
            self.done = self.gather.freeze() if self.gather else None
            waiting, self.waiting = self.waiting, []
            for t in waiting:
                self.cluster.wake(t)

    def wait(self, m: Any) -> None:
        for t in m.threads:
            if t.cluster_phase is None:
                raise BarrierError(f"barrier.cluster: {who([t])} waits without having arrived; at {m.place}")
        token = m.threads[0].cluster_phase
        while self.phase == token:
            self.waiting.append(m.run.thread)
            m.run.thread.suspend("barrier.cluster.wait", self, m)
        for t in m.threads:
            t.cluster_phase = None
        if self.done is not None:
            m.acquire(self.done)
