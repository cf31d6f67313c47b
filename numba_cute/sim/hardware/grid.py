# SPDX-License-Identifier: Apache-2.0
"""Threads, warps, CTAs and clusters, and the scheduler that runs one cluster: one greenlet a thread.

A thread runs until it must wait; nothing else interrupts it, so that a run is deterministic. A seed changes which
ready thread goes next. When no thread can run, work in flight completes, one operation at a time; when there is none
either, the kernel is dead and the report says why.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from greenlet import greenlet

from ...isa.form.instr import CTA, WARP, WARPGROUP
from ...isa.form.limits import check_cooperative, launched_registers, too_many_registers
from ...isa.form.targets import asked, named
from ..ground.clocks import Clock, ThreadClock
from ..ground.report import BarrierError, SimError
from .address_spaces import GlobalMemory, SharedMemory
from .barrier import ClusterBarrier, MBarrier, NamedBarriers
from .deadlock import deadlock
from .gpu import Gpu
from .inflight import InFlight
from .schedule import schedule
from .threads import Thread, Unit
from .tma_table import TensorMaps
from .tmem import check_freed, check_pair
from .together import Together
from .watch import Check, Watch

IDLE_TURNS = 20_000
"""The number of turns that polling threads get while nothing at all happens before they count as stuck (half a
second)."""
PARK_TURNS = 2
"""The number of turns that each of them gets before the other clusters of the grid are tried."""
YIELDS = 4
"""The number of pausing threads that may go on before the others while nothing happens: copies wait until no thread
can."""
BUSY_TURNS = 500_000
"""The same while only they themselves change memory, and no other thread goes on or ends (a spin without progress)."""


class Cta:
    """A CTA: its threads, shared memory and barriers."""

    def __init__(self, cluster: Cluster, rank: int, index: tuple[int, int, int], run: Run) -> None:
        self.cluster, self.rank, self.index = cluster, rank, index
        self.threads = [Thread(self, n, tid) for n, tid in enumerate(run.places)]
        self.live = len(self.threads)
        self.smem = SharedMemory(self, run.smem)
        self.mbarriers: dict[int, MBarrier] = {}
        self.named = NamedBarriers(self)
        self.unit = Unit(CTA, self.threads)
        self.warps = [self._unit(WARP, at, 32) for at in range(0, self.live, 32)]
        self.warpgroups = [self._unit(WARPGROUP, at, 128) for at in range(0, self.live - 127, 128)]
        self.names: list[tuple[int, int, str]] = []
        self.slabs: dict[Any, list[Any]] = {}
        self.tmem: Any = None

    def free(self) -> None:
        """Give the memory back when the CTA has ended; what is known of its accesses still names it."""
        self.smem.free()
        self.tmem = None
        self.slabs.clear()

    @property
    def default_registers(self) -> int:
        """The most that each thread may have at the start: as many as a kernel that uses setmaxnreg is given."""
        run = self.cluster.run
        return launched_registers(run.target, len(self.threads), run.bounds)

    @property
    def register_pool(self) -> int:
        """The registers that the warps share out among them."""
        return len(self.threads) * self.default_registers

    def registers_without(self, warps: Iterable[Unit]) -> int:
        """Count the registers that the other warps hold."""
        return sum(len(w.threads) * self.registers_of(w) for w in self.warps if w not in warps)

    def registers_of(self, unit: Unit, wanted: bool = False) -> int:
        """The registers of each thread of a warp, the most of a warpgroup's. wanted: those that it waits for too."""
        warps = {t.warp for t in unit.threads[::32]}
        return max((wanted and w.wanted) or w.registers or self.default_registers for w in warps)

    def too_many_registers(self) -> str | None:
        """Say that the warpgroups ask for more registers than there are; None if they do not."""
        if not any(w.wanted for w in self.warps):
            return None
        run, asked = self.cluster.run, [self.registers_of(g, True) for g in self.warpgroups]
        return too_many_registers(run.target, asked, len(self.threads), run.bounds)

    def _unit(self, kind: str, at: int, size: int) -> Unit:
        unit = Unit(kind, self.threads[at : at + size])
        for t in unit.threads:
            if kind == WARP:
                t.warp = unit
            else:
                t.warpgroup = unit
        return unit

    def mbarrier(self, address: int) -> MBarrier:
        bar = self.mbarriers.get(address)
        if bar is None:
            if address % 8:
                raise BarrierError(f"mbarrier {self.name(address)}: its address is not a multiple of 8")
            bar = self.mbarriers[address] = MBarrier(address, self)
        return bar

    def note(self, address: int, nbytes: int, name: str) -> None:
        if (address, nbytes, name) not in self.names:
            self.names.append((address, nbytes, name))

    def name(self, address: int) -> str:
        """A shared address in words: the smallest named range that holds it, and the address."""
        held = [(n, a, name) for a, n, name in self.names if a <= address < a + n]
        where = f"{address:#x}" + (f" of CTA {self.rank}" if self.cluster.size > 1 else "")
        if not held:
            return f"at {where}"
        nbytes, start, name = min(held, key=lambda h: h[0])
        bar = self.mbarriers.get(address)
        offset = address - start
        inside = f"[{offset // 8}]" if bar is not None and nbytes > 8 else f" + {offset} bytes" if offset else ""
        return f"{name}{inside} ({where})"


