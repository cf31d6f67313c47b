# SPDX-License-Identifier: Apache-2.0
"""mbarriers, the CTA's named barriers and the cluster's barrier, exact (PTX ISA, "mbarrier", "bar")."""

from __future__ import annotations

from typing import Any

from ...isa.form.instr import MBARRIER, RELAXED, RELEASE
from ..ground.access import Access
from ..ground.clocks import FULL, INIT, READS, Gather
from ..ground.ordering import CLUSTER, published
from ..ground.report import BarrierError, Place, count, who
from .together import who_waits

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
        self.senders: dict[Any, int] = {}  # threads whose copies signal it, and the last phase in which they did
        self.unseen = 0  # how many phases were seen to complete before anybody waited for the one before

    def __str__(self) -> str:
        return f"mbarrier {self.cta.name(self.address)}"

    def begin(self, expected: int) -> None:
        self.live = True
        self.seen = 0
        self.expected = self.pending = expected
        self.tx = self.phase = self.announced = self.delivered = 0
        self.arrivals, self.before = [], []

    def will_send(self, threads: Any) -> None:
        """Note that what these threads have issued in this phase will signal it."""
        self.senders.update(dict.fromkeys(threads, self.phase))

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
        for tell in run.watch.completes_phase:
            tell(self, by)
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
        """Give the access of a copy that this phase counts: whoever has waited for the phase knows of it."""
        return Access(m, self.agent, self.agent + 1, self.phase + 1, MBARRIER, self)

    @property
    def idle(self) -> bool:
        """Say whether a phase was announced after others had completed, and nothing followed: the producers of the CuTe
        DSL leave their last barrier in this state (`producer_tail` acquires it once more). A thread that waits for it
        hangs, and is reported."""
        return self.phase > 0 and self.tx > 0 and not self.delivered

    def missing(self) -> str:
        """Say what the current phase still lacks."""
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
        if self.bar.live and not m.deferred:
            for tell in m.run.watch.uses_barrier:
                tell(m, self.bar, what, asynchronous)
        if not self.bar.live:
            raise BarrierError(
                f"{self.bar} is not initialised: {m.describe()} {what} at {m.place}; one thread must mbarrier_init it "
                f"first, then fence (fence_mbarrier_init) and a CTA or cluster barrier"
            )
        return self.bar

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
        if not m.run.clocks:
            return
        cluster, c = m.cta.cluster, m.threads[0].clock
        bar.agent = cluster.new_agent()
        bar.near, bar.far, bar.done = Gather(cluster.clock0), Gather(cluster.clock0), None
        bar.born = Access(m, c.agent, c.agent + 1, c.epoch, None, bar)
        for tell in m.run.watch.begins_barrier:
            tell(m, bar)
        c.epoch += 1

    def inval(self) -> None:
        bar = self.live("invalidates it")
        if bar.waiters:
            raise self._fail(f"invalidated while {who(bar.waiters)} wait for it")
        bar.live = False
        for tell in self.machine.run.watch.ends_barrier:
            tell(self.machine, bar)
        if bar.born is not None:  # its memory is free, also for the next barrier there
            bar.born.on = None

    def expect_arrival(self) -> None:
        """The current phase wants one arrival more."""
        bar = self.live("arrives")
        if bar.pending >= MAX_COUNT:
            raise self._fail(f"{bar.pending + 1} pending arrivals exceed the range of {MAX_COUNT}")
        bar.pending += 1
        for tell in self.machine.run.watch.announces:
            tell(self.machine, bar)

    def arrive(self, n: int = 1, tx: int = 0, publish: bool = True) -> int:
        bar, m = self.live("arrives"), self.machine
        if tx:
            self.expect_tx(tx)
        if not 1 <= n <= bar.pending:
            before = ", ".join(f"thread {t.index} at {p}" for t, p, _ in bar.arrivals[-4:])
            twice = [p for t, p, _ in bar.arrivals if t in m.threads]
            own = (
                f"; {who(m.threads)} has arrived in this phase before, at {twice[-1].short}: its state was not "
                f"advanced, or it commits, or releases, twice" if twice else ""
            )  # fmt: skip
            raise self._fail(
                f"{count(n, 'arrival')} in phase {bar.phase}, which has {bar.pending} of {bar.expected} pending: more "
                f"arrivals than the barrier was initialised for" + (f" (so far: {before})" if before else "") + own
            )
        token = bar.phase
        if bar.near is not None and publish:
            self._publish(bar)
        bar.pending -= n
        bar.arrivals.append((m.threads[0], m.place, n))
        for tell in m.run.watch.arrives:
            tell(m, bar)
        m.run.events += 1
        bar.settle(m.run, f"an arrival at {m.place}" if m.run.reports and not bar.pending else "")
        return token

    def arrive_drop(self) -> None:
        bar = self.live("arrives for the last time")
        if bar.expected == 1:
            raise self._fail("mbarrier.arrive_drop of the last participant: no phase would ever want an arrival again")
        bar.expected -= 1
        self.arrive()

    def _publish(self, bar: MBarrier) -> None:
        """Let those who wait know what the arriving threads have done (PTX ISA: .release, and its scope)."""
        m = self.machine
        sem, scope = m.order
        clocks = m.clocks()
        if sem == RELAXED:
            self._publish_fenced(bar)
            return
        if m.cta is bar.cta:
            bar.near.add(clocks)
        elif sem == RELEASE and scope == "cluster":
            bar.far.add(clocks)
        else:  # CTA scope, but another CTA: what was read may be overwritten (see mbarrier_arrive), no more
            bar.near.add(clocks, (READS,))

    def _publish_fenced(self, bar: MBarrier) -> None:
        """A relaxed operation releases no more than what fences before it published (PTX ISA, "Release patterns")."""
        for t in self.machine.threads:
            for reach, clock in published(t.clock):
                if self.machine.cta is bar.cta:
                    bar.near.clock = bar.near.clock.join(clock)
                if reach >= CLUSTER:
                    bar.far.clock = bar.far.clock.join(clock)

    def _acquire(self, bar: MBarrier) -> None:
        m = self.machine
        near, far = bar.done
        m.acquire(near)
        m.acquire(far if m.order.scope == "cluster" else far.only((READS,)))

    def expect_tx(self, tx: int) -> None:
        bar = self.live("expects bytes")
        bar.announced += tx
        for tell in self.machine.run.watch.announces:
            tell(self.machine, bar)
        self._add(bar, tx)

    def complete_tx(self, tx: int) -> None:
        bar, m = self.live("delivers bytes"), self.machine
        bar.delivered += tx
        for tell in m.run.watch.delivers:
            tell(m, bar)
        if bar.near is not None and not m.deferred:  # by a thread, not by a copy
            self._publish_fenced(bar)
        self._add(bar, -tx)
        bar.settle(m.run, f"the bytes of the copy at {m.place}" if m.run.reports and not bar.pending else "")

    def _add(self, bar: MBarrier, tx: int) -> None:
        if abs(bar.tx + tx) > MAX_COUNT:
            raise self._fail(f"{bar.tx + tx} pending bytes exceed the range of +-{MAX_COUNT}")
        bar.tx += tx
        self.machine.run.events += 1

    def phase_done(self, parity: int) -> bool:
        if parity not in (0, 1):
            raise self._fail(f"waits for parity {parity}, which is neither 0 nor 1")
        bar, m = self.live("waits"), self.machine
        done = (bar.phase & 1) != parity
        for tell in m.run.watch.tests_phase:
            tell(m, bar, parity)
        if done and any([deny(m, bar) for deny in m.run.watch.denies]):
            return False
        if done:
            bar.seen = bar.phase
            for tell in m.run.watch.sees_phase:
                tell(m, bar)
            if bar.done is not None:
                self._acquire(bar)
        return done


