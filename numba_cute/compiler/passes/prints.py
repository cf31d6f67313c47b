# SPDX-License-Identifier: Apache-2.0
"""`print` and f-strings of kernels that `cute.kernel` and `cute.jit` made: as in the CuTe DSL they tell what is known
while the kernel is compiled. Any other kernel has Numba's, which prints at run time."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from ...seam.marks import prints
from ...seam.source.texts import is_told
from ..ground.numba_cuda import ir


def print_compiling(func_ir: Any) -> bool:
    """Let a function print while it is compiled, if it is one that does; say whether it prints."""
    if not prints.prints(func_ir.func_id.func):
        return False
    changed = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        texts: set[str] = set()  # of an f-string: it is put together within a block
        formats: dict[str, ir.Var] = {}  # of a text that fills in values
        for inst in block.body:
            value: Any = inst.value if isinstance(inst, ir.Assign) else None
            new = _instead(value)
            if _fills_in(value, texts):
                formats[inst.target.name] = value.value
                told = is_told(value.loc.filename, value.loc.line)
                inst.value = ir.Global("format", prints.filled if told else prints.static_filled, value.loc)
                changed = True
            elif isinstance(value, ir.Expr) and value.op == "call" and value.func.name in formats:
                value.args = [formats[value.func.name], *value.args]
                texts.add(inst.target.name)
            elif new is not None:
                inst.value = ir.Global(value.name, new, value.loc)
                changed = True
            elif _is_text(value, texts):
                texts.add(inst.target.name)
                if isinstance(value, ir.Expr) and value.op == "binop":
                    join = block.scope.redefine("$numba_cute_join", inst.loc)
                    body.append(ir.Assign(ir.Global("join", prints.joined, inst.loc), join, inst.loc))
                    inst.value = ir.Expr.call(join, [value.lhs, value.rhs], (), inst.loc)
            if new in (prints.text, prints.static_text):
                texts.add(inst.target.name)
            body.append(inst)
        block.body = body
    return changed


def _instead(value: Any) -> Any:
    """Return what stands for a function of Python's that a kernel names; None for any other value."""
    if not isinstance(value, ir.Global) or value.value not in (builtins.print, str):
        return None
    if value.value is builtins.print:
        return prints.print
    return prints.text if is_told(value.loc.filename, value.loc.line) else prints.static_text


def _fills_in(value: Any, texts: set[str]) -> bool:
    """Say whether a value is the method `format` of a text."""
    return isinstance(value, ir.Expr) and value.op == "getattr" and value.attr == "format" and value.value.name in texts


def _is_text(value: Any, texts: set[str]) -> bool:
    """Say whether a value is a part of an f-string: a text of the source, what `str` gives, or a sum of such."""
    if isinstance(value, ir.Const):
        return isinstance(value.value, str)
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "call":
        return value.func.name in texts
    return value.op == "binop" and value.fn is operator.add and {value.lhs.name, value.rhs.name} <= texts
