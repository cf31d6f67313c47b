# SPDX-License-Identifier: Apache-2.0
"""A record of a run: counters, and a timeline of every warp and copy.

    trace = Trace()
    simulate(kernel, trace=trace)[grid, block](*args)
    print(trace)
    trace.perfetto("run.json")
    trace.html("run.html")

Time is counted in instructions issued, of all threads: it says who waited for whom, not how long on a GPU.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..isa.facts.banks import least_passes, passes
from ..seam.ground.drawing import COLOURS, LINE, SIZE, Drawing, Picture, Steps, brief, wide
from .ground.report import who

SECTOR = 32
_APART = 1 << 44
"""Between the places of two allocations: each begins at a multiple of 256 bytes, as cudaMalloc's do."""


def _origin(allocation: Any) -> int:
    """Return the address of the array that owns an allocation's memory: a view keeps its offset within it."""
    start: int = allocation.address
    owners = [allocation.owner]
    while owners:
        owner = owners.pop()
        if isinstance(owner, list):
            owners += owner
        while isinstance(owner, np.ndarray):
            start, owner = min(start, int(owner.ctypes.data)), owner.base
    return start


COPIES = "copies and wgmma"


class Span(NamedTuple):
    """Something that lasted: a thread's wait, or a copy under way. row: its warp, or COPIES. by: who ended it ("" if
    nobody did). nth: which of the thread's waits for this. of: whose it is, of several ranks: "rank 1 "."""

    block: tuple[int, ...]
    row: str
    start: int
    end: int
    what: str
    by: str
    nth: int = 0
    of: str = ""

    @property
    def key(self) -> tuple[str, tuple[int, ...], str]:
        """Give what tells its row of the timeline from the others."""
        return self.of, self.block, self.row


def _of(cta: Any) -> str:
    """Words before those of a block, of several ranks."""
    gpu = cta.cluster.gpu
    return f"rank {gpu.rank} " if gpu.of_rank else ""