class Run:
    """One launch, of a kernel on each of its `gpus`: what all its clusters share, and the thread that runs now.
    checked: the front end has been there."""

    def __init__(
        self, name: str, arch: str, grid: tuple[int, int, int], block: tuple[int, int, int],
        cluster: tuple[int, int, int], smem: int, seed: int | None, mode: str, memory: GlobalMemory,
        maps: TensorMaps, checks: Iterable[type[Check]], ranks: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.arch, self.grid, self.block, self.cluster_shape = name, arch, grid, block, cluster
        bx, by, bz = block
        self.places = [(n % bx, n // bx % by, n // (bx * by)) for n in range(bx * by * bz)]  # of a block's threads
        self.smem, self.mode, self.memory, self.maps, self.checked = smem, mode, memory, maps, False
        self.target = asked() or named(arch)
        self.bounds = self.takes = None  # type: Any  # the kernel's launch_bounds, and what makes its tensors
        self.cooperative = False  # whether all CTAs are to run at once, as the launch or the kernel asks
        self.fallback: Any = None  # the shape of clusters that may be made in the place of one of `cluster_shape`
        self.trace: Any = None
        self.alone = ""  # why the lanes of a warp run one by one
        self.clustered = True  # whether the launch names a cluster
        self.reports = True  # whether its errors are told: those of threads that run together are found again alone
        self.convoy: Any = None  # what makes a convoy of a CTA's threads, if they run together: see sharing.why_alone
        self.computed = self.repeated = 0  # values of lanes, the first time and again (see convoy.WORTH)
        self.seed = seed
        self.rng = random.Random(seed) if seed is not None else None
        self.choices: Any = None  # see schedule.Choices
        self.plan: Any = None  # see exploring.recorder
        self.thread: Any = None
        self.cluster: Any = None
        self.set_by: dict[int, int] = {}  # of several ranks, by address, the one whose atomic has set it last
        self.known: dict[int, Any] = {}  # what each rank knows of earlier launches of a sequence, if it is remembered
        self.remembers = False  # whether it is to be remembered of this one
        self._last = -1  # the rank on which a cluster began last
        self.gpus = [Gpu(self, rank) for rank in range(ranks)]
        self.events = 0  # counts everything that may let a polling thread go on
        self.steps = self.clock = 0  # steps: counts what polling threads do by themselves (see `progress`)
        self.watch = Watch(check(self) for check in checks)
        self.undefined = False  # whether lanes that run together tell which registers nobody has written
        self.clocks = self.watch.clocks  # whether threads keep count of what they know of each other's accesses
        self.noted = 1  # the number of the next access that a check notes
        self.suspicions: list[str] = []  # what to warn of, if the launch ends without an error
        self.cta_group: Any = None  # of the first tcgen05 instruction: it, its name and where it is
        self.smem_need = 0  # the bytes of dynamic shared memory that the kernel's allocations take
        self.smem_places: dict[Any, tuple[int, int]] = {}  # where dynamic shared memory begins, by who asked, and bytes
        self.smem_allocator = False  # whether an allocator gives out the same
        self.extensions: Any = None  # what the user overloaded in Numba (see python.extensions)
        self.left: dict[Any, Any] = {}  # what was released, by location (see ordering.Left)

    @property
    def to_start(self) -> int:
        """The most clusters that may still start."""
        return sum(gpu.to_start for gpu in self.gpus)

    def next_gpu(self, some: list[Gpu]) -> Gpu:
        """Return the one of some GPUs on which a cluster begins next: each in turn, or another by choice."""
        if len(some) == 1:
            return some[0]
        first = next((i for i, gpu in enumerate(some) if gpu.rank > self._last), 0)
        if self.choices is not None:
            first += self.choices.among(len(some))
        elif self.rng is not None:
            first += self.rng.randrange(len(some))
        found = some[first % len(some)]
        self._last = found.rank
        return found

    @property
    def shared(self) -> bool:
        """Tell whether the threads of a CTA run together."""
        return self.convoy is not None

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def check_resident(self, smem: int) -> None:
        """Raise a CuteError if all CTAs are to run at once, and the target has no room. smem: the bytes that one is
        known to take."""
        if self.cooperative:
            check_cooperative(self.target, self.grid, self.block, smem)


class Cluster:
    """The CTAs that run at once on a GPU, their greenlets and what they wait for. rank: the GPU's."""

    def __init__(self, gpu: Gpu, coord: tuple[int, int, int], shape: tuple[int, int, int]) -> None:
        run = gpu.run
        self.run, self.gpu, self.rank, self.coord, self.shape = run, gpu, gpu.rank, coord, shape
        self.of_rank = gpu.of_rank
        cx, cy, cz = shape
        self.size = cx * cy * cz
        self.inflight = InFlight()
        self.ctas = []
        for rank in range(self.size):
            at = (rank % cx, rank // cx % cy, rank // (cx * cy))
            index = tuple(c * n + i for c, n, i in zip(coord, shape, at))
            self.ctas.append(Cta(self, rank, index, run))  # type: ignore[arg-type]
        self.threads = [t for c in self.ctas for t in c.threads]
        self.unit = Unit("cluster", self.threads)
        self.agents = len(self.threads)  # those given out
        self.clock0 = Clock.zero(self, self.agents + 64, run.known.get(self.rank))
        if run.clocks:
            for agent, t in enumerate(self.threads):
                t.clock = ThreadClock(agent, self.clock0)
        self.live = set(self.threads)
        self.barrier = ClusterBarrier(self)
        self.ready: Any = schedule([] if run.shared else self.threads, run)
        self.polled: list[Thread] = []
        self.pollers: list[Thread] = []
        self.at_grid: list[Thread] = []  # those that wait for the whole grid
        self.scheduler: Any = None
        self._start: Any = None
        self._idle = (0, 0)
        self.refused: list[tuple[int, int]] = []  # responses that no cluster was left to cancel: their (agent, epoch)
        self.company = False  # whether there are other clusters that may run while this one waits for them
        self.parked = False
        self.aside = False  # whether it lets other ranks go on
        self._yields = (0, 0)  # how often threads that paused went on at once since something happened: (events, count)
        self._busy = 0  # turns of polling threads since another went on, or one ended

    def execute(self, start: Callable[[Thread], Callable[[], list[Thread]]]) -> None:
        """Run every thread to its end; `start(thread)` gives what it executes, which gives the threads that end."""
        run, self.scheduler, self._start = self.run, greenlet.getcurrent(), start
        run.cluster = self
        for cta in self.ctas if run.shared else ():
            for threads in [cta.threads] if run.seed is None else [w.threads for w in cta.warps]:
                self.spawn(run.convoy(self, threads))
        for thread in self.threads if not run.shared else ():
            thread.greenlet = greenlet(start(thread))
        try:
            while self.live:
                t = self._next()
                if t is None:
                    if self._advance():
                        continue
                    if self.parked:  # others may do what these threads wait for: see cooperative.execute
                        self.scheduler.parent.switch()
                        run.cluster, self.parked, self._idle = self, False, (run.events, 0)
                        continue
                    if not self.at_grid or sum(len(self._with(t)) for t in self.at_grid) < len(self.live):
                        raise self.dead_end()
                    self.scheduler.parent.switch()  # see cooperative.execute
                    run.cluster = self
                    continue
                run.thread = t
                if run.trace is not None and t.wait is not None:
                    run.trace.resumes(t)
                t.wait = None
                runs = t.greenlet
                ended = runs.switch()
                if runs.dead:
                    self._exited(ended)
                if self.aside:
                    self.aside, self.parked = False, True
                    self.scheduler.parent.switch()
                    run.cluster, self.parked = self, False
            self.inflight.flush()
            self._check_end()
            for cta in self.ctas:
                cta.free()
        except SimError:
            raise
        except Exception as e:
            for tell in run.watch.fails:
                tell(self, e)
            raise
        finally:
            self._kill()

    def _next(self) -> Thread | None:
        if not self.ready:
            return None
        run = self.run
        if run.mode == "random" and run.rng is not None and run.rng.random() < 0.05:
            self.inflight.complete_some(run.rng)
        return self.ready.next()  # type: ignore[no-any-return]

    def _advance(self) -> bool:
        """No thread is ready: let something happen."""
        still: list[Thread] = []
        for t in self.polled:
            (self.ready if t.wait is None or t.wait.ready is None or t.wait.ready() else still).append(t)
        self.polled = still
        if self.ready:
            return True
        done = self.inflight.complete_copy(self.run.rng)
        if not self.pollers:
            return done
        turns = self._idle[1] + len(self.pollers) if self._idle[0] == self.run.events else 0
        self._idle = (self.run.events, turns)
        self._busy = 0 if done else self._busy + len(self.pollers)
        if turns > (PARK_TURNS * len(self.pollers) if self.company else IDLE_TURNS) or self._busy > BUSY_TURNS:
            self.parked = self.company and self._busy <= BUSY_TURNS
            return False
        self.ready.extend(self.pollers)
        self.pollers = []
        return True

    def spawn(self, convoy: Together) -> None:
        """Let some lanes of a warp run on a greenlet of their own."""
        for t in convoy.members:
            t.convoy = convoy
        leader = convoy.members[0]
        leader.greenlet = greenlet(self._start(leader), self.scheduler)
        self.ready.append(leader)

    @staticmethod
    def _with(t: Thread) -> list[Thread]:
        """The threads on the greenlet of one."""
        return t.convoy.members if t.convoy is not None else [t]

    def paused(self, t: Thread) -> None:
        """A thread lets others run, and goes on after them all, or in an order other than the usual one among them."""
        since, count = self._yields
        self._yields = (self.run.events, count + 1 if since == self.run.events else 1)
        if self._yields[1] <= YIELDS and self.ready and self.ready.again():
            self.ready.append(t)
        else:
            self.pollers.append(t)

    def steps_aside(self, t: Thread) -> None:
        """A thread has told other ranks something: with a seed, or by choice, they go on before its cluster does."""
        run, f = self.run, t.convoy
        if len(run.gpus) == 1 or f is not None and (f.by_turns is not None or f.masks):
            return
        if run.choices.among(2) if run.choices is not None else run.rng is not None and run.rng.random() < 0.5:
            self.aside = True
            self.ready.append(t)
            t.suspend("others to go on", None, None)

    def dead_end(self) -> SimError:
        for t in self.live:  # those that wait together wait for the same
            leader = self._with(t)[0]
            t.wait, t.greenlet = leader.wait, leader.greenlet
        return deadlock(self)

    def new_agent(self) -> int:
        self.agents += 1
        return self.agents - 1

    def wake(self, t: Thread) -> None:
        self._busy = 0
        if self.run.trace is not None:
            self.run.trace.wakes(t, self.run.thread)
        self.ready.append(t)

    def wake_others(self, threads: Iterable[Thread]) -> None:
        """Wake those of `threads` that do not run now."""
        me = self.run.thread
        for t in threads:
            if t is not me and (t.convoy is None or t is t.convoy.members[0]):
                self.wake(t)

    def _exited(self, threads: list[Thread]) -> None:
        """Threads of one CTA have ended."""
        cta = threads[0].cta
        self.live.difference_update(threads)
        self._busy = 0
        cta.live -= len(threads)
        if not cta.live:
            check_freed(cta)
            for tell in self.run.watch.exits:
                tell(cta)
        self.run.events += len(threads)
        cta.named.thread_exited()
        self.barrier.check()

    def _check_end(self) -> None:
        for tell in self.run.watch.ends:
            tell(self)
        for cta in self.ctas:
            for bar in cta.mbarriers.values():
                if bar.live and bar.tx and not bar.idle:
                    raise BarrierError(f"{bar}: the kernel ended in phase {bar.phase} with {bar.missing()}")
            check_pair(self.run, cta)

    def _kill(self) -> None:
        for t in self.threads if self.live or not self.run.shared else ():
            if t.greenlet is not None and not t.greenlet.dead and t.greenlet:
                self.run.thread = t
                t.greenlet.throw()
            t.greenlet = None
        self.run.thread = None
