# SPDX-License-Identifier: Apache-2.0
"""The dialect `numba`: what a kernel takes of Numba itself, its functions, arrays and operators."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..compiler.inspection import inference
from ..compiler.inspection.effects import PURE, READS, Effects
from ..typed.descriptions import Description
from .names import is_kept, object_of
from .operations import Binary, CallOp, GetAttr, Inferred, LoadElement, MethodOp, StoreElement


class NumbaCall(CallOp):
    """Call a function of Numba, or one that it compiles: `numba.call @"numba.cuda:grid" 2`."""

    name = "numba.call"

    def infer(self, arch: str) -> Description:
        positional, keywords = self.described()
        if is_kept(self.callee.data):
            return inference.infer(self.function, positional, keywords, arch=arch)
        return inference.infer_named(self.callee.data, positional, keywords, arch=arch)


class NumbaMethod(MethodOp):
    """Call a method of a Numba object: `numba.method "astype" of %x, …`."""

    name = "numba.method"


class NumbaGetAttr(GetAttr):
    """Read an attribute of a Numba object: `numba.get_attr %array, "shape"`."""

    name = "numba.get_attr"

    def effects(self) -> Effects:
        return PURE


class NumbaGetItem(LoadElement):
    """Read an element or a part of a Numba array: `numba.get_item %array, (%i, %j)`."""

    name = "numba.get_item"

    def effects(self) -> Effects:
        return frozenset({READS})


class NumbaSetItem(StoreElement):
    """Write an element or a part of a Numba array: `numba.set_item %array, %i, %v`."""

    name = "numba.set_item"


class NumbaBinary(Binary):
    """Apply an operator of Python to numbers as Numba does, where `arith` has none that does the same:
    `numba.binary "//", %a, %b`."""

    name = "numba.binary"

    def effects(self) -> Effects:
        return PURE


@irdl_op_definition
class NumbaValue(Inferred):
    """Read a value of Numba's that is no function: `numba.value @"numba.cuda:laneid"`."""

    name = "numba.value"
    symbol = prop_def(StringAttr)

    def head(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol.data)

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        return {"symbol": StringAttr(parser.parse_symbol_name().data)}

    def infer(self, arch: str) -> Description:
        if is_kept(self.symbol.data):
            return inference.infer_global(object_of(self.symbol.data), arch=arch)
        return inference.infer_value(self.symbol.data, arch=arch)

    def effects(self) -> Effects:
        return PURE


OPERATIONS: tuple[type[Operation], ...] = (
    NumbaCall, NumbaMethod, NumbaGetAttr, NumbaGetItem, NumbaSetItem, NumbaBinary, NumbaValue,
)  # fmt: skip
