# SPDX-License-Identifier: Apache-2.0
"""The check `registers`: registers that a thread touches while a wgmma uses them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...isa.form.instr import WGMMA_GROUP
from ...seam import Regs
from ..ground.report import RaceError
from ..hardware.machine import Machine
from ..hardware.watch import Check
from ..python.arithmetic.lanes import Apart


class Held(NamedTuple):
    """Bytes [start, end) of a slab of registers that the wgmma of issue `by` uses until its group, number `epoch`, is
    waited for; with `keeps` it only reads them."""

    start: int
    end: int
    by: Any
    epoch: int
    keeps: bool


class _Warpgroup:
    """slabs: those touched since the last wgmma.fence. held: by slab, what wgmmas use."""

    __slots__ = ("slabs", "held")

    def __init__(self) -> None:
        self.slabs: dict[int, Any] = {}
        self.held: dict[int, list[Held]] = {}


class Registers(Check):
    """Follows which registers a wgmma under way uses, until its group is waited for; and those that loads from tensor
    memory write, whose first use waits for them as tcgen05.wait::ld does."""

    name = "registers"
    summary = "registers touched while a wgmma uses them, or without a wgmma.fence"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._warpgroups: dict[Any, _Warpgroup] = {}  # those that have executed a wgmma.fence
        self._loading: dict[Any, dict[int, list[tuple[Regs, Any]]]] = {}  # by warp and thread

    def forgets(self, clusters: set[Any]) -> None:
        self._warpgroups.clear()
        self._loading.clear()

    # wgmma
    def fences_wgmma(self, m: Any) -> None:
        if m.unit is not None:
            self._warpgroups.setdefault(m.unit, _Warpgroup()).slabs = {}

    def holds(self, m: Any, registers: Any, keeps: bool) -> None:
        slab = registers.base
        if slab is None:
            return
        group = self._warpgroups.get(m.unit)
        if group is None or id(slab) in group.slabs:
            what = "an operand's registers" if keeps else "the accumulator's registers"
            since = "" if group is None else f" since {what} were last touched"
            raise RaceError(
                f"missing wgmma.fence: {m.row.name if m.row else ''} is issued by {m.describe()} at "
                f"{m.place}, but the warpgroup executed no wgmma.fence{since}; call it (warpgroup.fence, "
                f"wgmma_fence) before the first wgmma that uses them"
            )
        start = (registers.__array_interface__["data"][0] - slab.__array_interface__["data"][0]) % slab.strides[0]
        nbytes = registers.shape[1] * registers.itemsize
        span = Held(start, start + nbytes, m, m.groups(WGMMA_GROUP).epoch, keeps)
        group.held.setdefault(id(slab), []).append(span)

    def waited(self, m: Any, group: str, groups: Any, pending: int) -> None:
        found = self._warpgroups.get(m.unit) if group == WGMMA_GROUP else None
        if found is not None:
            left = {key: [s for s in spans if s.epoch > groups.done(pending)] for key, spans in found.held.items()}
            found.held = {key: spans for key, spans in left.items() if spans}

    # loads from tensor memory
    def loads_registers(self, m: Any, registers: list[tuple[Any, Any]]) -> None:
        m.fix_place()
        for t, regs in registers:
            if isinstance(regs, Regs):
                self._loading.setdefault(m.unit, {}).setdefault(t.index, []).append((regs, m))

    def waited_for_loads(self, m: Any) -> None:
        self._loading.pop(m.unit, None)

    # the thread itself
    def touches(self, thread: Any, regs: Regs, verb: str) -> None:
        if self._loading:
            if isinstance(regs.file, Apart):
                for t in thread.convoy.threads:
                    self._wait_where_used(t, Regs(regs.file.of(t), regs.dtype, regs.start, regs.count))
            else:
                self._wait_where_used(thread, regs)
        together = self._warpgroups and thread.convoy is not None
        for warpgroup in _warpgroups_of(thread.convoy) if together else (thread.warpgroup,):
            group = self._warpgroups.get(warpgroup)
            if group is not None:
                self._not_held(group, thread, regs, verb)

    def _not_held(self, group: Any, thread: Any, regs: Regs, verb: str) -> None:
        """Raise an error if a multiply of a warpgroup's still uses a span of registers."""
        slab = regs.file.base
        group.slabs[id(slab)] = slab
        start, end = _within(regs)
        for h in group.held.get(id(slab), ()):
            if start < h.end and h.start < end and not (h.keeps and verb == "read"):
                raise _in_use(Machine(self.run, None, [thread]), verb, h)

    def _wait_where_used(self, thread: Any, regs: Regs) -> None:
        """Wait for the warp's loads if one of them writes these registers: compiled code waits there too
        (compiler/ground/tensor_loads.py)."""
        loads, (start, end) = self._loading.get(thread.warp, {}), _within(regs)
        for held, by in loads.get(thread.index, ()):
            first, last = _within(held)
            if _same(held.file, regs.file) and start < last and first < end:
                by.tmem.wait_loads_of(thread)
                del loads[thread.index]
                if not loads:
                    del self._loading[thread.warp]
                return


def _warpgroups_of(convoy: Any) -> Any:
    """The warpgroups of lanes that run together."""
    found = convoy.memory.get("warpgroups")
    if found is None:
        found = convoy.memory["warpgroups"] = list(dict.fromkeys(t.warpgroup for t in convoy.threads))
    return found


def _same(file: Any, other: Any) -> bool:
    """Tell whether two views are one register file: lanes that run together make a view for each use."""
    if file is other or file.base is None or file.base is not other.base:
        return file is other
    return bool(file.__array_interface__["data"][0] == other.__array_interface__["data"][0])


def _within(regs: Regs) -> tuple[int, int]:
    """Return the begin and the end of a span in its register file, in bytes."""
    size = np.dtype(regs.dtype.numpy).itemsize
    return regs.start * size, (regs.start + regs.count) * size


def _in_use(m: Machine, verb: str, h: Held) -> RaceError:
    return RaceError(
        f"race: {'operand' if h.keeps else 'accumulator'} registers are {verb} by {m.describe()} at {m.place}\n"
        f"  but {h.by.row.name} issued at {h.by.place} still {'reads' if h.keeps else 'writes'} them; commit it "
        f"(wgmma.commit_group) and wait (wgmma.wait_group) first"
    )
