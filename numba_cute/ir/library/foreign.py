# SPDX-License-Identifier: Apache-2.0
"""The dialect `numba`: what a kernel takes of Numba itself, its functions, arrays and operators."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ...compiler.inspection import inference
from ...compiler.inspection.effects import PURE, READS, Effects
from ...typed.descriptions import Description
from ..text.names import Lacking
from .calls import SymbolAttr, parse_symbol, print_symbol
from .operations import Binary, CallOp, GetAttr, Inferred, LoadElement, MethodOp, StoreElement


class NumbaCall(CallOp):
    """Call a function of Numba, or one that it compiles: `numba.call @"numba.cuda:grid" 2`."""

    name = "numba.call"

    def infer(self, arch: str) -> Description:
        positional, keywords = self.described()
        if self.function is None:
            return inference.infer_named(self.callee.data.text, positional, keywords, arch=arch)
        return inference.infer(self.function, positional, keywords, arch=arch)


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
    """Read a value of Numba's that is not a function: `numba.value @"numba.cuda:laneid"`."""

    name = "numba.value"
    symbol = prop_def(SymbolAttr)

    def head(self, printer: Printer) -> None:
        print_symbol(printer, self.symbol)

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        return {"symbol": parse_symbol(parser)}

    def lacking(self) -> Lacking | None:
        found = self.symbol.data.found
        return found if isinstance(found, Lacking) else super().lacking()

    def infer(self, arch: str) -> Description:
        if self.symbol.data.found is None:
            return inference.infer_value(self.symbol.data.text, arch=arch)
        return inference.infer_global(self.symbol.data.found, arch=arch)

    def effects(self) -> Effects:
        return PURE


OPERATIONS: tuple[type[Operation], ...] = (
    NumbaCall, NumbaMethod, NumbaGetAttr, NumbaGetItem, NumbaSetItem, NumbaBinary, NumbaValue,
)  # fmt: skip