class Trace(Picture):
    """Counters and spans of the launches that it was given to.

    >>> trace = cute.sim.Trace()
    >>> cute.simulate(lambda x: x.__setitem__(cuda.threadIdx.x, 1), trace=trace)[1, 32](np.zeros(32, np.int32))
    >>> trace.bank_conflicts
    {}
    """

    def __init__(self) -> None:
        self.now = 0
        self.instructions: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.spans: list[Span] = []
        self._waiting: dict[Any, tuple[int, str]] = {}
        self._woken: dict[Any, str] = {}
        self._accesses: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        self._nth: Counter[Any] = Counter()
        self._starts: dict[Any, int] = {}  # of allocations: what to add to an address

    # what the simulator says
    def issued(self, name: str) -> None:
        """Count an instruction, by its row's `name`."""
        self.now += 1
        self.instructions[name] += 1

    def accessed(self, m: Any, space: str, address: int, nbytes: int, write: bool) -> None:
        """Count an access of one thread, of machine `m`, to `nbytes` bytes at `address` of the memory `space`. write:
        whether it writes. The lanes of a warp that do the same at the same line count as one."""
        self.now += 1
        self.bytes[f"{space} {'written' if write else 'read'}"] += nbytes
        t = m.threads[0]
        key = (t, m.place, write)
        nth = self._nth[key] = self._nth[key] + 1
        if space == "global":
            address += self._moved(m, address)
        self._accesses[t.warp, m.place, write, nth, space].append((address, nbytes))

    def _moved(self, m: Any, address: int) -> int:
        """From an address to where it would be if each array that owns its memory had a GPU allocation of its own."""
        held = m.run.memory.find(address)
        if held is None:
            return 0
        found = self._starts.get(held)
        if found is None:
            found = self._starts[held] = (len(self._starts) + 1) * _APART - _origin(held)
        return found

    def waits(self, t: Any) -> None:
        """Note that thread `t` begins to wait."""
        self._waiting[t] = self.now, t.wait.why

    def wakes(self, t: Any, by: Any) -> None:
        """Note that `by`, or nobody, ends what thread `t` waits for."""
        self._woken[t] = who([by]) if by is not None and by is not t else ""

    def resumes(self, t: Any) -> None:
        """Note that thread `t` goes on, with the span that it waited."""
        start, why = self._waiting.pop(t, (self.now, ""))
        by = self._woken.pop(t, "")
        if why:
            nth = self._nth[t, why] = self._nth[t, why] + 1
            self.spans.append(Span(t.cta.index, f"warp {t.index // 32}", start, self.now, why, by, nth, _of(t.cta)))

    def begins(self, op: Any) -> None:
        """Note that the asynchronous operation `op` begins."""
        op.began = self.now

    def ends(self, op: Any) -> None:
        """Note that `op` is complete, with its span."""
        m = op.machine
        self.now += 1
        self.spans.append(Span(m.cta.index, COPIES, op.began, self.now, op.describe(), "", of=_of(m.cta)))
        for _, region, reads in op.held:
            self.bytes[f"shared {'read' if reads else 'written'} asynchronously"] += region.nbytes

    # what the user reads
    @property
    def bank_conflicts(self) -> dict[str, int]:
        """By source line: how many more passes through shared memory its accesses took than without conflicts."""
        extra: Counter[str] = Counter()
        for (_, place, _, _, space), some in self._accesses.items():
            if space == "shared":
                extra[place.short] += passes(some) - least_passes(some)
        return {line: n for line, n in extra.items() if n > 0}

    @property
    def coalescing(self) -> dict[str, float]:
        """By source line: the share of the bytes that its accesses to global memory move, in sectors of 32 bytes,
        which it uses."""
        used: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        for (_, place, _, _, space), some in self._accesses.items():
            if space == "global":
                touched = {b // SECTOR for a, n in some for b in range(a, a + n, min(n, SECTOR))}
                touched |= {(a + n - 1) // SECTOR for a, n in some}
                used[place.short] += len({b for a, n in some for b in range(a, a + n)})
                moved[place.short] += SECTOR * len(touched)
        return {line: used[line] / moved[line] for line in moved}

    def __str__(self) -> str:
        lines = ["instructions: " + ", ".join(f"{n} {k}" for k, n in self.instructions.most_common())]
        lines.append("bytes: " + ", ".join(f"{n} {k}" for k, n in self.bytes.most_common()))
        lines += [f"bank conflicts: {n} at {line}" for line, n in self.bank_conflicts.items()]
        lines += [f"coalescing: {100 * f:.0f} % of the bytes moved are used at {x}" for x, f in self.coalescing.items()]
        return "\n".join(lines)

    def perfetto(self, file: Any) -> None:
        """Write the timeline to `file` for ui.perfetto.dev: a process a block, a thread a warp."""
        spans = self._merged()
        rows = sorted({s.key for s in spans}, key=_in_order)
        blocks = list(dict.fromkeys((of, b) for of, b, _ in rows))
        ids = {row: at for at, row in enumerate(rows)}
        events: list[dict[str, Any]] = []
        for pid, (of, b) in enumerate(blocks):
            events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": f"{of}block {b}"}})
        for (of, b, row), at in ids.items():
            pid = blocks.index((of, b))
            events.append({"ph": "M", "pid": pid, "tid": at, "name": "thread_name", "args": {"name": row}})
        for s in spans:
            args = {"ended by": s.by} if s.by else {}
            events.append({
                "ph": "X", "pid": blocks.index((s.of, s.block)), "tid": ids[s.key], "ts": s.start,
                "dur": s.end - s.start, "name": s.what, "args": args,
            })  # fmt: skip
        Path(file).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))

    @property
    def slides(self) -> Steps:  # type: ignore[override]
        """The steps of the page's slider: instructions issued."""
        return Steps("instruction", max((s.end for s in self.spans), default=0))

    def __repr__(self) -> str:
        """Write the counters in at most ten lines."""
        return brief(str(self))

    def drawn(self) -> Drawing:
        """Draw the timeline: a row a warp; point at a bar to read who waited, for what, and who ended it. Time counts
        instructions issued."""
        spans, d, width = self._merged(), Drawing(), 1200
        rows = {key: 40.0 + LINE * at for at, key in enumerate(sorted({s.key for s in spans}, key=_in_order))}
        end = max((s.end for s in spans), default=1)
        left = 20 + max((wide(f"{of}{block} {row}") for of, block, row in rows), default=0.0)
        d.legend(10, 8, {"a warp waits": COLOURS[7], "a copy or wgmma is under way": COLOURS[0]})
        for (of, block, row), y in rows.items():
            d.text(10, y + SIZE, f"{of}{block} {row}")
        for s in spans:
            title = f"{s.what}\n{s.start} to {s.end}" + (f"\nended by {s.by}" if s.by else "")
            colour = COLOURS[0 if s.row.startswith(COPIES) else 7]
            w = max(1.0, width * (s.end - s.start) / end)
            x, y = left + width * s.start / end, rows[s.key] + 1
            d.box(x, y, w, LINE - 2, colour, title, steps=(s.start, s.end))
        d.text(left, 40.0 + LINE * len(rows) + SIZE, f"0 to {end} instructions issued", "faint")
        return d

    def _merged(self) -> list[Span]:
        """Give the timeline's spans: waits of a warp, from when the last of its lanes that wait has come until the
        first goes on; and copies, in so many rows that none overlap."""
        waits: dict[Any, Span] = {}
        for s in self.spans:
            if s.row != COPIES:
                key = s.key, s.what, s.nth
                old = waits.get(key, s)
                waits[key] = old._replace(start=max(old.start, s.start), end=min(old.end, s.end), by=old.by or s.by)
        ends: dict[Any, list[int]] = defaultdict(list)
        found = [s for s in waits.values() if s.end > s.start]
        for s in sorted((s for s in self.spans if s.row == COPIES), key=lambda s: s.start):
            rows = ends[s.of, s.block]
            at = next((i for i, end in enumerate(rows) if end <= s.start), len(rows))
            rows[at : at + 1] = [s.end]
            found.append(s._replace(row=COPIES if at == 0 else f"{COPIES} {at + 1}"))
        return found


def _in_order(row: tuple[str, tuple[int, ...], str]) -> Any:
    """Ranks and their blocks as they are numbered, then warps, then copies."""
    of, block, name = row
    number = name.rsplit(" ", 1)[1]
    return int(of.split()[1]) if of else 0, block[::-1], name.startswith(COPIES), int(number) if number.isdigit() else 1
