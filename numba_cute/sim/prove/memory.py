# SPDX-License-Identifier: Apache-2.0
"""Shared and tensor memory over time: what is written and read when, by whom, and what lies over what:
`Proof.memory`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...seam import CuteError
from ...seam.ground.drawing import COLOURS, LINE, PALE, Drawing, Picture, wide
from ..ground.report import ranges
from .recording import KINDS, Record, Span
from .roles import COLOUR, Roles

_SHOWN = 120
"""Steps that are shown, if none are chosen."""
_MOST = 12
"""Parts of one array that have lines of their own."""
_GAP = 128
"""Bytes between two pieces of what threads write together: padding."""
_SIGNS = {"wait": ".", "signal": "s", "copy": "c", "multiply": "m", "access": "a", "other": "o"}
_WRITTEN, _READ = COLOURS[1], COLOURS[0]


class Mark(NamedTuple):
    """A use of a row of memory, or a step of a role. sign: "W", "R", "=" for what is kept, or of a kind of step."""

    begin: int
    end: int
    sign: str
    title: str


class Row(NamedTuple):
    """A part of a memory that is used as one, or a role. label: its name and place. who: "writers > readers"."""

    label: str
    who: str
    marks: tuple[Mark, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Memory(Picture):
    """Memory of one CTA over time, which counts steps: each takes one, and begins as soon as what it waits for is over.

    cta: whose. first, last: the steps that are shown, `last` not among them. steps: how many there are. roles: a row
    for each role. rows: of the memories. aliases: which rows lie in the same place."""

    record: Record = dataclasses.field(repr=False)
    of: Roles = dataclasses.field(repr=False)
    cta: int
    first: int
    last: int

    @property
    def steps(self) -> int:
        """Return the total number of steps."""
        return max((s[-1][2] for w in self.record.warps for s in w.steps.values()), default=0)

    @property
    def roles(self) -> tuple[Row, ...]:
        """Return the timeline of each role: of its first warp, the lane that does most."""
        warps = {(w.cta, w.number): w for w in self.record.warps}
        made = []
        for role in self.of.roles:
            held = next((warps[w] for w in role.warps if w[0] == self.cta and warps[w].steps), None)
            if held is not None:
                steps = max(held.steps.values(), key=len)
                marks = [Mark(b, e, _SIGNS[key[0]], f"{key[1]} ({key[2]})") for key, b, e in steps if e > b]
                made.append(Row(role.name, "", tuple(marks)))
        return tuple(made)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The parts of both memories, by their places."""
        return tuple(row for _, row in self._parts())

    @property
    def aliases(self) -> tuple[str, ...]:
        """List the rows that lie over others."""
        parts = [(span, row.label) for span, row in self._parts()]
        return tuple(
            f"{a} and {b} share {_size(s.space, max(s.start, t.start), min(s.stop, t.stop))}"
            for i, (s, a) in enumerate(parts) for t, b in parts[i + 1 :]
            if s.space == t.space and s.start < t.stop and t.start < s.stop
        )  # fmt: skip

    def only(self, *, cta: int | None = None, first: int | None = None, last: int | None = None) -> Memory:
        """Return the picture of another CTA of the cluster, numbered `cta`, or of the steps from `first` on, up to
        `last`. CuteError: no such CTA or steps."""
        if last is None:
            last = self.last if first is None else min(self.steps, first + _SHOWN)
        first, at = self.first if first is None else first, self.cta if cta is None else cta
        found = dataclasses.replace(self, cta=at, first=first, last=last)
        ctas = sorted({w.cta for w in self.record.warps})
        if ctas and found.cta not in ctas:
            raise CuteError(f"memory.only: cta {cta!r} is none of the cluster's, {ranges(ctas)}")
        if not 0 <= found.first < found.last <= max(self.steps, 1):
            raise CuteError(f"memory.only: steps {found.first} to {found.last} are none of the {self.steps} there are")
        return found

    def _parts(self) -> list[tuple[Span, Row]]:
        found = []
        names = {warp: role.name for role in self.of.roles for warp in role.warps}
        for space in ("shared", "tensor"):
            spans = [s for s in self.record.spans if s.space == space and s.cta == self.cta]
            found += _rows(spans, names)
        return found

    def __str__(self) -> str:
        rows, roles = self.rows, self.roles
        left = max((len(row.label) for row in (*roles, *rows)), default=0) + 2
        scale = "".join(f"{at:<10}" for at in range(self.first, self.last, 10)).rstrip()
        lines = [self._title(), " " * left + scale]
        lines += [f"{row.label:{left}}{self._line(row)}".rstrip() for row in roles]
        lines += [f"{row.label:{left}}{self._line(row):{self.last - self.first}}  {row.who}" for row in rows]
        lines.append("W written, R read, = kept, @ both; " + ", ".join(f"{_SIGNS[k]} {w}" for k, w in KINDS.items()))
        return "\n".join([*lines, *(f"alias: {text}" for text in self.aliases)])

    def _title(self) -> str:
        of = f" of CTA {self.cta}" if len({w.cta for w in self.record.warps}) > 1 else ""
        return f"memory{of} over steps {self.first} to {self.last - 1} of {self.steps}"

    def _line(self, row: Row) -> str:
        """A row as letters, one a step."""
        signs = [" "] * (self.last - self.first)
        for mark in row.marks:
            for at in range(max(mark.begin, self.first), min(mark.end, self.last)):
                before = signs[at - self.first]
                both = {before, mark.sign} == {"W", "R"} or before == "@"
                signs[at - self.first] = "@" if both else mark.sign if before in " =" or mark.sign != "=" else before
        return "".join(signs)

    def drawn(self) -> Drawing:
        """Draw a line for each role and for each part of memory, with boxes where it is used."""
        d, rows, roles = Drawing(), self.rows, self.roles
        wider = 9.0
        left = 10 + max((wide(row.label) for row in (*roles, *rows)), default=0.0) + 12
        d.text(10, 18, self._title(), "strong")
        right = left + wider * (self.last - self.first)
        for at in range(self.first, self.last, 10):
            d.text(left + wider * (at - self.first), 40, str(at), "faint")
        y = 48.0
        for row in (*roles, *rows):
            d.text(10, y + 13, row.label)
            d.text(right + 12, y + 13, row.who, "faint")
            d.line(f"M{left:.1f} {y + LINE + 3:.1f}H{right:.1f}")
            self._boxes(d, row, left, y, wider)
            y += LINE + 6
        kinds = {KINDS[kind]: colour for kind, colour in COLOUR.items()}
        d.legend(10, y + 6, {f"step: {words}": colour for words, colour in kinds.items()})
        d.legend(10, y + LINE + 8, {"memory: written": _WRITTEN, "read": _READ, "kept": _WRITTEN}, pale="kept")
        y += 2 * LINE + 26
        for text in self.aliases:
            d.text(10, y, f"alias: {text}")
            y += LINE
        return d

    def _boxes(self, d: Drawing, row: Row, left: float, y: float, wider: float) -> None:
        signs = {_SIGNS[kind]: colour for kind, colour in COLOUR.items()}
        for mark in sorted(row.marks, key=lambda m: (m.sign != "=", m.begin, m.sign == "R")):
            begin, end = max(mark.begin, self.first), min(mark.end, self.last)
            if begin >= end or mark.sign == ".":
                continue
            colour = {"W": _WRITTEN, "R": _READ, "=": _WRITTEN}.get(mark.sign) or signs[mark.sign]
            low = mark.sign == "R" and 8  # beneath a write of the same step
            x, across = left + wider * (begin - self.first), wider * (end - begin) - 1
            d.box(x, y + low, across, LINE - low, colour, mark.title, opacity=PALE if mark.sign == "=" else 1.0)


