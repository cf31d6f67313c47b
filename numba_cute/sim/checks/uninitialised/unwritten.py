# SPDX-License-Identifier: Apache-2.0
"""Track the registers that a thread has written: each register file has a bit for every element that is undefined,
until all are written. `Thread.unwritten` holds those files, by the file's id."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np

from ....seam import Regs
from ...ground.report import Place, place_of
from ...hardware.collective import as_elements
from ...python.arithmetic.undefined import Made, Never, Why


class Unwritten:
    """A register file with undefined elements. bits: one for each such element. why: of those that were set to what
    is undefined; the others were never written. nbytes: of what a bit is for: an element, or the narrowest as which the
    registers were viewed."""

    __slots__ = ("bits", "why", "made", "nbytes", "_element")

    def __init__(self, bits: int, made: Made, file: Any) -> None:
        self.bits, self.made = bits, made
        self.nbytes = self._element = file.itemsize
        self.why: dict[int, Why] = {}

    def place(self, regs: Regs) -> tuple[int, int]:
        """The first bit of a span, and how many bits one of its elements has."""
        size = self._element if regs.dtype is self.made.dtype else np.dtype(regs.dtype.numpy).itemsize
        if size < self.nbytes:
            self._split(self.nbytes // size)
        per = size // self.nbytes
        return index(regs.start) * per, per

    def _split(self, parts: int) -> None:
        """Have `parts` bits for each one."""
        old, whole = self.bits, (1 << parts) - 1
        self.bits = sum(whole << i * parts for i in range(old.bit_length()) if old >> i & 1)
        self.why = {i * parts + k: why for i, why in self.why.items() for k in range(parts)}
        self.nbytes //= parts

    def elements(self, regs: Regs) -> Iterator[int]:
        """The undefined elements of a span, counted from its start."""
        start, per = self.place(regs)
        bits, last = self.bits >> start & (1 << regs.count * per) - 1, -1
        while bits:
            low = bits & -bits
            at = (low.bit_length() - 1) // per
            if at != last:
                yield at
            last, bits = at, bits ^ low

    def reasons(self, regs: Regs, thread: Any, read: Place) -> dict[int, Why]:
        """Return the reasons why registers of a span, which is read at a line, are undefined."""
        (start, per), made = self.place(regs), self.made

        def why(i: int) -> Why:
            first = start + i * per
            known = next((self.why[k] for k in range(first, first + per) if k in self.why), None)
            return known or Never(made, first * self.nbytes // self._element, thread, read)

        return {i: why(i) for i in self.elements(regs)}


def found(regs: Regs, thread: Any) -> dict[int, Why]:
    """The undefined elements of a span of a thread's registers, and why they are."""
    u = thread.unwritten.get(id(regs.file))
    if u is None:
        return {}
    start, per = u.place(regs)
    if not u.bits >> start & (1 << regs.count * per) - 1:
        return {}
    return u.reasons(regs, thread, place_of(sys._getframe(1)))  # type: ignore[no-any-return]


def written(regs: Regs, thread: Any) -> None:
    """A span was written."""
    u = thread.unwritten.get(id(regs.file))
    if u is not None:
        start, per = u.place(regs)
        u.bits &= ~((1 << regs.count * per) - 1 << start)
        if not u.bits:
            del thread.unwritten[id(regs.file)]


def undefine(regs: Regs, thread: Any, why: dict[int, Why]) -> None:
    """Mark these elements of a span that was written as undefined."""
    written(regs, thread)
    if why:
        u = thread.unwritten.get(id(regs.file))
        if u is None:
            made = Made("the registers", "", regs.dtype, place_of(sys._getframe(1)), None)
            u = thread.unwritten[id(regs.file)] = Unwritten(0, made, as_elements(regs.file, regs))
        start, per = u.place(regs)
        for i, reason in why.items():
            for bit in range(start + i * per, start + (i + 1) * per):
                u.bits |= 1 << bit
                u.why[bit] = reason
