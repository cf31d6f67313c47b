# SPDX-License-Identifier: Apache-2.0
"""The roles of a kernel's warps by their steps, loops folded: `Proof.roles`."""

from __future__ import annotations

import dataclasses
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from ...seam.ground.drawing import COLOURS, LINE, Drawing, Picture, wide
from ..ground.report import count, ranges
from .recording import KINDS, Key, Record, Warp

COLOUR = dict(zip(KINDS, (COLOURS[7], COLOURS[6], COLOURS[0], COLOURS[3], COLOURS[2], COLOURS[5])))
"""The colour of each kind of step."""
_LONGEST = 300
"""Steps of a loop's body that are looked for."""


class Line(NamedTuple):
    """A step of warps. lanes: how many of each do it, 0 for all. warps: which alone do it, or ""."""

    key: Key
    lanes: int
    warps: str = ""

    def __str__(self) -> str:
        lanes = count(self.lanes, "lane") if self.lanes else ""
        by = " of ".join(filter(None, (lanes, self.warps)))
        return self.key[1] + (f" ({by})" if by else "")


@dataclasses.dataclass(frozen=True)
class Loop:
    """Steps that are done again and again. least, most: how often, where this differs from one time to another."""

    body: tuple[Any, ...]
    least: int
    most: int

    @property
    def shape(self) -> Any:
        """Return a value that is equal for loops that differ only in their number of rounds."""
        return "loop", tuple(map(_shape, self.body))

    @property
    def times(self) -> str:
        """Return the number of rounds, in words."""
        return f"{self.least} x" if self.least == self.most else f"{self.least} to {self.most} x"


def _shape(item: Any) -> Any:
    return item.shape if isinstance(item, Loop) else item


def _either(a: Any, b: Any) -> Any:
    """One step or loop in the place of two that are alike."""
    if not isinstance(a, Loop):
        return a
    return Loop(tuple(map(_either, a.body, b.body)), min(a.least, b.least), max(a.most, b.most))


