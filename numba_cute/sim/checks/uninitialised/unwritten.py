# SPDX-License-Identifier: Apache-2.0
"""Which of its registers a thread has written: each register file has a bit for every element that is undefined, until
all are written. `Thread.unwritten` holds those files, by the file's id."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import index
from typing import Any

from ....seam import Regs
from ...ground.report import Place, place_of
from ...python.arithmetic.undefined import Made, Never, Why


class Unwritten:
    """A register file with undefined elements. bits: one for each such element. why: of those that were set to what
    is undefined; the others were never written."""

    __slots__ = ("bits", "why", "made")

    def __init__(self, bits: int, made: Made) -> None:
        self.bits, self.made = bits, made
        self.why: dict[int, Why] = {}

    def elements(self, regs: Regs) -> Iterator[int]:
        """The undefined elements of a span, counted from its start."""
        bits = self.bits >> index(regs.start) & (1 << regs.count) - 1
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def reasons(self, regs: Regs, thread: Any, read: Place) -> dict[int, Why]:
        """Why those of a span are undefined, which is read at a line."""
        start, made = index(regs.start), self.made
        return {i: self.why.get(start + i) or Never(made, start + i, thread, read) for i in self.elements(regs)}


def found(regs: Regs, thread: Any) -> dict[int, Why]:
    """The undefined elements of a span of a thread's registers, and why they are."""
    u = thread.unwritten.get(id(regs.file))
    if u is None or not u.bits >> index(regs.start) & (1 << regs.count) - 1:
        return {}
    return u.reasons(regs, thread, place_of(sys._getframe(1)))  # type: ignore[no-any-return]


def written(regs: Regs, thread: Any) -> None:
    """A span was written."""
    u = thread.unwritten.get(id(regs.file))
    if u is not None:
        u.bits &= ~((1 << regs.count) - 1 << index(regs.start))
        if not u.bits:
            del thread.unwritten[id(regs.file)]


def undefine(regs: Regs, thread: Any, why: dict[int, Why]) -> None:
    """Of a span that was written, these elements have what is undefined."""
    written(regs, thread)
    if why:
        u = thread.unwritten.get(id(regs.file))
        if u is None:
            made = Made("the registers", "", regs.dtype, place_of(sys._getframe(1)), None)
            u = thread.unwritten[id(regs.file)] = Unwritten(0, made)
        start = index(regs.start)
        for i, reason in why.items():
            u.bits |= 1 << start + i
            u.why[start + i] = reason
