# SPDX-License-Identifier: Apache-2.0
"""The check `boxes`: copies by TMA whose boxes all lie wholly outside of their tensor."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check


class Boxes(Check):
    """Warns of a line none of whose boxes, in the whole launch, holds an element of its tensor. Single ones outside are
    usual: the last CTAs of a cluster, a share of a multicast. So is one that begins where the tensor ends, for nothing
    is left to copy, and are the rows of gather4 and scatter4, and boxes of im2col."""

    name = "boxes"
    summary = (
        "warns of a TMA copy whose boxes all lie wholly outside of the tensor: a load of zeros, a store of nothing"
    )

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._told: dict[Any, str | None] = {}
        """By line and tensor map what is to be warned of; None once a box was inside."""

    def copies_box(self, m: Any, of: Any, at: tuple[int, ...], loads: bool, inside: bool) -> None:
        key = m.line, of.name
        if inside:
            text = self._told.get(key)
            if text is not None:
                self.run.suspicions.remove(text)
            self._told[key] = None
        elif key not in self._told:
            text = self._told[key] = self._words(m, of, at, loads)
            self.run.suspicions.append(text)

    @staticmethod
    def _words(m: Any, of: Any, at: tuple[int, ...], loads: bool) -> str:
        dims, box = of.stated.dims, of.stated.box
        does = (
            f"fills shared memory with {'NaN' if of.stated.oob_fill == 'nan' else 'zero'}s"
            if loads
            else "writes nothing"
        )
        return (
            f"{of.name}: {m.row.name} of {m.describe()} at {m.place}: all boxes that this line copies lie wholly "
            f"outside of the tensor, so that it {does}\n"
            f"  the first has the coordinates {at}, the box is {box}, the tensor {dims} (innermost first)\n"
            f"  fix: coordinates are of elements, and indices of a tensor that was divided into tiles are of tiles: "
            f"give the one or the other; look whether two modes are exchanged; or leave the copy out"
        )
