# SPDX-License-Identifier: Apache-2.0
"""Record the steps of each thread of the first cluster, and their times by the order that synchronisation makes: the
pictures of a proof are drawn from these.

Time counts steps, each of which takes one and begins as soon as what it waits for is over; work under way takes one
more. So the order in which the run came to do things does not show.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from os.path import basename
from typing import Any, NamedTuple

from ..ground.report import count, ranges
from ..hardware.watch import Check

Key = tuple[str, str, str]
"""A step as its source has it, alike in all rounds of a loop: its kind (of `KINDS`), what it does, and where."""

KINDS = {
    "wait": "waits", "signal": "signals", "copy": "copies", "multiply": "multiplies", "access": "accesses memory",
    "other": "something else",
}  # fmt: skip


class Raw:
    """A step of a thread as it is recorded. what: in words, where {} stands for `on`, an mbarrier or a memory with an
    address. signals: mbarriers that will be signalled."""

    __slots__ = ("kind", "what", "on", "place", "start", "end", "signals", "issue")

    def __init__(self, kind: str, what: str, on: Any, place: Any, start: int, end: int) -> None:
        self.kind, self.what, self.on, self.place, self.start, self.end = kind, what, on, place, start, end
        self.signals: list[Any] = []
        self.issue: Any = None


class Span(NamedTuple):
    """A piece of memory in use. space: "shared" or "tensor". cta: whose. name: of what is there, or "". start, stop:
    bytes or columns. begin, end: steps. warp: who, by CTA and number. how: with what instruction, where. stage: the
    name, stage and phase of the barrier that the write signals."""

    space: str
    cta: int
    name: str
    start: int
    stop: int
    begin: int
    end: int
    writes: bool
    warp: tuple[int, int]
    how: str
    stage: Any


class Warp(NamedTuple):
    """The steps of a warp's lanes. steps: for each lane that did anything, keys with their times."""

    cta: int
    number: int
    threads: int
    steps: dict[int, tuple[tuple[Key, int, int], ...]]


class Use(NamedTuple):
    """One use of an mbarrier by a thread. barrier: its name, without the stage. how: "arrives", "waits" …"""

    barrier: str
    cta: int
    stage: int
    thread: tuple[int, int]
    how: str
    place: str


class Record(NamedTuple):
    """The first cluster of a launch. barriers: by name, CTA and stage the arrivals and bytes of each phase."""

    warps: tuple[Warp, ...]
    spans: tuple[Span, ...]
    uses: tuple[Use, ...]
    barriers: dict[tuple[str, int, int], tuple[tuple[int, int], ...]]


