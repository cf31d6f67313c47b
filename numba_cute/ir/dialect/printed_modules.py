# SPDX-License-Identifier: Apache-2.0
"""What stands around printed operations: kernels (`cuda.kernel`), and the attributes of `nvvm` and `cuda` that are
words."""

from __future__ import annotations

import re
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, SymbolNameConstraint
from xdsl.dialects.vector import Vector
from xdsl.ir import Attribute, Block, Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
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

WORDS = {
    "nvvm.proxy_kind": ("alias", "async", "async.global", "async.shared", "generic", "tensormap"),
    "nvvm.shared_space": ("cta", "cluster"),
    "nvvm.mbar_wait": ("try", "test"),
    "cuda.assume_kernel_attr": ("true", "false"),
    "cuda.dev_max_shared_memory_optin": ("",),
}
"""By name: the words that may stand between < and >."""


class WordAttr(Data[str]):
    """One of a few words."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read what stands after the name."""
        words = WORDS[cls.name]
        text, start = parser.lexer.input.content, parser.pos
        found = re.compile(r"\s*<\s*([\w.]*)\s*>").match(text, start)
        word = "" if found is None else found[1]
        if word not in words:
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


def load(ctx: Context) -> None:
    """Add the dialects to a context that a module of the CuTe DSL has beside `cute` and `gpu`."""
    more: dict[str, list[Any]] = {"cute_nvgpu": [], "cuda": [CudaKernel, CudaReturn], "nvvm": []}
    for name, operations in more.items():
        words: list[type[Attribute]] = [a for n, a in _WORDS.items() if n.partition(".")[0] == name]
        ctx.load_dialect(Dialect(name, [*operations, *operations_of(name)], [*types_of(name), *words]))
    ours = operations_of("vector")
    names = {op.name for op in ours}
    others = [op for op in Vector.operations if op.name not in names]
    ctx.load_dialect(Dialect("vector", [*others, *ours], list(Vector.attributes)))


__all__ = ["WORDS", "CudaKernel", "CudaReturn", "load"]