class Rally:
    """One use of a named barrier: it ends when `expected` threads have arrived."""

    __slots__ = ("id", "expected", "arrived", "waiting", "done", "values", "who", "gather", "places")

    def __init__(self, id: int, expected: int | None) -> None:
        self.id, self.expected, self.arrived, self.done = id, expected, 0, False
        self.places: list[Any] = []  # where each of `who` arrived
        self.waiting: list[Any] = []
        self.who: list[Any] = []
        self.values: list[Any] = []  # of syncthreads_count and the like
        self.gather: Any = None  # what the threads that arrive publish


class NamedBarriers:
    """The 16 barriers of a CTA."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.open: dict[int, Rally] = {}
        self.last: dict[int, tuple[Rally, int, int]] = {}  # the use before: its rally, agent and number

    def arrive(self, m: Any, id: int, expected: int | None, wait: bool, value: Any = None) -> Rally:
        """Arrive with all of `m`'s threads, and wait for the others if `wait`."""
        if not 0 <= id <= 15:
            raise BarrierError(f"named barrier {id} is not in 0 to 15; {m.describe()} at {m.place}")
        if expected is not None and (expected < 1 or expected % 32):
            raise BarrierError(f"named barrier {id}: {expected} threads is not a multiple of 32; at {m.place}")
        size = -(-len(m.cta.threads) // 32) * 32
        if expected is not None and expected > size:
            raise BarrierError(
                f"named barrier {id}: {m.describe()} waits for {expected} threads at {m.place}, but the block has "
                f"{len(m.cta.threads)}"
            )
        for come in m.run.watch.comes_to_named:
            come(m)
        rally = self.meeting(id, expected)
        if rally.expected != expected:
            raise BarrierError(
                f"named barrier {id}: {m.describe()} arrives for {expected or 'all'} threads at {m.place}, but "
                f"{who(rally.who)} arrived for {rally.expected or 'all'} at {rally.places[0]}"
            )
        for tell in m.run.watch.arrives_named:
            tell(m, self, rally, wait)
        if m.run.clocks:
            rally.gather = rally.gather or Gather(m.cta.cluster.clock0)
            rally.gather.add(m.own_clocks())
        rally.arrived += len(m.threads)
        rally.who.extend(m.threads)
        rally.places.append(m.place)
        rally.values.append(value)
        if expected is not None and self._counted(rally) > expected:
            raise BarrierError(
                f"named barrier {id}: {self._counted(rally)} threads arrived for {expected}; at {m.place}"
            )
        m.run.events += 1
        self.check(rally)
        if wait and not rally.done:
            t = who_waits(m.run)
            rally.waiting.append(t)
            t.suspend("syncthreads" if expected is None else f"named barrier {id}", rally, m)
        if wait and rally.gather is not None:
            m.acquire(rally.gather.freeze())
        for tell in m.run.watch.leaves_named if wait else ():
            tell(m, self, rally)
        return rally

    def overfull(self, id: int, expected: int | None, more: int) -> bool:
        """Tell whether so many threads of several warps would be more than a barrier waits for."""
        rally = self.open.get(id)
        return expected is not None and more > 32 and more + (rally.arrived if rally else 0) > expected

    def meeting(self, id: int, expected: int | None) -> Rally:
        """Give the use of a barrier to which threads are coming, or begin one."""
        rally = self.open.get(id)
        if rally is None:
            rally = self.open[id] = Rally(id, expected)
        return rally

    def check(self, rally: Rally) -> None:
        """End the rally if all have come. Threads that exited count as come where all of the CTA are meant."""
        need = self.cta.live if rally.expected is None else rally.expected
        if (rally.arrived if rally.expected is None else self._counted(rally)) < need or not rally.arrived:
            return
        rally.done = True
        del self.open[rally.id]
        if rally.gather is not None:
            _, agent, n = self.last.get(rally.id) or (None, self.cta.cluster.new_agent(), 0)
            self.last[rally.id] = rally, agent, n + 1
            rally.gather.know(agent, n + 1, (READS, FULL))
        for t in rally.waiting:
            self.cta.cluster.wake(t)

    def _counted(self, rally: Rally) -> int:
        """Count the arrivals as the hardware does, by whole warps: the last warp of a block that is not a multiple of
        32 counts for 32 once all of its threads have come."""
        over = len(self.cta.threads) % 32
        last = self.cta.threads[-1].warp
        whole = over and sum(t.warp is last for t in rally.who) == over
        return rally.arrived + 32 - over if whole else rally.arrived

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
        self.gather.add(m.own_clocks(), None if release else (INIT,))
        for t in m.threads if not release else ():
            for reach, clock in published(t.clock):
                if reach >= CLUSTER:
                    self.gather.clock = self.gather.clock.join(clock)

    def arrive(self, m: Any, release: bool = True) -> None:
        for t in m.threads:
            if t.cluster_phase is not None:
                raise BarrierError(
                    f"barrier.cluster: {who([t])} arrives twice without waiting in between; at {m.place}"
                )
            t.cluster_phase = self.phase
        if m.run.clocks:
            self._publish(m, release)
        for tell in m.run.watch.arrives_cluster:
            tell(m, self.phase)
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
            self.waiting.append(who_waits(m.run))
            m.run.thread.suspend("barrier.cluster.wait", self, m)
        for t in m.threads:
            t.cluster_phase = None
        if self.done is not None:
            m.acquire(self.done)
        for tell in m.run.watch.leaves_cluster:
            tell(m, token)
