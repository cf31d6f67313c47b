# SPDX-License-Identifier: Apache-2.0
"""Registers of lanes that run together (see `convoy`): each access is one step for all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...dtypes import DType, Uint32, Uint64
from ...seam import Regs
from ..hardware.collective import as_elements
from ..hardware.together import NotTogether
from ..python.arithmetic.lanes import LaneFile, Lanes, LaneVector
from ..python.backend import SimBackend, new_slab
from .convoy import Convoy
from .lane_numbers import array_of, column_of, numbers_of
from .operands import spans


class LaneRegisters(SimBackend):
    """The part of `LaneBackend` that is about registers."""

    @property
    def _convoy(self) -> Convoy:
        return self.run.thread.convoy  # type: ignore[no-any-return]

    def registers(self, dtype: DType, count: int) -> Any:
        f = self._convoy
        return f.step(self._new_registers, f, dtype, count)

    def _new_registers(self, f: Convoy, dtype: DType, count: int) -> LaneFile:
        if f.masks and not _whole_warps(f):  # which are theirs alone
            whole = True
        else:
            f.go_on_apart()
            whole = len(f.units(_register_unit, "registers")) > 1
            whole = whole or len(f.threads) == len(_register_unit(f.threads[0]).threads)
        if whole:  # all of each unit is here, and shares its registers with nobody else
            first, last = f.lanes[0], f.lanes[-1]
            file = LaneFile(new_slab(dtype, count, last - first + 1), first)
        else:
            for t in f.threads:
                self.run.thread = t
                slab = super().registers(dtype, count).base
            self.run.thread = f.members[0]
            file = LaneFile(slab, _register_unit(f.threads[0]).threads[0].index)
        if self.run.undefined:
            file.undefine(f)
        return file

    def _one_by_one(self, f: Convoy, regs: Regs) -> bool:
        """Tell whether each lane's registers are looked at alone: they are indexed apart."""
        return type(regs.start) is Lanes

    def _defined(self, f: Convoy, regs: Regs) -> None:
        """Each lane has written all of a span of its registers, or they go on one by one."""
        if type(regs.file) is LaneFile and regs.file.undefined is not None and regs.file.has_undefined(f, regs):
            raise NotTogether("registers that nobody wrote are read, which may be right")

    def _written(self, f: Convoy, regs: Regs) -> None:
        if type(regs.file) is LaneFile and regs.file.undefined is not None:
            regs.file.define(f, regs)

    def _get(self, f: Convoy, regs: Regs) -> Any:
        """A span of registers of all lanes: shape (lanes, count)."""
        for tell in self.run.watch.touches:
            tell(self.run.thread, regs, "read")
        self._defined(f, regs)
        return spans(f, regs)

    def _set(self, f: Convoy, regs: Regs, values: Any) -> None:
        """Set a span of registers of all lanes."""
        for tell in self.run.watch.touches:
            tell(self.run.thread, regs, "written")
        file: LaneFile = regs.file
        part = as_elements(file.base, regs)[:, regs.start : regs.start + regs.count]
        part = part if part.dtype == regs.dtype.numpy else part.view(regs.dtype.numpy)
        part[file.rows(f)] = values
        self._written(f, regs)

    def _each(self, f: Convoy, live: Any, regs: Regs, *args: Any, writes: bool = False) -> Any:
        """Read or write registers that the lanes index apart."""
        if not writes:
            self._defined(f, regs)
        out = f.each(live, *args)
        if writes:
            self._written(f, regs)
        return out

    def read(self, regs: Regs) -> Any:
        f = self._convoy
        if self._one_by_one(f, regs):
            return f.step(self._each, f, super().read, regs, regs)
        return f.step(lambda: f.of_array(regs.dtype, np.array(self._get(f, regs)[:, 0])))

    def write(self, regs: Regs, value: Any) -> None:
        self.fill(regs, value)

    def fill(self, regs: Regs, value: Any) -> None:
        f = self._convoy
        if self._one_by_one(f, regs):
            f.step(partial(self._each, writes=True), f, super().fill, regs, regs, value)
        else:
            f.step(lambda: self._set(f, regs, column_of(numbers_of(value, regs.dtype))))

    def vector(self, regs: Regs) -> Any:
        f = self._convoy
        if self._one_by_one(f, regs):
            return f.step(self._each, f, super().vector, regs, regs)
        return f.step(lambda: LaneVector(f, np.array(self._get(f, regs))))

    def unvector(self, vector: Any, regs: Regs) -> None:
        f = self._convoy
        if self._one_by_one(f, regs):
            f.step(partial(self._each, writes=True), f, super().unvector, regs, vector, regs)
        else:
            f.step(lambda: self._set(f, regs, array_of(vector)))

    def flag(self) -> Regs:
        f = self._convoy
        return f.step(self._flag, f)  # type: ignore[no-any-return]

    def _flag(self, f: Convoy) -> Regs:
        f.go_on_apart()
        t = f.threads[0]
        if t.carry is None:
            file = self._new_registers(f, Uint32, 1)
            for u in f.threads:
                u.carry = file.base, file.first
            file.undefined = None
            self._set(f, Regs(file, Uint32, 0, 1), 0)
        return Regs(LaneFile(*t.carry), Uint32, 0, 1)

    def text_register(self, name: str) -> Regs:
        f = self._convoy
        return f.step(self._text_register, f, name)  # type: ignore[no-any-return]

    def _text_register(self, f: Convoy, name: str) -> Regs:
        f.go_on_apart()
        t = f.threads[0]
        if self.run.undefined:
            raise NotTogether("registers of texts are followed lane by lane")
        if name not in t.texts:
            file = self._new_registers(f, Uint64, 1)
            for u in f.threads:
                u.texts[name] = file.base, file.first
        return Regs(LaneFile(*t.texts[name]), Uint64, 0, 1)


def _whole_warps(f: Convoy) -> bool:
    return len(f.threads) >= sum(len(w.threads) for w in {t.warp for t in f.threads})


def _register_unit(thread: Any) -> Any:
    """Those whose register files lie side by side."""
    return thread.warpgroup or thread.warp
