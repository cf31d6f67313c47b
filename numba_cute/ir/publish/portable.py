# SPDX-License-Identifier: Apache-2.0
"""Find the parts of a module that a tool can read that knows only the reference's dialects and those of MLIR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialect.operations import CuteOperation
from ..dialect.printed_types import PrintedType
from ..dialect.spelled import SpelledOperation
from ..library.types import DescribedType
from ..text.python import Text

_MLIR = ("builtin", "func", "scf", "arith", "cf", "gpu", "math", "memref", "vector", "ub")
_HINTS = ("numba_cute.target", "numba_cute.kernel", "ptx")
"""Attributes that any tool may leave out of account."""


@dataclass(frozen=True)
class NotPortable:
    """Something of a module that is this library's alone. line: of the module's text. what: the operation, the type or
    the attribute, by its name. op: where it stands."""

    line: int
    what: str
    op: Operation

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def not_portable(module: Operation, text: Text, published: bool) -> list[NotPortable]:
    """List what is not portable, in the order of the text. published: whether what the CuTe DSL prints, and nobody
    published, is not portable either."""
    found: dict[NotPortable, None] = {}
    for op in module.walk():
        line = text.at[op][0] if op in text.at else 0
        for what in (*_operation(op, published), *_types(op, published), *_attributes(op)):
            found.setdefault(NotPortable(line, what, op))
    return list(found)


def _operation(op: Operation, published: bool) -> Iterator[str]:
    if isinstance(op, CuteOperation) or isinstance(op, SpelledOperation) and not published:
        return
    if op.name.partition(".")[0] not in _MLIR:
        yield op.name


def _types(op: Operation, published: bool) -> Iterator[str]:
    """The names of the types of what an operation gives and its regions take: of what it takes others tell."""
    values: list[SSAValue] = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
    function = op.properties.get("function_type")
    given = list(function.outputs.data) if isinstance(function, FunctionType) else []
    for t in (*(v.type for v in values), *given):
        if _is_own(t, published):
            yield f"!{t.name}"


def _is_own(t: Attribute, published: bool) -> bool:
    return isinstance(t, DescribedType) or published and isinstance(t, PrintedType)


def _attributes(op: Operation) -> Iterator[str]:
    own: dict[str, Any] = {**op.attributes}
    yield from (name for name in own if name.startswith("numba_cute.") and name not in _HINTS)


__all__ = ["NotPortable", "not_portable"]
