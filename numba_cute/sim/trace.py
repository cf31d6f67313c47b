# SPDX-License-Identifier: Apache-2.0
"""What happened in a run: counters, and a timeline of every warp and copy.

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

from .report import who

SECTOR, BANKS, BANK = 32, 32, 4


class Span(NamedTuple):
    """Something that lasted: a warp's wait, or a copy under way. by: who ended it ("" if nobody did)."""

    block: tuple[int, ...]
    row: str
    start: int
    end: int
    what: str
    by: str


class Trace:
    """Counters and spans of the launches that it was given to."""

    def __init__(self) -> None:
        self.now = 0
        self.instructions: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.spans: list[Span] = []
        self._waiting: dict[Any, tuple[int, str]] = {}
        self._woken: dict[Any, str] = {}
        self._accesses: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        self._nth: Counter[Any] = Counter()

    # what the simulator says
    def issued(self, name: str) -> None:
        self.now += 1
        self.instructions[name] += 1

    def accessed(self, m: Any, space: str, address: int, nbytes: int, write: bool) -> None:
        """One thread's access to memory: the lanes of a warp that do the same at the same line count as one."""
        self.now += 1
        self.bytes[f"{space} {'written' if write else 'read'}"] += nbytes
        t = m.threads[0]
        key = (t, m.place, write)
        nth = self._nth[key] = self._nth[key] + 1
        self._accesses[t.warp, m.place, write, nth, space].append((address, nbytes))

    def waits(self, t: Any) -> None:
        self._waiting[t] = self.now, t.wait.why

    def wakes(self, t: Any, by: Any) -> None:
        self._woken[t] = who([by]) if by is not None and by is not t else ""

    def resumes(self, t: Any) -> None:
        start, why = self._waiting.pop(t, (self.now, ""))
        if why and self.now > start:
            self.spans.append(Span(t.cta.index, f"warp {t.index // 32}", start, self.now, why, self._woken.pop(t, "")))

    def begins(self, op: Any) -> None:
        op.began = self.now

    def ends(self, op: Any) -> None:
        m = op.machine
        self.now += 1
        self.spans.append(Span(m.cta.index, "copies and wgmma", op.began, self.now, op.describe(), ""))
        for _, region, reads in op.held:
            self.bytes[f"shared {'read' if reads else 'written'} asynchronously"] += region.nbytes

    # what the user reads
    @property
    def bank_conflicts(self) -> dict[str, int]:
        """By source line: how many more passes through shared memory its accesses took than without conflicts."""
        extra: Counter[str] = Counter()
        for (_, place, _, _, space), some in self._accesses.items():
            if space == "shared":
                extra[place.short] += _passes(some) - -(-sum(n for _, n in some) // (BANKS * BANK))
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
        """Write the timeline for ui.perfetto.dev (the trace event format): a process a block, a thread a warp."""
        rows = {(s.block, s.row): None for s in self._merged()}
        blocks = list(dict.fromkeys(b for b, _ in rows))
        ids = {row: at for at, row in enumerate(rows)}
        events: list[dict[str, Any]] = []
        for b in blocks:
            events.append({"ph": "M", "pid": blocks.index(b), "name": "process_name", "args": {"name": f"block {b}"}})
        for (b, row), at in ids.items():
            pid = blocks.index(b)
            events.append({"ph": "M", "pid": pid, "tid": at, "name": "thread_name", "args": {"name": row}})
        for s in self._merged():
            args = {"ended by": s.by} if s.by else {}
            events.append({
                "ph": "X", "pid": blocks.index(s.block), "tid": ids[s.block, s.row], "ts": s.start,
                "dur": s.end - s.start, "name": s.what, "args": args,
            })  # fmt: skip
        Path(file).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))

    def html(self, file: Any) -> None:
        """Write the timeline as one page that needs nothing else: a row a warp; point at a bar to read who waited,
        for what, and who ended it."""
        spans = self._merged()
        rows = {key: at for at, key in enumerate(sorted({(s.block, s.row) for s in spans}))}
        end = max((s.end for s in spans), default=1)
        width, height = 1200, 18
        parts = []
        for (block, row), at in rows.items():
            y = at * height
            parts.append(f'<text x="0" y="{y + 12}">{_escape(f"{block} {row}")}</text>')
        for s in spans:
            x, y = 200 + width * s.start / end, rows[s.block, s.row] * height
            kind = "copy" if s.row.startswith("copies") else "wait"
            title = _escape(f"{s.what}\n{s.start} to {s.end}" + (f"\nended by {s.by}" if s.by else ""))
            w = max(1.0, width * (s.end - s.start) / end)
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y + 2}" width="{w:.1f}" height="{height - 4}">'
                f"<title>{title}</title></rect>"
            )
        size = f'width="{width + 210}" height="{len(rows) * height + 10}"'
        Path(file).write_text(
            "<!doctype html><meta charset='utf-8'><title>numba_cute simulator</title><style>"
            "text{font:11px sans-serif}.wait{fill:#c9cdd6}.copy{fill:#4c8bf5;fill-opacity:.6}rect:hover{fill:#e8710a}"
            "</style><p style='font:13px sans-serif'>grey: a warp waits; blue: a copy or wgmma is under way. "
            f"Time counts instructions issued.</p><svg xmlns='http://www.w3.org/2000/svg' {size}>{''.join(parts)}</svg>"
        )

    def _merged(self) -> list[Span]:
        """Spans with those of a warp's lanes that wait alike as one."""
        found: dict[Any, Span] = {}
        for s in self.spans:
            key = (s.block, s.row, s.start if s.row.startswith("copies") else "", s.what, s.end)
            old = found.get(key)
            found[key] = s if old is None else old._replace(start=min(old.start, s.start), by=old.by or s.by)
        return list(found.values())


def _passes(some: list[tuple[int, int]]) -> int:
    """How often shared memory is read for the lanes of a warp: a bank gives one word each time, and accesses of 8 and
    16 bytes go by half and quarter warps."""
    widest = max(n for _, n in some)
    lanes = max(1, BANKS * BANK // max(widest, BANK))
    passes = 0
    for at in range(0, len(some), lanes):
        words = {w for a, n in some[at : at + lanes] for w in range(a // BANK, -(-(a + n) // BANK))}
        passes += max(Counter(w % BANKS for w in words).values())
    return passes


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
