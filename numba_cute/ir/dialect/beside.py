# SPDX-License-Identifier: Apache-2.0
"""MLIR's dialect `gpu` in its own syntax, as far as modules of the dialect use it: xDSL has most of its operations in
the generic form alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IndexType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.gpu import AsyncTokenType, DimensionAttr, DimensionEnum
from xdsl.ir import Attribute, Block, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

index = IndexType()


@irdl_op_definition
class GpuModule(IRDLOperation):
    """`gpu.module @name {…}`: the code of a device."""

    name = "gpu.module"
    body = region_def("single_block")
    sym_name = prop_def(SymbolNameConstraint())
    targets = opt_prop_def(ArrayAttr)
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable())

    @classmethod
    def parse(cls, parser: Parser) -> GpuModule:
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        if parser._current_token.text == "[":
            properties["targets"] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        return cls(properties=properties, regions=[body], attributes={} if attributes is None else attributes.data)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        if self.targets is not None:
            printer.print_string(" ")
            printer.print_attribute(self.targets)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, False, False)


@irdl_op_definition
class GpuFunc(IRDLOperation):
    """`gpu.func @name(…) kernel {…}`: a function of a device."""

    name = "gpu.func"
    body = region_def()
    sym_name = attr_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @property
    def is_kernel(self) -> bool:
        """Say whether the host may launch it."""
        return "gpu.kernel" in self.attributes

    def verify_(self) -> None:
        block = self.body.blocks.first
        if block is not None and tuple(block.arg_types) != self.function_type.inputs.data:
            raise VerifyException("the body's arguments are not of the function's types")
        if self.is_kernel and self.function_type.outputs.data:
            raise VerifyException("a kernel gives no results")

    @classmethod
    def parse(cls, parser: Parser) -> GpuFunc:
        attributes: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        outputs: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            outputs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type) or [
                parser.parse_type()
            ]
        if parser.parse_optional_keyword("kernel"):
            attributes["gpu.kernel"] = UnitAttr()
        given = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        return cls(
            properties={"function_type": FunctionType.from_lists([a.type for a in arguments], outputs)},
            regions=[body],
            attributes=attributes | ({} if given is None else dict(given.data)),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.body.blocks[0].args, printer.print_block_argument)
        outputs = self.function_type.outputs.data
        if outputs:
            printer.print_string(" -> ")
            with printer.in_parens():
                printer.print_list(outputs, printer.print_attribute)
        if self.is_kernel:
            printer.print_string(" kernel")
        printer.print_op_attributes(self.attributes, reserved_attr_names=("sym_name", "gpu.kernel"), print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, False, False)


@irdl_op_definition
class GpuReturn(IRDLOperation):
    """`gpu.return %x : i32`: the end of a function of a device."""

    name = "gpu.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class GpuTerminator(IRDLOperation):
    """`gpu.terminator`: the end of what `gpu.launch` launches."""

    name = "gpu.terminator"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class GpuBarrier(IRDLOperation):
    """`gpu.barrier`: the threads of a block wait for each other."""

    name = "gpu.barrier"
    assembly_format = "attr-dict"


class _Id(IRDLOperation):
    """An index of a thread along a dimension, or how many there are."""

    @classmethod
    def parse(cls, parser: Parser) -> _Id:
        dimension = DimensionAttr(DimensionEnum(parser.parse_identifier()))
        attributes = parser.parse_optional_attr_dict()
        return cls(properties={"dimension": dimension}, result_types=[index], attributes=attributes)

    def print(self, printer: Printer) -> None:
        dimension = self.properties["dimension"]
        printer.print_string(f"  {dimension.data.value}" if isinstance(dimension, DimensionAttr) else "")
        printer.print_op_attributes(self.attributes)


def _id(name: str) -> type[_Id]:
    title = "Gpu" + "".join(word.capitalize() for word in name.split("_"))
    body = {
        "name": f"gpu.{name}", "dimension": prop_def(DimensionAttr), "result": result_def(IndexType),
        "traits": traits_def(Pure()), "__module__": __name__,
    }  # fmt: skip
    return irdl_op_definition(type(title, (_Id,), body))


IDS = {name: _id(name) for name in ("thread_id", "block_id", "block_dim", "grid_dim", "global_id", "cluster_id")}
"""The operations that give a thread its place, by name."""


@irdl_op_definition
class GpuPrintf(IRDLOperation):
    """`gpu.printf "%d", %x : i32`: a thread prints."""

    name = "gpu.printf"
    format = prop_def(StringAttr)
    values = var_operand_def()

    @classmethod
    def parse(cls, parser: Parser) -> GpuPrintf:
        text = parser.parse_str_literal()
        attributes = parser.parse_optional_attr_dict()
        names: list[Any] = []
        if parser.parse_optional_punctuation(","):
            names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        values: Sequence[SSAValue] = ()
        if names:
            at = parser.pos
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            values = parser.resolve_operands(names, types, at)
        return cls(properties={"format": StringAttr(text)}, operands=[values], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.format.data)
        printer.print_op_attributes(self.attributes)
        if self.values:
            printer.print_string(", ")
            printer.print_list(self.values, printer.print_operand)
            printer.print_string(" : ")
            printer.print_list([v.type for v in self.values], printer.print_attribute)


# ------------------------------------------------------------------ launches


def _sizes(parser: Parser, types: Sequence[Attribute]) -> list[SSAValue]:
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    return list(parser.resolve_operands(names, types, parser.pos))


@irdl_op_definition
class GpuLaunchFunc(IRDLOperation):
    """`gpu.launch_func @module::@kernel blocks in (…) threads in (…) args(…)`: the host launches a kernel."""

    name = "gpu.launch_func"
    asyncDependencies = var_operand_def(AsyncTokenType)
    gridSizeX = operand_def()
    gridSizeY = operand_def()
    gridSizeZ = operand_def()
    blockSizeX = operand_def()
    blockSizeY = operand_def()
    blockSizeZ = operand_def()
    clusterSizeX = opt_operand_def()
    clusterSizeY = opt_operand_def()
    clusterSizeZ = opt_operand_def()
    dynamicSharedMemorySize = opt_operand_def()
    kernelOperands = var_operand_def()
    asyncObject = opt_operand_def()
    asyncToken = opt_result_def(AsyncTokenType)
    kernel = prop_def(SymbolRefAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def grid(self) -> list[SSAValue]:
        """Return the number of blocks along x, y and z."""
        return [self.gridSizeX, self.gridSizeY, self.gridSizeZ]

    @property
    def block(self) -> list[SSAValue]:
        """Return the number of threads of a block along x, y and z."""
        return [self.blockSizeX, self.blockSizeY, self.blockSizeZ]

    @classmethod
    def parse(cls, parser: Parser) -> GpuLaunchFunc:
        kernel = parser.parse_attribute()
        shapes = []
        for word in ("blocks", "threads"):
            parser.parse_keyword(word)
            parser.parse_keyword("in")
            shapes.append(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand))
        size_type = parser.parse_type() if parser.parse_optional_punctuation(":") else index
        sizes = [list(parser.resolve_operands(names, [size_type] * 3, parser.pos)) for names in shapes]
        memory: list[SSAValue] = []
        if parser.parse_optional_keyword("dynamic_shared_memory_size"):
            name = parser.parse_unresolved_operand()
            memory = [parser.resolve_operand(name, parser.parse_type())]
        values: list[SSAValue] = []

        def argument() -> None:
            name = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            values.append(parser.resolve_operand(name, parser.parse_type()))

        if parser.parse_optional_keyword("args"):
            parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        attributes = parser.parse_optional_attr_dict()
        return cls(
            operands=[[], *sizes[0], *sizes[1], [], [], [], memory, values, []],
            result_types=[[]],
            properties={"kernel": kernel},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string("  ")
        printer.print_attribute(self.kernel)
        for word, sizes in (("blocks", self.grid), ("threads", self.block)):
            printer.print_string(f" {word} in ")
            printer.print_operands(sizes)
        if self.gridSizeX.type != index:
            printer.print_string(" : ")
            printer.print_attribute(self.gridSizeX.type)
        printer.print_string(" ")
        if self.dynamicSharedMemorySize is not None:
            printer.print_string(" dynamic_shared_memory_size ")
            _print_typed(printer, self.dynamicSharedMemorySize, " ")
        if self.kernelOperands:
            printer.print_string(" args")
            with printer.in_parens():
                printer.print_list(self.kernelOperands, lambda v: _print_typed(printer, v, " : "))
        printer.print_op_attributes(self.attributes)


def _print_typed(printer: Printer, value: SSAValue, between: str) -> None:
    printer.print_operand(value)
    printer.print_string(between)
    printer.print_attribute(value.type)


@irdl_op_definition
class GpuLaunch(IRDLOperation):
    """`gpu.launch blocks(…) in (…) threads(…) in (…) {…}`: the host launches a region. Its arguments are a thread's
    place: its block, its place in that, how many blocks and how many threads there are."""

    name = "gpu.launch"
    asyncDependencies = var_operand_def(AsyncTokenType)
    sizes = var_operand_def(IndexType)
    clusterSizes = var_operand_def(IndexType)
    dynamicSharedMemorySize = opt_operand_def()
    asyncToken = opt_result_def(AsyncTokenType)
    body = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> GpuLaunch:
        places: list[list[Any]] = []
        counts: list[list[Any]] = []
        sizes: list[SSAValue] = []
        for word in ("blocks", "threads"):
            parser.parse_keyword(word)
            places.append(_names(parser))
            parser.parse_keyword("in")
            named: list[Any] = []

            def one(named: list[Any] = named) -> None:
                named.append(_name(parser))
                parser.parse_punctuation("=")
                sizes.append(parser.resolve_operand(parser.parse_unresolved_operand(), index))

            parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
            counts.append(named)
        arguments = [a.resolve(index) for group in (*places, *counts) for a in group]
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict()
        return cls(operands=[[], sizes, [], []], result_types=[[]], regions=[body], attributes=attributes)

    def print(self, printer: Printer) -> None:
        arguments = self.body.blocks[0].args
        for i, word in enumerate(("blocks", "threads")):
            printer.print_string(f" {word}")
            printer.print_operands(arguments[3 * i : 3 * i + 3])
            printer.print_string(" in (")
            for j in range(3):
                printer.print_string(", " if j else "")
                printer.print_operand(arguments[6 + 3 * i + j])
                printer.print_string(" = ")
                printer.print_operand(self.sizes[3 * i + j])
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, False, False)
        printer.print_op_attributes(self.attributes)


def _name(parser: Parser) -> Any:
    found = parser.parse_optional_argument(expect_type=False)
    if found is None:
        parser.raise_error("a name of a block argument is expected")
    return found


def _names(parser: Parser) -> list[Any]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _name(parser))


OPERATIONS: tuple[type[Operation], ...] = (
    GpuModule, GpuFunc, GpuReturn, GpuTerminator, GpuBarrier, GpuPrintf, GpuLaunchFunc, GpuLaunch, *IDS.values(),
)  # fmt: skip


def load(ctx: Context) -> None:
    """Add the dialect to a context."""
    names = {op.name for op in OPERATIONS}
    others = [op for op in gpu.GPU.operations if op.name not in names]
    ctx.load_dialect(Dialect("gpu", [*others, *OPERATIONS], list(gpu.GPU.attributes)))


__all__ = ["GpuFunc", "GpuLaunch", "GpuLaunchFunc", "GpuModule", "GpuPrintf", "GpuReturn", "IDS", "load"]