def memory(record: Record, roles: Roles) -> Memory:
    """The memory of a record's first CTA, and its first steps."""
    made = Memory(record, roles, 0, 0, 1)
    return dataclasses.replace(made, last=max(1, min(made.steps, _SHOWN)))


def _rows(spans: list[Span], names: dict[tuple[int, int], str]) -> list[tuple[Span, Row]]:
    """The rows of one memory: the parts that are written as one."""
    marks = _used(sorted(_fewer({(s.start, s.stop, s.name) for s in _written(spans)})), spans, names)
    parts = [part for part, some in marks.items() if any(not s.writes for s, _ in some) or not _within(part, marks)]
    if len(parts) < len(marks):  # what is read as part of a larger one belongs to that
        marks = _used(parts, spans, names)
    labels = _labels(parts, spans[0].space if spans else "shared")
    made = []
    for part, some in marks.items():
        by = [dict.fromkeys(names.get(s.warp, "") for s, _ in some if s.writes == w) for w in (True, False)]
        found = sorted({m for _, m in some})
        span = some[0][0]._replace(start=part[0], stop=part[1]) if some else None
        if span is not None:
            made.append(
                (span, Row(labels[part], " > ".join(" and ".join(b) for b in by if b), (*_kept(found), *found)))
            )
    return made