def folded(items: list[Any]) -> list[Any]:
    """Fold repeated steps into loops, the shortest bodies first."""
    period = 1
    while period <= min(_LONGEST, len(items) // 2):
        made = _folded(items, period)
        period = 1 if len(made) < len(items) else period + 1
        items = made
    return items


def _folded(items: list[Any], period: int) -> list[Any]:
    shapes = list(map(_shape, items))
    out: list[Any] = []
    at = 0
    while at < len(items):
        same = at
        while same + period < len(items) and shapes[same] == shapes[same + period]:
            same += 1
        times = (same - at) // period + 1
        if times < 2:
            out.append(items[at])
            at += 1
            continue
        body = items[at : at + period]
        for n in range(1, times):
            body = list(map(_either, body, items[at + n * period : at + (n + 1) * period]))
        out.append(Loop(tuple(body), times, times))
        at += times * period
    return out


@dataclasses.dataclass(frozen=True)
class Role:
    """Warps that do the same. name: of what they do, which no other role has. who: the warps. warps: by CTA and number.
    steps: lines and loops."""

    name: str
    who: str
    warps: tuple[tuple[int, int], ...]
    steps: tuple[Any, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Roles(Picture):
    """The steps of each role of the kernel's warps. roles: each a `Role`."""

    roles: tuple[Role, ...]

    def __str__(self) -> str:
        lines = []
        for role in self.roles:
            lines.append(f"{role.name}: {role.who}")
            told = list(_told(role.steps, 1))
            longest = max((2 * depth + len(text) for depth, text, _ in told), default=0)
            for depth, text, key in told:
                indented = "  " * depth + text
                lines.append(f"{indented:{longest}}  {key[2]}".rstrip() if key is not None else indented)
        return "\n".join(lines) or "no step of synchronisation"

    def drawn(self) -> Drawing:
        """Draw a column of boxes for each role, with a bracket for each loop."""
        d, x, low = Drawing(), 10.0, 0.0
        for role in self.roles:
            told = list(_told(role.steps, 0))
            rows = [(14 * depth, text, key) for depth, text, key in told]
            across = max([wide(role.name), wide(role.who), *(12 + i + wide(t) for i, t, _ in rows)])
            across = max(across, *(12 + i + wide(k[2]) for i, _, k in rows if k is not None)) if rows else across
            d.text(x, 20, role.name, "strong")
            d.text(x, 20 + LINE, role.who, "faint")
            low = max(low, _column(d, x, 34 + LINE, across + 8, rows))
            x += across + 32
        d.legend(10, low + 12, {words: COLOUR[kind] for kind, words in KINDS.items()}, max(x - 32, 500))
        return d


def _column(d: Drawing, x: float, y: float, across: float, rows: list[tuple[int, str, Key | None]]) -> float:
    """Draw the steps of a role; gives where they end."""
    open_loops: list[tuple[int, float]] = []
    for indent, text, key in [*rows, (0, "", ("", "", ""))]:
        while open_loops and indent <= open_loops[-1][0]:
            left, top = open_loops.pop()
            d.line(f"M{x + left + 6:.1f} {top:.1f}H{x + left + 2:.1f}V{y - 4:.1f}H{x + left + 6:.1f}")
        if key is None:
            d.text(x + indent, y + 12, text, "strong")
            open_loops.append((indent, y + 18))
            y += LINE + 4
        elif key[0]:
            d.box(x + indent, y, across - indent, 2 * LINE + 2, style="step")
            d.box(x + indent, y, 5, 2 * LINE + 2, COLOUR[key[0]])
            d.text(x + indent + 10, y + 14, text)
            d.text(x + indent + 10, y + 13 + LINE, key[2], "faint")
            y += 2 * LINE + 6
    return y


def _told(steps: Any, depth: int) -> Any:
    """Yield each step's depth, words and key; None for the head of a loop."""
    for item in steps:
        if isinstance(item, Loop):
            yield depth, f"{item.times}:", None
            yield from _told(item.body, depth + 1)
        else:
            yield depth, str(item), item.key


def _lines(warp: Warp) -> list[Line]:
    """The steps of a warp: those of its lanes as one list."""
    found: dict[tuple[Key, ...], int] = {}
    for steps in warp.steps.values():
        keys = tuple(key for key, _, _ in steps)
        found[keys] = found.get(keys, 0) + 1
    merged: list[tuple[Key, int]] = []
    for keys, lanes in sorted(found.items(), key=lambda f: -len(f[0])):
        merged = _merged(merged, list(keys), lanes)
    return [Line(key, 0 if lanes == warp.threads else lanes) for key, lanes in merged]


def _merged(old: list[tuple[Key, int]], keys: list[Key], lanes: int) -> list[tuple[Key, int]]:
    """Steps of some lanes, and of others: those that are alike once, the others between them."""
    out: list[tuple[Key, int]] = []
    for tag, i, j, k, n in SequenceMatcher(None, [key for key, _ in old], keys, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(key, by + lanes) for key, by in old[i:j]]
        else:
            out += old[i:j] + [(key, lanes) for key in keys[k:n]]
    return out


def roles(record: Record) -> Roles:
    """The roles of a record: warps whose steps are alike, folded, in one; and those that do some of them only."""
    alike: dict[tuple[Line, ...], list[Warp]] = {}
    for warp in record.warps:
        alike.setdefault(tuple(_lines(warp)), []).append(warp)
    made: list[Role] = []
    several = len({w.cta for w in record.warps}) > 1
    for lines, warps in _together(alike):
        steps = tuple(folded(lines))
        name, taken = _name(steps), {r.name for r in made}
        numbered = [name, *(f"{name} {n}" for n in range(2, len(taken) + 3))]
        free = next(n for n in numbered if n not in taken)
        made.append(Role(free, _who(warps, several), tuple((w.cta, w.number) for w in warps), steps))
    return Roles(tuple(made))


def _together(alike: dict[tuple[Line, ...], list[Warp]]) -> list[tuple[list[Line], list[Warp]]]:
    """Put warps to those that do all that they do, and no more than as much again."""
    made: list[tuple[list[Line], list[Warp]]] = []
    for lines, warps in sorted(alike.items(), key=lambda a: -len(a[0])):
        for at, (held, others) in enumerate(made):
            shared = _within(lines, held)
            if shared and 2 * len(lines) >= len(held) and {w.cta for w in warps} == {w.cta for w in others}:
                alone = _who([w for w in others if w.cta == others[0].cta], False)
                marked = [x if i in shared or x.warps else x._replace(warps=alone) for i, x in enumerate(held)]
                made[at] = marked, sorted(others + warps)
                break
        else:
            made.append((list(lines), warps))
    return sorted(made, key=lambda m: m[1][0][:2])


def _within(lines: tuple[Line, ...], held: list[Line]) -> set[int]:
    """Return the positions of these steps, in their order, among those held; none if they are not all there."""
    found, at = set(), 0
    for line in lines:
        while at < len(held) and held[at][:2] != line[:2]:
            at += 1
        if at == len(held):
            return set()
        found.add(at)
        at += 1
    return found


def _who(warps: list[Warp], several: bool) -> str:
    """Warps in words."""
    by: dict[tuple[int, ...], list[int]] = {}
    for cta in dict.fromkeys(w.cta for w in warps):
        by.setdefault(tuple(w.number for w in warps if w.cta == cta), []).append(cta)
    words = []
    for which, ctas in by.items():
        of = f" of CTA{'s' if len(ctas) > 1 else ''} {ranges(ctas)}" if several else ""
        words.append(f"warp{'s' if len(which) > 1 else ''} {ranges(which)}{of}")
    return " and ".join(words)


_NAMES = (
    ("tmem", ("tcgen05_ld", "tcgen05_st")),
    ("TMA load", ("g2s",)),
    ("cp.async load", ("cp_async_ca", "cp_async_cg")),
    ("MMA", ("mma",)),
    ("scheduler", ("clc_try_cancel",)),
    ("TMA store", ("s2g",)),
)
"""The names of roles, each with parts of the names of the instructions that show it."""


def _name(steps: tuple[Any, ...]) -> str:
    """Name a role by the work that it begins; if it begins none, by what it does most plainly."""
    keys = [key for _, _, key in _told(steps, 0) if key is not None]
    names = [name for name, parts in _NAMES if any(part in key[1] for key in keys for part in parts)]
    if names:
        return " + ".join(names)
    does = {key[1].split()[0] for key in keys if key[0] == "access"}
    names = [name for name, verb in (("reader", "reads"), ("writer", "writes")) if verb in does]
    waits = any(key[0] != "other" for key in keys)
    return " + ".join(names) or ("synchronisation" if waits else "idle")
