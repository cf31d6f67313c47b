# SPDX-License-Identifier: Apache-2.0
"""`timeline`: where time goes inside a kernel, by the ranges and marks that it tells (arch/events.py)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .seam import CuteError
from .seam.ground.drawing import COLOURS, Drawing, Picture, Steps, brief, wide, written
from .seam.hooks.recording import Event, Recorder, recorded

__all__ = ["Timeline", "timeline"]

Row = tuple[str, int, tuple[int, int, int], int]
"""A kernel's name, an SM, a block and a warp: what is drawn on one line."""


class Range(NamedTuple):
    """A range of a warp. start, stop: as times of the timeline. depth: in how many others it lies. payload: what it was
    begun with. row: (kernel, SM, block, warp)."""

    name: str
    start: float
    stop: float
    depth: int
    payload: int | None
    row: Row


class Timeline(Picture):
    """The events of launches, as `timeline` gives them: iterate over it, or draw it.

    events: all of them. unit: of its times, "ns" on a GPU, and "instructions" in the simulator (issued by all threads:
    they say who waited for whom, not how long). lost: how many events had no room. Times begin at the first event.

    >>> def kernel():
    ...     cute.range_push("load")
    ...     cute.range_pop()
    >>> t = cute.timeline(cute.simulate(kernel)[1, 64])
    >>> len(t.events), t.unit
    (4, 'instructions')
    """

    def __init__(self, events: list[Event], unit: str, lost: int = 0) -> None:
        events = list(events)
        for e in events:
            if not isinstance(e, Event):
                raise CuteError(f"Timeline: events holds {e!r}: give Event objects")
        if unit not in ("ns", "instructions") or not isinstance(lost, int):
            raise CuteError(f'Timeline: unit {unit!r} is "ns" or "instructions", and lost {lost!r} an int')
        self.events, self.unit, self.lost = events, unit, lost
        self._time = _times(events) if unit == "ns" else {id(e): float(e.clock) for e in events}
        first = min(self._time.values(), default=0.0)
        self._time = {key: time - first for key, time in self._time.items()}
        self.slides = Steps(unit, max(self._time.values(), default=0.0))

    def __repr__(self) -> str:
        """Write it in at most ten lines."""
        return brief(str(self))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def time_of(self, event: Event) -> float:
        """Return the time of `event`. Raises CuteError if `event` is not one of this timeline's events."""
        found = self._time.get(id(event))
        if found is None:
            raise CuteError(f"Timeline.time_of: event {event!r} is not of this timeline: give one of its events")
        return found

    def only(self, *, sm: int | None = None, block: Any = None, kernel: str | None = None) -> Timeline:
        """Return the timeline of the SM numbered `sm`, of the `block` (x, y, z), of the kernel named `kernel`: of all
        that is given."""
        kept = [
            e for e in self.events
            if sm in (None, e.sm) and (block is None or e.block == tuple(block)) and kernel in (None, e.kernel)
        ]  # fmt: skip
        made = Timeline([], self.unit, self.lost)
        made.events, made._time = kept, self._time
        return made

    @property
    def ranges(self) -> list[Range]:
        """The ranges, by their beginning. One that never ends lasts until the warp's last event; an end without a
        beginning is left out."""
        found: list[Range] = []
        for row, events in self._rows().items():
            begun: list[Event] = []
            for e in events:
                if e.kind == "push":
                    begun.append(e)
                elif e.kind == "pop" and begun:
                    found.append(self._range(begun.pop(), e, len(begun), row))
            while begun:
                found.append(self._range(begun.pop(), events[-1], len(begun), row))
        return sorted(found, key=lambda r: (r.start, r.depth))

    def _range(self, start: Event, stop: Event, depth: int, row: Row) -> Range:
        return Range(start.name, self.time_of(start), self.time_of(stop), depth, start.payload, row)

    def _rows(self) -> dict[Row, list[Event]]:
        rows: dict[Row, list[Event]] = defaultdict(list)
        for e in self.events:
            rows[e.kernel, e.sm, e.block, e.warp].append(e)
        return {row: sorted(rows[row], key=self.time_of) for row in sorted(rows, key=_in_order)}

    def __str__(self) -> str:
        """The time that each range takes: how often, in all, the longest."""
        lines = [f"{len(self.events)} events" + (f", {self.lost} lost: record more of a warp" if self.lost else "")]
        by_name: dict[str, list[float]] = defaultdict(list)
        for r in self.ranges:
            by_name[r.name].append(r.stop - r.start)
        for name, spans in sorted(by_name.items(), key=lambda item: -sum(item[1])):
            lines.append(f"{name}: {len(spans)} x, {sum(spans):.0f} {self.unit}, the longest {max(spans):.0f}")
        return "\n".join(lines)

    def chrome(self, file: str | PathLike[str]) -> None:
        """Write the timeline to `file` as Chrome's trace events, for ui.perfetto.dev: a process an SM, a thread a warp
        of a block. An instruction of the simulator is shown as a microsecond."""
        scale = 1e-3 if self.unit == "ns" else 1.0
        pids: dict[Any, int] = {}
        told: list[dict[str, Any]] = []
        for tid, (row, events) in enumerate(self._rows().items()):
            kernel, sm, block, warp = row
            if (kernel, sm) not in pids:
                pids[kernel, sm] = len(pids)
                told.append(_meta(pids[kernel, sm], 0, "process_name", f"{kernel}, SM {sm}"))
            pid = pids[kernel, sm]
            told.append(_meta(pid, tid, "thread_name", f"block {block}, warp {warp}"))
            for e in events:
                if e.kind == "mark":
                    args = {} if e.payload is None else {"payload": e.payload}
                    told.append({"ph": "i", "s": "t", "pid": pid, "tid": tid, "ts": self.time_of(e) * scale,
                                 "name": e.name, "args": args})  # fmt: skip
        tids = {row: tid for tid, row in enumerate(self._rows())}
        for r in self.ranges:
            args = {} if r.payload is None else {"payload": r.payload}
            told.append({"ph": "X", "pid": pids[r.row[:2]], "tid": tids[r.row], "ts": r.start * scale,
                         "dur": (r.stop - r.start) * scale, "name": r.name, "args": args})  # fmt: skip
        data = {"traceEvents": told, "displayTimeUnit": "ns", "otherData": {"unit": self.unit, "lost": self.lost}}
        Path(file).write_text(json.dumps(data))

    def svg(self, file: str | PathLike[str] | None = None, *, width: int = 1200) -> str:
        """Draw the timeline and return the picture; write it to `file` if one is given. A line a warp; ranges inside
        others lie in their lower part; point at one to read its name, payload and times. width: in pixels."""
        return written(str(self.drawn(width)), file)

    def drawn(self, width: int = 1200) -> Drawing:
        """Draw the timeline, `width` pixels wide."""
        rows, ranges, d = self._rows(), self.ranges, Drawing()
        end = max((self.time_of(e) for e in self.events), default=0.0) or 1.0
        colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(sorted({r.name for r in ranges}))}
        named = {row: f"{row[0]}: SM {row[1]}, block {row[2]}, warp {row[3]}" for row in rows}
        left, height = 20 + max(map(wide, named.values()), default=0.0), 26
        top = {row: 4.0 + at * height for at, row in enumerate(rows)}
        for row, text in named.items():
            d.text(10, top[row] + 16, text)
        for r in ranges:
            deep = 5 * min(r.depth, 3)
            shown = "" if r.payload is None else f" {r.payload}"
            title = f"{r.name}{shown}\n{r.start:.0f} to {r.stop:.0f} {self.unit}: {r.stop - r.start:.0f}"
            w = max(0.7, width * (r.stop - r.start) / end)
            x, y = left + width * r.start / end, top[r.row] + 2 + deep
            d.box(x, y, w, height - 4 - deep, colours[r.name], title, steps=(r.start, r.stop))
        for row, events in rows.items():
            for e in (e for e in events if e.kind == "mark"):
                title = f"{e.name} {'' if e.payload is None else e.payload}\n{self.time_of(e):.0f} {self.unit}"
                d.line(f"M{left + width * self.time_of(e) / end:.1f} {top[row] + 2:.1f}v{height - 4}", "mark", title)
        base = 4.0 + len(rows) * height
        d.text(10, base + 16, f"0 to {end:.0f} {self.unit}")
        d.legend(left, base + 4, colours, width)
        return d


