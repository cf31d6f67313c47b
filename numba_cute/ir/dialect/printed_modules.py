# SPDX-License-Identifier: Apache-2.0
"""Operations around printed ones: kernels (`cuda.kernel`), and the attributes of `nvvm` and `cuda` that are words."""

from __future__ import annotations

import re
from typing import Any

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import ArrayAttr, FunctionType, SymbolNameConstraint
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.vector import Vector
from xdsl.ir import Attribute, Block, Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .printed_types import types_of
from .spelled import operations_of


@irdl_op_definition
class CudaKernel(IRDLOperation):
    """`cuda.kernel @name(…) attributes {…} {…}`: a function that the host launches. It ends with `return`."""

    name = "cuda.kernel"
    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def verify_(self) -> None:
        block = self.body.blocks.first
        if block is None:
            raise VerifyException("expects a body")
        if tuple(block.arg_types) != self.function_type.inputs.data:
            raise VerifyException("the body's arguments are not of the kernel's types")
        if self.function_type.outputs.data:
            raise VerifyException("a kernel gives no results")

    @classmethod
    def parse(cls, parser: Parser) -> CudaKernel:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        given = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        if not body.blocks:
            body.add_block(Block(arg_types=[a.type for a in arguments]))
        return cls(
            properties={"sym_name": name, "function_type": FunctionType.from_lists([a.type for a in arguments], [])},
            regions=[body],
            attributes={} if given is None else dict(given.data),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.body.blocks[0].args, printer.print_block_argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, False, False)


@irdl_op_definition
class CudaReturn(IRDLOperation):
    """`return`: the end of a kernel."""

    name = "cuda.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


# ------------------------------------------------------------------ attributes that are words

WORDS: dict[str, tuple[str, ...]] = {
    "nvvm.proxy_kind": ("alias", "async", "async.global", "async.shared", "generic", "tensormap"),
    "nvvm.shared_space": ("cta", "cluster"),
    "nvvm.mbar_wait": ("try", "test"),
    "nvvm.mbar_txn_kind": ("arrive", "arrive_expect_tx", "expect_tx", "complete_tx", "arrive_complete_tx"),
    "nvvm.mbar_scope": ("cta", "cluster"),
    "nvvm.mbar_space": ("cta", "cluster"),
    "nvvm.tcgen05_group": ("cta_1", "cta_2"),
    "nvvm.cta_group": ("cta_1", "cta_2"),
    "nvvm.mem_scope": ("cta", "cluster", "gpu", "sys"),
    "nvvm.tcgen05_wait": ("load", "store"),
    "nvvm.shfl_kind": ("bfly", "up", "down", "idx"),
    "nvvm.action": ("increase", "decrease"),
    "nvvm.rnd": ("none", "rn", "rm", "rp", "rz", "rna"),
    "nvgpu.rnd": ("none", "rn", "rm", "rp", "rz", "rna"),
    "nvgpu.subbytes_packedkind": (),
    "cuda.assume_kernel_attr": ("true", "false"),
    "cuda.dev_max_shared_memory_optin": ("",),
    "cute_nvgpu.tiled_tma_load": (),
    "cute_nvgpu.tma_data_format": (),
    "cute_nvgpu.tma_reduce_kind": (),
    "cute_nvgpu.atom_copy_field_tmaload": (),
    "cute_nvgpu.atom_copy_field_tmastore": (),
    "cute_nvgpu.atom_copy_field_tmareduce": (),
    "cute_nvgpu.atom_mma_field_sm90": (),
    "cute_nvgpu.atom_mma_field_sm100": (),
    "cute_nvgpu.atom_mma_field_sm100_block_scaled": (),
}
"""By name: the words that may stand between < and >; none where all are not known."""


class WordAttr(Data[str]):
    """One of a few words."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read what stands after the name: `#nvvm.rnd<rn>`, or `#nvvm<rnd rn>`."""
        words = WORDS[cls.name]
        text, start = parser.lexer.input.content, parser.pos
        found = re.compile(r"\s*(?:<\s*([\w.]*)\s*>|([\w.]+)(?=\s*>))").match(text, start)
        word = "" if found is None else found[1] or found[2] or ""
        if words and word not in words:
            parser.raise_error(f"#{cls.name} is one of {', '.join(words)}", start)
        if found is not None:
            parser._resume_from(found.end())
        return word

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the name."""
        printer.print_string(f"<{self.data}>" if self.data else "")


def _word(name: str) -> Any:
    title = "".join(word.capitalize() for word in re.split(r"[._]", name))
    return irdl_attr_definition(type(f"{title}Attr", (WordAttr,), {"name": name, "__module__": __name__}))


_WORDS: dict[str, type[WordAttr]] = {name: _word(name) for name in WORDS}


class LoopAttr(Data[tuple[tuple[str, Attribute], ...]]):
    """Hints for LLVM about a loop: names with attributes."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Attribute], ...]:
        """Read what stands after the name."""

        def one() -> tuple[str, Attribute]:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            return name, parser.parse_attribute()

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, one))

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the name."""

        def one(item: tuple[str, Attribute]) -> None:
            printer.print_string(f"{item[0]} = ")
            printer.print_attribute(item[1])

        with printer.in_angle_brackets():
            printer.print_list(self.data, one)


@irdl_attr_definition
class LoopUnrollAttr(LoopAttr):
    """`#llvm.loop_unroll<full = true>`."""

    name = "llvm.loop_unroll"


@irdl_attr_definition
class LoopAnnotationAttr(LoopAttr):
    """`#llvm.loop_annotation<unroll = …>`."""

    name = "llvm.loop_annotation"


def load(ctx: Context) -> None:
    """Add the dialects to a context that a module of the CuTe DSL has beside `cute` and `gpu`."""
    more: dict[str, list[Any]] = {"cute_nvgpu": [], "cuda": [CudaKernel, CudaReturn], "nvvm": [], "nvgpu": []}
    for name, operations in more.items():
        words: list[type[Attribute]] = [a for n, a in _WORDS.items() if n.partition(".")[0] == name]
        ctx.load_dialect(Dialect(name, [*operations, *operations_of(name)], [*types_of(name), *words]))


def load_standard(ctx: Context) -> None:
    """Add the dialects of MLIR of which such a module has operations that xDSL lacks, or reads otherwise."""
    for dialect, attributes in ((Arith, ()), (Vector, ()), (LLVM, (LoopUnrollAttr, LoopAnnotationAttr))):
        ours = operations_of(dialect.name)
        names = {op.name for op in ours}
        others = [op for op in dialect.operations if op.name not in names]
        ctx.load_dialect(Dialect(dialect.name, [*others, *ours], [*dialect.attributes, *attributes]))


__all__ = ["WORDS", "CudaKernel", "CudaReturn", "load", "load_standard"]