def _used(parts: list[Any], spans: list[Span], names: Any) -> dict[Any, list[tuple[Span, Mark]]]:
    """By part the uses of it."""
    marks: dict[Any, list[tuple[Span, Mark]]] = {part: [] for part in parts}
    last: dict[Any, int] = {}
    for s in sorted(spans, key=lambda s: (s.begin, not s.writes)):
        mark = Mark(s.begin, s.end, "W" if s.writes else "R", f"{names.get(s.warp, '')}: {s.how}")
        over = [p for p in parts if p[0] < s.stop and s.start < p[1]]
        if s.writes:  # the least part that holds it
            over = sorted((p for p in over if p[0] <= s.start and s.stop <= p[1]), key=lambda p: p[1] - p[0])[:1]
            last.update(dict.fromkeys(over, s.begin))
        for part in over if s.writes else _readable(over, last, s):
            marks[part].append((s, mark))
    return marks


def _within(part: Any, parts: Iterable[Any]) -> bool:
    return any(p[:2] != part[:2] and p[0] <= part[0] and part[1] <= p[1] for p in parts)


def _readable(parts: list[Any], last: dict[Any, int], s: Span) -> list[Any]:
    """The parts that a read finds: those written last, as far as they lie there."""
    found, missing = [], [(s.start, s.stop)]
    for part in sorted((p for p in parts if p in last), key=lambda p: -last[p]):
        left: list[tuple[int, int]] = []
        for low, high in missing:
            cut = [(low, min(high, part[0])), (max(low, part[1]), high)]
            left += [(a, b) for a, b in cut if a < b] if part[0] < high and low < part[1] else [(low, high)]
        if left != missing:
            found.append(part)
        missing = left
    return found


def _kept(marks: list[Mark]) -> Iterable[Mark]:
    """The times between a write and the last read before the next."""
    writes = [m for m in marks if m.sign == "W"]
    for at, w in enumerate(writes):
        until = writes[at + 1].begin if at + 1 < len(writes) else float("inf")
        reads = [m.begin for m in marks if m.sign == "R" and w.end <= m.begin <= until]
        if reads and max(reads) > w.end:
            yield Mark(w.end, max(reads), "=", "kept until it is read for the last time")


def _written(spans: list[Span]) -> Iterable[Span]:
    """Join writes that belong together: copies for one phase of a barrier, and neighbouring writes of threads in one
    step."""
    alike: dict[Any, list[Span]] = defaultdict(list)
    for s in spans:
        if s.writes:
            alike[s.name, s.how, s.stage or s.begin].append(s)
    for some in alike.values():
        some.sort(key=lambda s: s.start)
        now, gap = some[0], 0 if some[0].stage or some[0].space == "tensor" else _GAP
        for s in some[1:]:
            if s.start > now.stop + gap:
                yield now
                now = s
            now = now._replace(stop=max(now.stop, s.stop))
        yield now


def _fewer(parts: set[tuple[int, int, str]]) -> set[tuple[int, int, str]]:
    """The parts, but of an array that has too many the whole of them."""
    by_name: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for part in parts:
        by_name[part[2]].append(part)
    return {
        part for name, some in by_name.items()
        for part in (some if len(some) <= _MOST else [(min(some)[0], max(p[1] for p in some), name)])
    }  # fmt: skip


def _labels(parts: list[tuple[int, int, str]], space: str) -> dict[Any, str]:
    """Return the label of each part: its name, numbered if several are alike, and its place."""
    made = {}
    for part in parts:
        start, stop, name = part
        alike = [p for p in parts if p[2] == name and p[1] - p[0] == stop - start]
        if space == "tensor":
            made[part] = f"tmem columns {start}-{stop - 1}"
        else:
            number = f"[{alike.index(part)}]" if len(alike) > 1 and name != "shared memory" else ""
            made[part] = f"{name}{number} {start:#x}, {_size(space, start, stop)}"
    return made


def _size(space: str, start: int, stop: int) -> str:
    if space == "tensor":
        return f"columns {start}-{stop - 1}"
    n = stop - start
    return f"{n // 1024} KiB" if n % 1024 == 0 else f"{n} bytes"
