# SPDX-License-Identifier: Apache-2.0
"""The names of values, as MLIR gives them: each region is numbered whole before those within it, and those go on from
where it ended."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, Region, SSAValue

from .operations import CuteOperation
from .printed_modules import CudaKernel
from .printed_operations import HINTS
from .spelled import SpelledOperation


def is_printed(op: Operation) -> bool:
    """Return whether a module holds an operation that the CuTe DSL prints, and so is written as it writes."""
    return any(isinstance(inner, (SpelledOperation, CudaKernel)) for inner in op.walk())


def hints(op: Operation, printed: bool) -> list[str]:
    """Return the names of an operation's results; "" for one that has a number. printed: as the CuTe DSL has them."""
    if isinstance(op, arith.ConstantOp):
        if isinstance(op.value, IntegerAttr):
            return [_of_integer(op.value)]
        return ["cst"] if printed else [""]
    if printed and isinstance(op, SpelledOperation):
        return op.hints()
    if printed and isinstance(op, CuteOperation):
        short = op.DEFINITION.name
        own = OTHERS.get(short, HINTS.get(short, ""))
        return [own.format(i=i) for i in range(len(op.results))]
    return [""] * len(op.results)


OTHERS = {
    "ceil_div": "shp", "cosize": "cosz", "crd2idx": "idx", "dice": "dice", "group_modes": "grouped",
    "logical_divide": "div", "make_composed_layout": "lay", "make_layout": "lay", "size": "sz", "slice": "slice",
    "tiled_divide": "div", "to_int_tuple": "itup", "tuple_add": "add", "tuple_sub": "sub", "zipped_divide": "div",
}  # fmt: skip
"""Names of results of operations that are printed in another way too."""


def _of_integer(value: IntegerAttr) -> str:
    number, kind = value.value.data, str(value.type)
    if kind == "i1":
        return "true" if number else "false"
    return f"c{number}" + ("" if kind == "index" else f"_{kind}")


class Namer:
    """Gives the values of an operation their names. printed: as the CuTe DSL has them."""

    def __init__(self, op: Operation) -> None:
        self.names: dict[SSAValue, str] = {}
        self.printed = is_printed(op)
        self.values = self.arguments = self.conflicts = 0
        self._operation(op, set())
        work = [(region, 0, 0, 0, set[str]()) for region in op.regions]
        while work:
            region, self.values, self.arguments, self.conflicts, outer = work.pop()
            used = set(outer)
            self._region(region, used)
            counts = self.values, self.arguments, self.conflicts
            work += [(inner, *counts, used) for block in region.blocks for o in block.ops for inner in o.regions]

    def _region(self, region: Region, used: set[str]) -> None:
        for i, block in enumerate(region.blocks):
            for argument in block.args:
                if i:
                    self.names[argument] = self._number()
                else:
                    self._name(argument, f"arg{self.arguments}", used)
                    self.arguments += 1
            for op in block.ops:
                self._operation(op, used)

    def _operation(self, op: Operation, used: set[str]) -> None:
        if not op.results:
            return
        given = hints(op, self.printed)
        if any(given):
            for value, name in zip(op.results, given, strict=True):
                if name:
                    self._name(value, name, used)
                else:
                    self.names[value] = self._number()
            return
        name = self._number()
        for i, value in enumerate(op.results):
            self.names[value] = name if len(op.results) == 1 else f"{name}#{i}"

    def _number(self) -> str:
        self.values += 1
        return str(self.values - 1)

    def _name(self, value: SSAValue, name: str, used: set[str]) -> None:
        free = name
        while free in used:
            free = f"{name}_{self.conflicts}"
            self.conflicts += 1
        used.add(free)
        self.names[value] = free


__all__ = ["Namer", "is_printed"]