class Recording(Check):
    """Records the first cluster that comes. record: what it did, once it has ended."""

    name = "recording"
    summary = "what each thread does, for pictures"
    clocks = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.record: Record | None = None
        self._cluster: Any = None
        self._steps: dict[Any, list[Raw]] = defaultdict(list)
        self._time: dict[Any, int] = defaultdict(int)
        self._phases: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
        """By mbarrier, named barrier's use or phase of the cluster's: when it is complete, and when its next one is."""
        self._counts: dict[Any, list[tuple[int, int]]] = {}
        self._announced: dict[Any, int] = {}
        self._promised: dict[Any, list[int]] = defaultdict(list)
        self._groups: dict[Any, dict[int, int]] = defaultdict(dict)
        self._spans: list[tuple[Any, ...]] = []
        self._born: dict[Any, tuple[Any, int]] = {}

    def _follows(self, cta: Any) -> bool:
        if self._cluster is None and self.record is None:
            self._cluster = cta.cluster
        return cta.cluster is self._cluster

    def _step(self, m: Any, kind: str, what: str, on: Any = None, until: int | None = None) -> Raw:
        """A step of a machine's threads. until: when what it waits for is over."""
        start = max(self._time[t] for t in m.threads)
        end = start + 1 if until is None else max(start, until)
        made = Raw(kind, what, on, m.place, start, end)
        for t in m.threads:
            self._time[t] = end
            self._steps[t].append(made)
        return made

    def _last(self, m: Any) -> Raw | None:
        """The step before of a machine's threads."""
        done = self._steps[m.threads[0]]
        return done[-1] if done else None

    def _access(self, m: Any, what: str, on: Any) -> Raw:
        """An access of memory, which is one with the step before if that was such a one at the same line."""
        last = self._last(m)
        if last is not None and last.what == what and last.place == m.place:
            return last
        return self._step(m, "access", what, on)

    def _issue(self, m: Any) -> Raw:
        """The step of an instruction that begins work, which is told in pieces."""
        last = self._last(m)
        if last is not None and last.issue is m:
            return last
        name = m.row.name if m.row is not None else "a copy"
        kind = "multiply" if "mma" in name else "signal" if "commit" in name or "arrive" in name else "copy"
        found = self._step(m, kind, name)
        found.issue = m
        return found

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        if self._follows(m.cta):
            self._born[bar] = m.place, bar.expected
            self._counts[bar] = []
            self._step(m, "other", "initialises {}", bar)

    def promises(self, m: Any, bar: Any) -> None:
        if self._follows(m.cta):
            made = self._issue(m)
            made.signals.append(bar)
            self._promised[m, bar].append(made.end + 1)

    def announces(self, m: Any, bar: Any) -> None:
        if self._follows(m.cta) and not m.deferred:
            before = self._announced.get(bar, 0)
            self._announced[bar] = bar.announced
            what = count(bar.announced - before, "byte") if bar.announced != before else "one more arrival"
            self._step(m, "signal", f"announces {what} at {{}}", bar)

    def arrives(self, m: Any, bar: Any) -> None:
        self._signals(m, bar, "arrives at {}")

    def delivers(self, m: Any, bar: Any) -> None:
        self._signals(m, bar, "counts bytes at {}")

    def _signals(self, m: Any, bar: Any, what: str) -> None:
        if not self._follows(m.cta):
            return
        if m.deferred:
            end = self._promised[m, bar].pop(0)
        else:
            announces = self._announcing(m, bar)
            if announces is not None:
                announces.what = announces.what.replace(" at {}", " and arrives at {}")
            end = (announces or self._step(m, "signal", what, bar)).end
        self._phases[bar][1] = max(self._phases[bar][1], end)

    def _announcing(self, m: Any, bar: Any) -> Raw | None:
        """The step before, where the same instruction has announced bytes."""
        last = self._last(m)
        if last is None or last.on is not bar or last.place != m.place or not last.what.startswith("announces"):
            return None
        return None if "arrives" in last.what else last

    def completes_phase(self, bar: Any, by: str) -> None:
        if self._follows(bar.cta):
            self._counts[bar].append((bar.expected, bar.announced))
            self._announced[bar] = 0
            self._phases[bar] = [self._phases[bar][1]] * 2

    def sees_phase(self, m: Any, bar: Any) -> None:
        if self._follows(m.cta):
            self._step(m, "wait", "waits for {}", bar, self._phases[bar][0])

    # other barriers
    def arrives_named(self, m: Any, barriers: Any, rally: Any, waits: bool) -> None:
        if self._follows(m.cta):
            name = "syncthreads" if rally.expected is None else f"named barrier {rally.id}"
            what = f"meets others at {name}" if waits else f"arrives at {name}"
            self._met(m, rally, self._step(m, "wait" if waits else "signal", what))

    def leaves_named(self, m: Any, barriers: Any, rally: Any) -> None:
        if self._follows(m.cta):
            for t in m.threads:
                self._time[t] = max(self._time[t], self._phases[rally][0])

    def arrives_cluster(self, m: Any, phase: int) -> None:
        if self._follows(m.cta):
            self._met(m, phase, self._step(m, "signal", "arrives at barrier.cluster"))

    def leaves_cluster(self, m: Any, phase: int) -> None:
        if self._follows(m.cta):
            self._step(m, "wait", "waits for barrier.cluster", None, self._phases[phase][0])

    def _met(self, m: Any, key: Any, step: Raw) -> None:
        self._phases[key][0] = max(self._phases[key][0], step.end)

    def meets(self, threads: Any) -> None:
        if self._follows(threads[0].cta):
            now = max(self._time[t] for t in threads)
            self._time.update(dict.fromkeys(threads, now))

    # memory
    def accesses(
        self, m: Any, memory: Any, region: Any, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        if asynchronous or m.deferred or not self._follows(m.cta):
            return
        verb = ("writes {}" if write else "reads {}") if atomic is None else "does an atomic on {}"
        start, stop = region.hull
        where = (memory, start)
        owner = getattr(memory, "cta", None)
        step = self._access(m, verb, where)
        if owner is not None:
            self._spans.append((owner, "shared", start, stop, step.start, step.end, write, m, step, None))

    def issues(self, m: Any, op: Any) -> None:
        if not self._follows(m.cta):
            return
        step = self._issue(m)
        if op.groups is not None:
            ends = self._groups[op.groups]
            ends[op.groups.epoch] = max(ends.get(op.groups.epoch, 0), step.end + 1)
        bar = op.bars[0][0].bar if op.bars else None
        stage = None if bar is None else (bar, bar.phase)
        for cta, region, reads, _ in op.uses:
            start, stop = region.hull
            step.on = step.on or (cta.smem, start)
            self._spans.append((cta, "shared", start, stop, step.end, step.end + 1, not reads, m, step, stage))

    def waited(self, m: Any, group: str, groups: Any, pending: int) -> None:
        if self._follows(m.cta):
            over = [end for epoch, end in self._groups[groups].items() if epoch <= groups.done(pending)]
            what = f"waits for all but {pending} {group}s" if pending else f"waits for its {group}s"
            self._step(m, "wait", what.replace("_", " "), None, max(over, default=0))

    def accesses_tensor_memory(self, m: Any, cta: Any, patch: Any, write: bool) -> None:
        if self._follows(m.cta):
            name = m.row.name if m.row is not None else "accesses tensor memory"
            step = self._access(m, name, None)
            self._columns(m, cta, patch, step, write, step.start)

    def multiplies(self, m: Any, reads: list[Any], writes: list[Any], accumulates: bool, how: Any) -> None:
        if self._follows(m.cta):
            step = self._issue(m)
            for cta, patch in (*reads, *(writes if accumulates else ())):
                self._columns(m, cta, patch, step, False, step.end)
            for cta, patch in writes:
                self._columns(m, cta, patch, step, True, step.end)

    def _columns(self, m: Any, cta: Any, patch: Any, step: Raw, write: bool, begin: int) -> None:
        stop = patch.column + patch.columns
        self._spans.append((cta, "tensor", patch.column, stop, begin, begin + 1, write, m, step, None))

    def allocates(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        if self._follows(m.cta):
            self._step(m, "other", f"allocates {patch.columns} columns of tensor memory")

    def frees(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        if self._follows(m.cta):
            self._step(m, "other", f"frees {patch.columns} columns of tensor memory")

    def shares_registers(self, m: Any) -> None:
        if self._follows(m.cta):
            self._step(m, "other", "sets its registers")

    def asks_for_cluster(self, m: Any) -> None:
        if self._follows(m.cta):
            self._issue(m)

    # what follows
    def ends(self, cluster: Any) -> None:
        if cluster is self._cluster:
            self.record = _Names(self._born).record(self._cluster, self._steps, self._spans, self._counts)
            self._cluster, self._steps, self._spans = None, {}, []
            self._time.clear()
            self._phases.clear()
            self._groups.clear()
            self._promised.clear()
            self._counts, self._born = {}, {}


class _Names:
    """Names of barriers and memories, once all are known."""

    def __init__(self, born: dict[Any, tuple[Any, int]]) -> None:
        self.bars: dict[Any, tuple[str, int]] = {}
        runs: dict[Any, list[Any]] = {}
        for bar, (place, expected) in sorted(born.items(), key=lambda b: (b[0].cta.rank, b[0].address)):
            named = re.fullmatch(r"mbarrier (.*)\[(\d+)\] \(.*\)|mbarrier ([^ ].*) \(.*\)", str(bar))
            if named is not None and "cuda.shared.array" not in str(bar):
                self.bars[bar] = (named[1], int(named[2])) if named[1] is not None else (named[3], 0)
                continue
            run = runs.setdefault((bar.cta, place, expected), [])
            if run and run[-1].address + 8 != bar.address:
                run.clear()
            run.append(bar)
            self.bars[bar] = f"mbarrier {run[0].address:#x}", len(run) - 1
        self.stages: dict[str, set[int]] = defaultdict(set)
        for name, stage in self.bars.values():
            self.stages[name].add(stage)

    def all(self, bar: Any) -> str:
        """The name of an mbarrier with those of its stages: a loop goes round them."""
        name, _ = self.bars[bar]
        return name + (f"[{ranges(self.stages[name])}]" if len(self.stages[name]) > 1 else "")

    def memory(self, memory: Any, address: int) -> str:
        """Return the name of what lies at an address of a memory."""
        cta = getattr(memory, "cta", None)
        if cta is None:
            return getattr(memory, "label", "global memory")
        held = [(n, name) for a, n, name in cta.names if a <= address < a + n]
        name = min(held)[1] if held else ""
        return "shared memory" if not name or name == "cuda.shared.array" else name.replace(" (cuda.shared.array)", "")

    def key(self, raw: Raw) -> Key:
        on = raw.on
        if on is None:
            what = raw.what
        elif "{}" in raw.what:
            what = raw.what.format(self.all(on) if on in self.bars else self.memory(*on))
        else:
            what = f"{raw.what}, {self.memory(*on)}"
        signals = dict.fromkeys(self.all(b) for b in raw.signals if b in self.bars)
        what += f", signals {' and '.join(signals)}" if signals else ""
        return raw.kind, what, where(raw.place)

    def record(self, cluster: Any, steps: Any, spans: Any, counts: Any) -> Record:
        warps, uses, keys = [], [], {}
        for cta in cluster.ctas:
            for w, unit in enumerate(cta.warps):
                lanes = {}
                for t in unit.threads:
                    for raw in steps.get(t, ()):
                        if raw not in keys:
                            keys[raw] = self.key(raw), raw.start, raw.end
                        uses += self._uses(t, raw)
                    lanes[t.lane] = tuple(keys[raw] for raw in steps.get(t, ()))
                warps.append(Warp(cta.rank, w, len(unit.threads), {n: s for n, s in lanes.items() if s}))
        barriers = {}
        for bar, some in counts.items():
            name, stage = self.bars[bar]
            barriers[name, bar.cta.rank, stage] = tuple(some)
        return Record(tuple(warps), tuple(_joined(map(self._span, spans))), tuple(uses), barriers)

    def _uses(self, t: Any, raw: Raw) -> list[Use]:
        found = []
        told = [(raw.on, raw.what)] if raw.on in self.bars else []
        for bar, how in (*told, *((b, f"issues {raw.what}") for b in raw.signals if b in self.bars)):
            name, stage = self.bars[bar]
            how = how.replace(" at {}", "").replace(" for {}", "").replace(" {}", "")
            found.append(Use(name, bar.cta.rank, stage, (t.cta.rank, t.index), how, where(raw.place)))
        return found

    def _span(self, given: tuple[Any, ...]) -> Span:
        cta, space, start, stop, begin, end, write, m, step, stage = given
        name = "" if space == "tensor" else self.memory(cta.smem, start)
        if stage is not None:
            stage = (*self.bars.get(stage[0], ("", 0)), stage[1])
        how = step.what.format(name) if step.kind == "access" else step.what
        warp = m.cta.rank, m.threads[0].index // 32
        return Span(space, cta.rank, name, start, stop, begin, end, write, warp, f"{how} ({where(step.place)})", stage)


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Join what a warp's lanes do in one step, side by side."""
    alike: dict[Any, list[Span]] = defaultdict(list)
    for s in spans:
        alike[s._replace(start=0, stop=0)].append(s)
    for some in alike.values():
        some.sort(key=lambda s: s.start)
        now = some[0]
        for s in some[1:]:
            if s.start > now.stop:
                yield now
                now = s
            now = now._replace(stop=max(now.stop, s.stop))
        yield now


def where(place: Any) -> str:
    """A place in few letters, with the library's function that is called there."""
    return f"{basename(place.file)}:{place.line}" + (f" {place.inside}" if place.inside else "")