def _in_order(row: Row) -> Any:
    kernel, sm, block, warp = row
    return kernel, sm, block[::-1], warp


def _meta(pid: int, tid: int, name: str, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": name, "args": {"name": value}}


def _times(events: list[Event]) -> dict[int, float]:
    """The times of a GPU's events, in nanoseconds: those of an SM by its cycles, which are finer than the timer, laid
    upon the timer where they fit it best."""
    by_sm: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for e in events:
        by_sm[e.kernel, e.sm].append(e)
    out: dict[int, float] = {}
    for group in by_sm.values():
        slope = _rate(group)
        if slope is None:
            out |= {id(e): float(e.time) for e in group}
            continue
        offset = sum((e.time - group[0].time) - slope * (e.clock - group[0].clock) for e in group) / len(group)
        out |= {id(e): group[0].time + offset + slope * (e.clock - group[0].clock) for e in group}
    return out


def _rate(events: list[Event]) -> float | None:
    """Nanoseconds of a cycle, by least squares over an SM's events; None if they do not tell."""
    n = len(events)
    x = [e.clock - events[0].clock for e in events]
    y = [e.time - events[0].time for e in events]
    mean_x, mean_y = sum(x) / n, sum(y) / n
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / spread if spread else 0.0
    return slope if 0.2 < slope < 5 else None  # of 0.2 to 5 GHz


def timeline(launch: Callable[..., Any], *args: Any, events: int = 1024, blocks: int = 4096) -> Timeline:
    """Run `launch(*args)` and return the timeline of what the kernels that it launches tell: `cute.range_push`,
    `range_pop`, `mark`. On a GPU those kernels are compiled anew, beside the ones that tell nothing.

    launch: a launch, as `kernel[grid, block]`, `cute.launch(kernel, …)` or `cute.simulate(kernel)[grid, block]`, or any
    function that launches. args: its arguments. events: the most of a warp. blocks: how many blocks of a launch are
    recorded, from the first on; the buffer takes 32 bytes for each event of each of their warps.

        t = cute.timeline(kernel[grid, block], a, b)
        print(t)
        t.chrome("run.json")
        t.svg("run.svg")

    CuteError: no function; a number that is not positive; a prepared launch.

    >>> def kernel():
    ...     cute.range_push("work")
    ...     cute.range_pop()
    >>> cute.timeline(cute.simulate(kernel)[1, 32]).ranges[0].name
    'work'
    """
    if not callable(launch):
        raise CuteError(f"timeline: launch {launch!r} is nothing to call; give kernel[grid, block] and its arguments")
    for name, value in (("events", events), ("blocks", blocks)):
        if not isinstance(value, int) or not 1 <= value < 1 << 31:
            raise CuteError(f"timeline: {name} {value!r} must be a positive int")
    recorder = Recorder(events, blocks)
    with recorded(recorder):
        launch(*args)
    recorder.settle()
    return Timeline(recorder.events, "ns" if recorder.clock == "cycles" else "instructions", recorder.lost)
